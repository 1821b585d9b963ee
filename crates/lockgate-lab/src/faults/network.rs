//! Faults of the network between a worker and the store.

use std::time::Duration;

use lockgate::testing::proxy::{Direction, FaultProxy};
use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::hand::{Hand, now};
use super::stop::Stop;

/// The longest pause before a call or a subscription is tried again: 1.5 times `RedisConfig::retry_interval`.
const RETRY_PAUSE: Duration = Duration::from_millis(150);

/// A lost message costs a waiter no more than this, whatever the lease.
const ASK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// **Bound:** a waiter whose message is swallowed asks by itself when the lease that it was told is over, and after five
/// seconds if that is sooner.
///
/// The hole is open for so short a time, and so soon after the waiter has asked, that it swallows nothing else: a reply that
/// vanishes from a connection that goes on is not what networks do.
pub(super) async fn message_lost(arena: &mut Arena) -> Result<(), Stop> {
    let is_long = arena.dice.below(4) == 0;
    arena.lease = if is_long { Duration::from_secs(20) } else { arena.dice.millis(1_000, 2_000) };
    let (mut holder, (mut waiter, network)) =
        (arena.worker("holder").await?, arena.worker_behind_a_proxy("waiter").await?);
    holder.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(&mut waiter, 1).await?;
    sleep(arena.dice.millis(0, 50)).await;

    network.black_hole(Direction::ToClient);
    arena.count_fault();
    let released = now();
    holder.ask("release", 1, &["released"]).await?;
    sleep(arena.dice.millis(20, 100)).await;
    network.heal();

    let locked = waiter.says(1, &["locked"]).await?;
    let bound = arena.lease.min(ASK_AT_LEAST_EVERY) + PROMPT;
    arena.within("the grant whose message was lost", released, locked.at, bound);
    waiter.ask("write", 1, &["accepted"]).await?;
    waiter.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// **Bound:** two retry pauses and 100 ms. Whoever subscribes again asks for everything that it waits for.
pub(super) async fn subscription_cut(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = Duration::from_secs(20);
    let (mut holder, (mut waiter, network)) =
        (arena.worker("holder").await?, arena.worker_behind_a_proxy("waiter").await?);
    let mut last = arena.worker("last").await?;
    holder.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(&mut waiter, 1).await?;
    arena.let_wait(&mut last, 2).await?;

    let (before, a_moment) = (arena.dice.coin(), arena.dice.millis(0, 3));
    let released = now();
    if before {
        cut(arena, &network)?;
        sleep(a_moment).await;
        holder.tell("release 1")?;
    } else {
        holder.tell("release 1")?;
        sleep(a_moment).await;
        cut(arena, &network)?;
    }
    holder.says(1, &["released"]).await?;
    let (winner, locked) = super::hand::first_to_lock(&mut [&mut waiter, &mut last]).await?;
    let bound = RETRY_PAUSE * 2 + PROMPT;
    arena.within("the grant when subscriptions were cut", released, locked.at, bound);
    let (first, second) = if winner == 0 { (&mut waiter, &mut last) } else { (&mut last, &mut waiter) };
    let passed_on = now();
    first.ask("release", 1, &["released"]).await?;
    let locked = second.says(1, &["locked"]).await?;
    arena.within("the grant after that", passed_on, locked.at, bound);
    second.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// Cuts all subscriptions at the server, or all connections of one process.
fn cut(arena: &mut Arena, network: &FaultProxy) -> Result<(), Stop> {
    arena.count_fault();
    if arena.dice.coin() {
        arena.redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"])?;
    } else {
        network.reset();
    }
    Ok(())
}

/// **Bound:** 100 ms from whichever comes last, the request or the release, although the lease is long. What becomes free
/// while somebody begins to wait is not missed.
pub(super) async fn wake_up_race(arena: &mut Arena) -> Result<(), Stop> {
    const ROUNDS: u32 = 150;
    arena.lease = Duration::from_secs(20);
    let (mut one, mut two) = (arena.worker("one").await?, arena.worker("two").await?);
    // Once in peace, so that both listen.
    one.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(&mut two, 1).await?;
    one.ask("release", 1, &["released"]).await?;
    two.says(1, &["locked"]).await?;
    let (mut holder, mut waiter) = (two, one);
    for _ in 0..ROUNDS {
        let lead = Duration::from_micros(arena.dice.below(400));
        waiter.tell("lock 1")?;
        spin_for(lead);
        let released = now();
        holder.tell("release 1")?;
        holder.says(1, &["released"]).await?;
        arena.count_fault();
        let locked = waiter.says(1, &["locked"]).await?;
        arena.within("the grant of a lock that became free in that moment", released, locked.at, PROMPT);
        (holder, waiter) = (waiter, holder);
    }
    holder.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// Shorter than what a timer can do.
fn spin_for(time: Duration) {
    let until = now() + super::hand::nanos(time);
    while now() < until {
        std::hint::spin_loop();
    }
}

/// **Bound:** a retry pause and 100 ms for whoever waits for the answer. What was done before the reply was lost is not
/// done twice; what is renewed stays held.
pub(super) async fn connection_cut(arena: &mut Arena) -> Result<(), Stop> {
    (arena.lease, arena.is_kept) = (Duration::from_millis(1_500), true);
    let (mut worker, network) = arena.worker_behind_a_proxy("worker").await?;
    let mut rival = arena.worker("rival").await?;
    let bound = RETRY_PAUSE + PROMPT;

    for _ in 0..2 {
        let asked = disturb(arena, &network);
        let locked = worker.ask("lock", 1, &["locked"]).await?;
        network.heal();
        arena.within("taking the lock over a connection that was cut", asked, locked.at, bound);
        arena.let_wait(&mut rival, 1).await?;

        // Its next call is the renewal, after a third of the lease.
        disturb(arena, &network);
        sleep(arena.lease.mul_f64(1.2)).await;
        network.heal();
        worker.ask("check", 1, &["held", "lost"]).await.map(|said| {
            arena.demand(said.word == "held", || "a lock was lost because one renewal went wrong".into());
        })?;
        let intruder = rival.has_said(1, "locked");
        arena.demand(intruder.is_none(), || "the rival got a lock that was being renewed".into());
        worker.ask("write", 1, &["accepted"]).await?;

        let released = disturb(arena, &network);
        let gave_back = worker.ask("release", 1, &["released", "was-lost", "unanswered"]).await?;
        network.heal();
        let is_right = gave_back.word == "released";
        arena
            .demand(is_right, || format!("a release over a connection that was cut said {}", gave_back.word));
        let locked = rival.says(1, &["locked"]).await?;
        arena.within("the rival's grant after that release", released, locked.at, bound);
        rival.ask("write", 1, &["accepted"]).await?;
        rival.ask("release", 1, &["released"]).await?;
    }
    Ok(())
}

/// Something goes wrong with the next call: its reply is lost, or its connection is cut. Returns the time.
fn disturb(arena: &mut Arena, network: &FaultProxy) -> u64 {
    arena.count_fault();
    match arena.dice.below(3) {
        0 => network.reset(),
        1 => network.cut_after(Direction::ToServer, 20),
        _ => network.lose_next_reply(),
    }
    now()
}

/// **Bound:** as above. A process hands the lock over and queues again in one call, whose reply is lost: the other process
/// has it once, and then the first one gets it back.
pub(super) async fn yield_reply_lost(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = Duration::from_secs(20);
    let (mut house, network) = arena.worker_behind_a_proxy("house").await?;
    let mut other = arena.worker("other").await?;
    house.ask("lock", 1, &["locked"]).await?;
    house.tell("lock 2")?;
    // They are served in the order in which they came, so the second must have come first.
    sleep(arena.dice.millis(150, 200)).await;
    house.tell("lock 3")?;
    arena.let_wait(&mut other, 1).await?;
    // Time to subscribe: who cannot hear does not queue, and gives back in another way.
    sleep(arena.dice.millis(50, 100)).await;
    // The first pass stays in the house; beside it, the house learns that somebody else waits.
    house.ask("release", 1, &["released"]).await?;
    house.says(2, &["locked"]).await?;
    sleep(arena.dice.millis(50, 100)).await;

    let asked = disturb(arena, &network);
    house.ask("release", 2, &["released"]).await?;
    let locked = other.says(1, &["locked"]).await?;
    arena.within("the grant when the reply to handing over was lost", asked, locked.at, RETRY_PAUSE + PROMPT);
    sleep(arena.dice.millis(200, 300)).await;
    network.heal();
    let intruder = house.has_said(3, "locked");
    arena.demand(intruder.is_none(), || "the process took back what it had handed over".into());
    other.ask("write", 1, &["accepted"]).await?;
    let released = now();
    other.ask("release", 1, &["released"]).await?;
    let locked = house.says(3, &["locked"]).await?;
    arena.within("getting it back", released, locked.at, RETRY_PAUSE * 2 + PROMPT);
    house.ask("write", 3, &["accepted"]).await?;
    house.ask("release", 3, &["released"]).await?;
    Ok(())
}

/// **Bound:** the claim lease and 100 ms for those behind. Whoever hears late counts from the grant, and believes
/// nothing that is over.
pub(super) async fn push_delayed(arena: &mut Arena) -> Result<(), Stop> {
    (arena.lease, arena.is_kept) = (Duration::from_secs(20), true);
    arena.claim = Duration::from_millis(400);
    let mut holder = arena.worker("holder").await?;
    // From in time over just in time to too late.
    let delay = arena.dice.millis(100, 480);
    let (mut late, network) = arena.worker_behind_a_proxy("late").await?;
    let mut last = arena.worker("last").await?;
    holder.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(&mut late, 1).await?;
    arena.let_wait(&mut last, 2).await?;
    network.delay(delay);
    arena.count_fault();
    let released = now();
    holder.ask("release", 1, &["released"]).await?;

    // Its word that it has the lock needs the delay three times: message, renewal, answer.
    let is_in_time = delay * 2 < arena.claim;
    if !is_in_time {
        let locked = last.says(1, &["locked"]).await?;
        arena.within("the grant behind a message that came late", released, locked.at, arena.claim + PROMPT);
        last.ask("write", 1, &["accepted"]).await?;
        sleep(delay * 3).await;
    }
    network.heal();
    finish(&mut late, &mut last, is_in_time).await
}

async fn finish(late: &mut Hand, last: &mut Hand, is_in_time: bool) -> Result<(), Stop> {
    let (first, second) = if is_in_time { (late, last) } else { (last, late) };
    if is_in_time {
        first.says(1, &["locked"]).await?;
    }
    sleep(Duration::from_millis(50)).await;
    first.ask("release", 1, &["released", "was-lost"]).await?;
    second.says(1, &["locked"]).await?;
    // What it was given late may be lost by now; then it is told so.
    second.ask("release", 1, &["released", "was-lost"]).await?;
    Ok(())
}
