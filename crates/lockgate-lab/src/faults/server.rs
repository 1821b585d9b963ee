//! Faults of the store's server, under a crowd that does not stop.
//!
//! **Bound** of all of them: everybody has had the lock again five seconds after the fault is over.

use tokio::time::sleep;

use super::arena::Arena;
use super::crowd::Crowd;
use super::stop::Stop;

const PROCESSES: usize = 3;

async fn crowd(arena: &mut Arena) -> Result<Crowd, Stop> {
    arena.lease = arena.dice.millis(400, 800);
    let crowd = Crowd::begin(arena, PROCESSES).await?;
    sleep(arena.dice.millis(50, 300)).await;
    Ok(crowd)
}

/// Redis kept all that it had said, so there is one holder at a time.
pub(super) async fn restarted(arena: &mut Arena) -> Result<(), Stop> {
    let crowd = crowd(arena).await?;
    for _ in 0..2 {
        arena.redis.kill();
        arena.count_fault();
        sleep(arena.dice.millis(0, 300)).await;
        arena.redis.restart()?;
        sleep(arena.dice.millis(50, 300)).await;
    }
    crowd.goes_on(arena, "a restart").await
}

/// Two may hold the lock until the older lease ends; but fences rise, so that of two writers the older is refused.
pub(super) async fn forgets(arena: &mut Arena) -> Result<(), Stop> {
    arena.store_forgets = true;
    let crowd = crowd(arena).await?;
    arena.redis.kill();
    arena.redis.restart()?;
    arena.count_fault();
    crowd.goes_on(arena, "a restart without data").await
}

/// Nobody notices.
pub(super) async fn scripts_flushed(arena: &mut Arena) -> Result<(), Stop> {
    let crowd = crowd(arena).await?;
    for _ in 0..10 {
        arena.redis.command(&["SCRIPT", "FLUSH"])?;
        arena.count_fault();
        sleep(arena.dice.millis(10, 100)).await;
    }
    crowd.goes_on(arena, "the loss of the scripts").await
}

/// Whoever held the lock has lost it meanwhile, and knows it.
pub(super) async fn paused(arena: &mut Arena) -> Result<(), Stop> {
    let crowd = crowd(arena).await?;
    arena.redis.pause()?;
    arena.count_fault();
    sleep(arena.lease * 2).await;
    arena.redis.resume()?;
    crowd.goes_on(arena, "a silence of twice the lease").await
}
