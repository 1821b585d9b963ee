//! Faults of somebody who shares a lock with others: a reader among ten, a holder of permits, a reader far away.

use std::time::Duration;

use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::hand::{Hand, nanos, now};
use super::holder::TOLD_WITHIN;
use super::recipe::Want;
use super::stop::Stop;

const READERS: u64 = 10;

/// What a run does to its victim.
struct Victim {
    hand: Hand,
    dies: bool,
    gone: u64,
    /// When the store keeps nothing for it any more.
    over: u64,
}

impl Victim {
    /// It dies, or stops where it stands.
    fn strike(arena: &mut Arena, mut hand: Hand) -> Result<Self, Stop> {
        let (dies, gone) = (arena.dice.coin(), now());
        if dies {
            hand.kill()?;
        } else {
            hand.pause()?;
        }
        arena.count_fault();
        // It was renewed before it stopped, so its lease ends no later than that.
        Ok(Self { hand, dies, gone, over: now() + nanos(arena.lease) })
    }

    /// One that was stopped runs again, after 1.5 leases: it must know that it has lost what it had, and do no harm.
    async fn comes_back(mut self, arena: &mut Arena) -> Result<(), Stop> {
        if self.dies {
            return Ok(());
        }
        until(self.gone + nanos(arena.lease.mul_f64(1.5))).await;
        let resumed = self.hand.resume()?;
        let told = self.hand.says(1, &["lost"]).await?;
        arena.within("telling one that was stopped", resumed, told.at, TOLD_WITHIN);
        let believes = self.hand.ask("check", 1, &["held", "lost"]).await?;
        arena.demand(believes.word == "lost", || "one that was stopped believes to share the lock".into());
        self.hand.ask("release", 1, &["was-lost"]).await?;
        Ok(())
    }
}

async fn until(moment: u64) {
    sleep(Duration::from_nanos(moment.saturating_sub(now()))).await;
}

/// Starts a process that takes its share at once.
async fn sharer(arena: &mut Arena, name: &str, want: &Want) -> Result<Hand, Stop> {
    arena.wants = vec![want.clone()];
    let mut hand = arena.worker(name).await?;
    hand.ask("lock", 1, &["locked"]).await?;
    Ok(hand)
}

/// Starts a process that waits in line, behind `before` others.
async fn waiter(arena: &mut Arena, name: &str, want: &Want, before: u64) -> Result<Hand, Stop> {
    arena.wants = vec![want.clone()];
    let mut hand = arena.worker(name).await?;
    arena.let_wait(&mut hand, before + 1).await?;
    Ok(hand)
}

/// All of them still have what they had.
async fn still_hold(arena: &mut Arena, hands: &mut [Hand]) -> Result<(), Stop> {
    for hand in hands {
        let said = hand.ask("check", 1, &["held", "lost"]).await?;
        let name = &hand.name;
        arena.demand(said.word == "held", || format!("{name} lives, and has lost its share"));
    }
    Ok(())
}

fn still_waits(arena: &mut Arena, hand: &mut Hand, why: &str) {
    let locked = hand.has_said(1, "locked");
    let name = &hand.name;
    arena.demand(locked.is_none(), || format!("{name} has the lock {why}"));
}

/// They give back what they have; returns when the last of them began to.
async fn release(hands: &mut [Hand]) -> Result<u64, Stop> {
    let mut last = now();
    for hand in hands {
        last = now();
        hand.ask("release", 1, &["released"]).await?;
    }
    Ok(last)
}

/// **Bound:** a writer has the lock the lease and 100 ms after a reader among ten has died or been stopped, and 100 ms after
/// the nine living ones have released, whichever is later, and not before. Meanwhile the nine keep what they have, and
/// readers who came after the writer wait behind it.
pub(super) async fn dead_reader(arena: &mut Arena) -> Result<(), Stop> {
    (arena.lease, arena.is_kept, arena.shared_by) = (arena.dice.millis(400, 700), true, READERS);
    let mut readers = Vec::new();
    for number in 0..READERS {
        readers.push(sharer(arena, &format!("reader-{number}"), &Want::Read).await?);
    }
    let mut writer = waiter(arena, "writer", &Want::Write, 0).await?;
    let mut late =
        [waiter(arena, "late", &Want::Read, 1).await?, waiter(arena, "later", &Want::Read, 2).await?];
    // So that all have been renewed.
    sleep(arena.lease.mul_f64(1.5) + arena.dice.millis(0, 100)).await;

    let place = usize::try_from(arena.dice.below(READERS)).unwrap_or(0);
    let victim = Victim::strike(arena, readers.swap_remove(place))?;
    if arena.dice.coin() {
        // The living outlive its lease.
        until(victim.over + nanos(PROMPT)).await;
    }
    still_hold(arena, &mut readers).await?;
    still_waits(arena, &mut writer, "beside readers");
    let free = victim.over.max(release(&mut readers).await?);

    let locked = writer.says(1, &["locked"]).await?;
    arena.within("the writer's grant after a reader was gone", free, locked.at, PROMPT);
    writer.ask("write", 1, &["accepted"]).await?;
    victim.comes_back(arena).await?;
    writer.ask("check", 1, &["held"]).await?;
    for hand in &mut late {
        still_waits(arena, hand, "beside the writer before it");
    }
    let released = release(std::slice::from_mut(&mut writer)).await?;
    for hand in &mut late {
        let locked = hand.says(1, &["locked"]).await?;
        arena.within("the grant to those behind the writer", released, locked.at, PROMPT);
    }
    release(&mut late).await?;
    arena.becomes_free(PROMPT).await;
    Ok(())
}

