//! Faults of a holder.

use std::time::Duration;

use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::hand::{Hand, first_to_lock, nanos, now};
use super::stop::Stop;

/// How soon after it runs again a holder is told that it has lost the lock.
pub(super) const TOLD_WITHIN: Duration = Duration::from_millis(10);

/// **Bound:** the lease and 100 ms after the death. One that was handed the lock a moment before may have died before it
/// said a word: then it is the claim lease, if that is longer.
pub(super) async fn killed(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = arena.dice.millis(300, 700);
    arena.claim = arena.dice.millis(300, 1_000);
    arena.is_kept = arena.dice.coin();
    let mut holder = arena.worker("holder").await?;
    let (mut next, mut last) = (arena.worker("next").await?, arena.worker("last").await?);
    let was_handed = arena.dice.coin();
    if was_handed {
        hand_over(arena, &mut holder, &mut next, &mut last).await?;
        sleep(arena.dice.millis(0, 10)).await;
    } else {
        holder.ask("lock", 1, &["locked"]).await?;
        arena.let_wait(&mut next, 1).await?;
        arena.let_wait(&mut last, 2).await?;
        if arena.is_kept {
            // So that it has been renewed when it dies.
            sleep(arena.lease.mul_f64(1.5)).await;
        }
        sleep(arena.dice.millis(0, 100)).await;
    }

    let died = holder.kill()?;
    arena.count_fault();
    let bound = if was_handed { arena.lease.max(arena.claim) } else { arena.lease } + PROMPT;
    let (first, second) = winner_first(arena, died, bound, next, last).await?;
    for mut hand in [first, second] {
        hand.says(1, &["locked"]).await?;
        hand.ask("write", 1, &["accepted"]).await?;
        hand.ask("release", 1, &["released"]).await?;
    }
    Ok(())
}

/// Lets somebody else hold the lock first, so that the holder is handed it.
async fn hand_over(
    arena: &mut Arena,
    holder: &mut Hand,
    next: &mut Hand,
    last: &mut Hand,
) -> Result<(), Stop> {
    let mut before = arena.worker("before").await?;
    before.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(holder, 1).await?;
    before.ask("release", 1, &["released", "was-lost"]).await?;
    holder.says(1, &["locked"]).await?;
    next.tell("lock 1")?;
    last.tell("lock 1")?;
    Ok(())
}

/// The one that has the lock, and the other one. It must have it in time.
async fn winner_first(
    arena: &mut Arena,
    died: u64,
    bound: Duration,
    mut one: Hand,
    mut two: Hand,
) -> Result<(Hand, Hand), Stop> {
    let (winner, locked) = first_to_lock(&mut [&mut one, &mut two]).await?;
    arena.within("the next grant after the holder's death", died, locked.at, bound);
    let (mut first, second) = if winner == 0 { (one, two) } else { (two, one) };
    first.heard_before(locked);
    Ok((first, second))
}

/// **Bound:** a holder that was stopped for 1.5 to 3 leases is told within 10 ms after it runs again that it has lost the
/// lock; its write is refused; and what it does to give back the lost lock harms nobody.
pub(super) async fn paused(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = arena.dice.millis(300, 600);
    arena.is_kept = arena.dice.coin();
    let mut holder = arena.worker("holder").await?;
    // Those who come later hold it for longer than anybody is stopped here.
    let (lease, is_kept) = (arena.lease, arena.is_kept);
    (arena.lease, arena.is_kept) = (Duration::from_secs(10), true);
    let (mut next, mut last) = (arena.worker("next").await?, arena.worker("last").await?);
    holder.ask("lock", 1, &["locked"]).await?;
    holder.ask("write", 1, &["accepted"]).await?;
    arena.let_wait(&mut next, 1).await?;
    arena.let_wait(&mut last, 2).await?;

    holder.pause()?;
    arena.count_fault();
    let until = now() + nanos(lease.mul_f64(1.5) + lease.mul_f64(1.5 * arena.dice.fraction()));
    let (winner, _) = first_to_lock(&mut [&mut next, &mut last]).await?;
    let (first, second) = if winner == 0 { (&mut next, &mut last) } else { (&mut last, &mut next) };
    first.ask("write", 1, &["accepted"]).await?;
    sleep(Duration::from_nanos(until.saturating_sub(now()))).await;
    let resumed = holder.resume()?;

    let told = holder.says(1, &["lost"]).await?;
    let kind = if is_kept { "a watchdog's" } else { "a" };
    arena.within(&format!("telling the holder of {kind} lease"), resumed, told.at, TOLD_WITHIN);
    holder.ask("check", 1, &["held", "lost"]).await.map(|said| {
        arena.demand(said.word == "lost", || "a holder that was stopped believes to hold the lock".into());
    })?;
    let written = holder.ask("write", 1, &["accepted", "refused"]).await?;
    arena.demand(written.word == "refused", || "the write of a holder that was stopped was accepted".into());
    holder.ask("release", 1, &["was-lost"]).await?;

    // Whatever the old holder has done to give it back: the new one still has it, and nobody else.
    sleep(Duration::from_millis(50)).await;
    first.ask("check", 1, &["held"]).await?;
    let intruder = second.has_said(1, "locked");
    arena.demand(intruder.is_none(), || {
        "two hold the lock after the old holder gave back what it had lost".into()
    });
    first.ask("release", 1, &["released"]).await?;
    second.says(1, &["locked"]).await?;
    second.ask("release", 1, &["released"]).await?;
    Ok(())
}
