//! Faults of waiters. The *heir* is the first of them: the one that is given the lock next.

use std::time::Duration;

use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::hand::{Hand, now};
use super::stop::Stop;

/// Somebody holds it, and two wait, the heir first. The lease is long, so that nobody is rescued by its end.
async fn holder_heir_and_last(arena: &mut Arena) -> Result<[Hand; 3], Stop> {
    (arena.lease, arena.is_kept) = (Duration::from_secs(20), arena.dice.coin());
    arena.claim = arena.dice.millis(300, 700);
    wait_in_line(arena).await
}

async fn wait_in_line(arena: &mut Arena) -> Result<[Hand; 3], Stop> {
    let (mut holder, mut heir) = (arena.worker("holder").await?, arena.worker("heir").await?);
    let mut last = arena.worker("last").await?;
    holder.ask("lock", 1, &["locked"]).await?;
    arena.let_wait(&mut heir, 1).await?;
    arena.let_wait(&mut last, 2).await?;
    sleep(arena.dice.millis(0, 50)).await;
    Ok([holder, heir, last])
}

/// **Bound:** none to be seen. The dead waiter's connection is closed, so it is passed over at once.
pub(super) async fn killed_in_the_queue(arena: &mut Arena) -> Result<(), Stop> {
    let [mut holder, mut heir, mut last] = holder_heir_and_last(arena).await?;
    heir.kill()?;
    arena.count_fault();
    sleep(arena.dice.millis(5, 50)).await;
    let released = now();
    holder.ask("release", 1, &["released"]).await?;
    let locked = last.says(1, &["locked"]).await?;
    arena.within("the grant behind a waiter that is dead", released, locked.at, PROMPT);
    last.ask("write", 1, &["accepted"]).await?;
    last.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// **Bound:** the claim lease and 100 ms, whether it died just before, while or just after it was given the lock.
pub(super) async fn killed_as_heir(arena: &mut Arena) -> Result<(), Stop> {
    let [mut holder, mut heir, mut last] = holder_heir_and_last(arena).await?;
    let released = now();
    let a_moment = arena.dice.millis(0, 4);
    if arena.dice.coin() {
        holder.tell("release 1")?;
        // The heir is given it in about a millisecond.
        sleep(a_moment).await;
        heir.kill()?;
    } else {
        // It is stopped, so the message reaches its kernel; and dies with the message unread.
        heir.pause()?;
        holder.ask("release", 1, &["released"]).await?;
        sleep(a_moment).await;
        heir.kill()?;
    }
    arena.count_fault();
    let locked = last.says(1, &["locked"]).await?;
    arena.within("the grant behind an heir that died", released, locked.at, arena.claim + PROMPT);
    last.ask("write", 1, &["accepted"]).await?;
    last.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// **Bound:** the claim lease and 100 ms. When it runs again, it does not believe to have what it was given.
pub(super) async fn paused_as_heir(arena: &mut Arena) -> Result<(), Stop> {
    let [mut holder, mut heir, mut last] = holder_heir_and_last(arena).await?;
    heir.pause()?;
    arena.count_fault();
    let released = now();
    holder.ask("release", 1, &["released"]).await?;
    let locked = last.says(1, &["locked"]).await?;
    arena.within("the grant behind an heir that was stopped", released, locked.at, arena.claim + PROMPT);
    last.ask("write", 1, &["accepted"]).await?;
    sleep(arena.dice.millis(0, 500)).await;

    heir.resume()?;
    sleep(arena.dice.millis(100, 300)).await;
    let believes = heir.has_said(1, "locked");
    arena.demand(believes.is_none(), || "an heir that was stopped believes to hold the lock".into());
    last.ask("release", 1, &["released"]).await?;
    heir.says(1, &["locked"]).await?;
    heir.ask("write", 1, &["accepted"]).await?;
    heir.ask("release", 1, &["released"]).await?;
    Ok(())
}

/// **Bound:** the lease, the claim lease and 100 ms, whether the heir is dead or stopped.
pub(super) async fn gone_with_the_holder(arena: &mut Arena) -> Result<(), Stop> {
    (arena.lease, arena.is_kept) = (arena.dice.millis(400, 700), true);
    arena.claim = arena.dice.millis(300, 500);
    let [mut holder, mut heir, mut last] = wait_in_line(arena).await?;
    let heir_dies = arena.dice.coin();
    if heir_dies {
        heir.kill()?;
    } else {
        heir.pause()?;
    }
    let died = holder.kill()?;
    arena.count_fault();
    arena.count_fault();
    let locked = last.says(1, &["locked"]).await?;
    let what = if heir_dies { "holder and heir died" } else { "the holder died and the heir was stopped" };
    let bound = arena.lease + arena.claim + PROMPT;
    arena.within(&format!("the grant after {what}"), died, locked.at, bound);
    last.ask("write", 1, &["accepted"]).await?;
    if !heir_dies {
        heir.resume()?;
    }
    last.ask("release", 1, &["released"]).await?;
    if !heir_dies {
        heir.says(1, &["locked"]).await?;
        heir.ask("write", 1, &["accepted"]).await?;
    }
    Ok(())
}