/// **Bound:** the permits of a holder that has died or been stopped go to the first in line the lease and 100 ms later. If
/// it wants more than that, it waits for one that is given back, and who wants less does not overtake it.
pub(super) async fn dead_permit_holder(arena: &mut Arena) -> Result<(), Stop> {
    let of = 4 + u32::try_from(arena.dice.below(4)).unwrap_or(0);
    let permits = |count| Want::Permits { count, of };
    (arena.lease, arena.is_kept, arena.shared_by) = (arena.dice.millis(400, 700), true, u64::from(of - 1));
    let victim = sharer(arena, "victim", &permits(2)).await?;
    let mut living = Vec::new();
    for number in 2..of {
        living.push(sharer(arena, &format!("holder-{number}"), &permits(1)).await?);
    }
    let wants_more = arena.dice.coin();
    let mut first = waiter(arena, "first", &permits(if wants_more { 3 } else { 2 }), 0).await?;
    let mut second = waiter(arena, "second", &permits(1), 1).await?;
    sleep(arena.lease.mul_f64(1.5) + arena.dice.millis(0, 100)).await;

    let victim = Victim::strike(arena, victim)?;
    still_waits(arena, &mut first, "before anything was free");
    let mut free = victim.over;
    if wants_more {
        until(victim.over + nanos(PROMPT)).await;
        still_waits(arena, &mut first, "although there is less than it wants");
        still_waits(arena, &mut second, "before the first in line");
        let last = living.len() - 1;
        free = release(&mut living[last..]).await?;
        living.truncate(last);
    }
    let locked = first.says(1, &["locked"]).await?;
    arena.within("the grant of what one that is gone had", free, locked.at, PROMPT);
    victim.comes_back(arena).await?;
    still_hold(arena, &mut living).await?;
    still_waits(arena, &mut second, "although all is taken");

    let released = release(&mut living[..1]).await?;
    let locked = second.says(1, &["locked"]).await?;
    arena.within("the grant to the second in line", released, locked.at, PROMPT);
    release(&mut living[1..]).await?;
    release(&mut [first, second]).await?;
    arena.becomes_free(PROMPT).await;
    Ok(())
}

/// A process whose writer has gone keeps its readers, and lets those of others in; the answer to that comes late, and the
/// last of its readers has gone by then.
///
/// **Bound:** the next writer of that process waits for the readers who came in meanwhile, and has the lock when the network
/// has let through what it holds back (twice) and 100 ms after the last of them has gone.
pub(super) async fn late_answer(arena: &mut Arena) -> Result<(), Stop> {
    (arena.lease, arena.is_kept) = (Duration::from_secs(10), true);
    arena.wants = vec![Want::Write, Want::Read, Want::Write];
    let (mut far, network) = arena.worker_behind_a_proxy("far").await?;
    far.ask("lock", 1, &["locked"]).await?;
    far.tell("lock 2")?;
    let mut near = waiter(arena, "near", &Want::Read, 0).await?;

    let distance = arena.dice.millis(200, 400);
    network.delay(distance);
    arena.count_fault();
    far.ask("release", 1, &["released"]).await?;
    far.says(2, &["locked"]).await?;
    far.tell("lock 3")?;
    near.says(1, &["locked"]).await?;
    // The store has let others in, and the answer to it is on its way.
    far.ask("release", 2, &["released"]).await?;
    sleep(arena.dice.millis(20, 150)).await;
    let writes = far.has_said(3, "locked");
    arena.demand(writes.is_none(), || "a process that became a reader writes beside another reader".into());
    near.ask("check", 1, &["held"]).await?;

    network.delay(Duration::ZERO);
    let released = release(std::slice::from_mut(&mut near)).await?;
    let locked = far.says(3, &["locked"]).await?;
    arena.within("the grant to the next writer", released, locked.at, distance * 2 + PROMPT);
    far.ask("write", 3, &["accepted"]).await?;
    far.ask("release", 3, &["released"]).await?;
    arena.becomes_free(PROMPT).await;
    Ok(())
}
