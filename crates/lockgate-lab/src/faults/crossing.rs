//! Locks of several names that cross each other, while those who want them die.
//!
//! **Bound:** nobody waits for longer than, for each process that died since or just before, its lease (or the claim lease,
//! if that is longer) and 100 ms, and once more for those who live: nobody waits for ever. For each name the history of its
//! holders is judged like that of a mutex. In the end everything is free.

use std::collections::HashMap;
use std::time::Duration;

use lockgate::testing::eventually_async;
use lockgate::testing::history::{Answer, Call, Step};
use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::crowd::Crowd;
use super::hand::{Hand, PATIENCE, nanos, now};
use super::recipe::{Standing, Want};
use super::stop::Stop;

const PROCESSES: usize = 5;
const KILLS: u32 = 14;

pub(super) async fn crossing(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = arena.dice.millis(300, 600);
    arena.claim = arena.dice.millis(200, 500);
    gone_while_it_waits_for_the_second(arena).await?;
    (arena.wants, arena.is_kept) = (crossing_wants(), arena.dice.coin());
    let died = kill_again_and_again(arena).await?;
    waits_are_bounded(arena, &died)
}

fn crossing_wants() -> Vec<Want> {
    vec![
        Want::names(["1", "2", "3"]),
        Want::names(["3", "2", "1"]),
        Want::names(["2", "3"]),
        Want::names(["1"]),
        Want::names(["2"]),
        Want::names(["3"]),
    ]
}

/// What a process that is gone costs the others, at the most.
fn cost_of_one(arena: &Arena) -> Duration {
    arena.lease.max(arena.claim) + PROMPT
}

async fn worker_who_wants<const N: usize>(
    arena: &mut Arena,
    name: &str,
    names: [&str; N],
) -> Result<Hand, Stop> {
    arena.wants = vec![Want::names(names)];
    arena.worker(name).await
}

async fn until_it_stands(arena: &Arena, name: &str, standing: Standing) -> Result<(), Stop> {
    let want = Want::names([name]);
    let stands = async || arena.standing_of(&want).await.is_ok_and(|now| now == standing);
    if eventually_async(PATIENCE, stands).await {
        return Ok(());
    }
    Err(Stop::broken(format!(
        "{name} should stand {standing:?}, and is {:?}",
        arena.standing_of(&want).await
    )))
}

/// **Bound:** who has the first of three names and dies, or is stopped, while it waits for the second, keeps those who want
/// the first waiting for its lease and 100 ms, and those who want the second not at all. If it runs again, it begins anew.
async fn gone_while_it_waits_for_the_second(arena: &mut Arena) -> Result<(), Stop> {
    let mut holder = worker_who_wants(arena, "holder", ["2"]).await?;
    let mut victim = worker_who_wants(arena, "victim", ["3", "2", "1"]).await?;
    let mut one = worker_who_wants(arena, "one", ["1"]).await?;
    let mut all = worker_who_wants(arena, "all", ["1", "2", "3"]).await?;
    holder.ask("lock", 1, &["locked"]).await?;
    victim.tell("lock 1")?;
    until_it_stands(arena, "1", Standing { taken: 1, waiting: 0 }).await?;
    until_it_stands(arena, "2", Standing { taken: 1, waiting: 1 }).await?;
    one.tell("lock 1")?;
    until_it_stands(arena, "1", Standing { taken: 1, waiting: 1 }).await?;
    sleep(arena.dice.millis(0, 700)).await;
    still_waits(arena, &mut one, "the first name of one that waits for the second");

    let dies = arena.dice.coin();
    let gone = now();
    if dies {
        victim.kill()?;
    } else {
        victim.pause()?;
    }
    arena.count_fault();
    let locked = one.says(1, &["locked"]).await?;
    arena.within("the grant of the first of several names", gone, locked.at, cost_of_one(arena));
    one.ask("write", 1, &["accepted"]).await?;

    all.tell("lock 1")?;
    until_it_stands(arena, "1", Standing { taken: 1, waiting: 1 }).await?;
    holder.ask("release", 1, &["released"]).await?;
    if !dies {
        victim.resume()?;
        sleep(arena.dice.millis(20, 200)).await;
        still_waits(arena, &mut victim, "what it has lost one of");
    }
    one.ask("release", 1, &["released"]).await?;
    let mut hands = vec![all];
    if !dies {
        hands.push(victim);
    }
    all_in_turn(arena, hands).await
}

fn still_waits(arena: &mut Arena, hand: &mut Hand, what: &str) {
    let locked = hand.has_said(1, "locked");
    let name = &hand.name;
    arena.demand(locked.is_none(), || format!("{name} has {what}"));
}

/// They get all names, one after the other, and give them back.
async fn all_in_turn(arena: &mut Arena, mut hands: Vec<Hand>) -> Result<(), Stop> {
    let mut since = now();
    while !hands.is_empty() {
        let mut in_line: Vec<&mut Hand> = hands.iter_mut().collect();
        let (place, locked) = super::hand::first_to_lock(&mut in_line).await?;
        let mut hand = hands.swap_remove(place);
        arena.within("the grant of several names", since, locked.at, cost_of_one(arena));
        hand.ask("write", 1, &["accepted"]).await?;
        since = now();
        hand.ask("release", 1, &["released"]).await?;
    }
    Ok(())
}

/// When somebody died.
async fn kill_again_and_again(arena: &mut Arena) -> Result<Vec<u64>, Stop> {
    let mut crowd = Crowd::begin(arena, PROCESSES).await?;
    let mut died = Vec::new();
    for _ in 0..KILLS {
        sleep(arena.dice.millis(20, 300)).await;
        let place = usize::try_from(arena.dice.below(u64::try_from(PROCESSES)?)).unwrap_or(0);
        died.push(now());
        arena.count_fault();
        crowd.replace(arena, place).await?;
    }
    crowd.goes_on(arena, "kills").await?;
    let bound = cost_of_one(arena);
    for want in ["1", "2", "3"] {
        arena.wants = vec![Want::names([want])];
        arena.becomes_free(bound).await;
    }
    Ok(died)
}

/// Judges all waits that came to an end. Those that never do are seen by who waits for the crowd.
fn waits_are_bounded(arena: &mut Arena, died: &[u64]) -> Result<(), Stop> {
    let history = arena.history()?;
    let mut asked = HashMap::new();
    let mut waits = Vec::new();
    for event in history.events() {
        let operation = (event.process.as_str(), event.op);
        match &event.step {
            Step::Invoke(Call::Acquire(acquire)) => _ = asked.insert(operation, (&acquire.lock, event.at)),
            Step::Ok(Answer::Acquired { .. }) => {
                waits.extend(asked.remove(&operation).map(|(lock, since)| (lock, since, event)));
            }
            _ => {}
        }
    }
    let cost = cost_of_one(arena);
    for (lock, since, event) in waits.into_iter().filter(|(_, _, event)| event.process.starts_with("crowd")) {
        let since_then = |died: &&u64| (since.saturating_sub(nanos(cost))..=event.at).contains(*died);
        let deaths = u32::try_from(died.iter().filter(since_then).count()).unwrap_or(u32::MAX);
        let what = format!("the wait of {} for {lock:?} with {deaths} deaths", event.process);
        arena.within(&what, since, event.at, cost.saturating_mul(deaths + 1));
    }
    Ok(())
}
