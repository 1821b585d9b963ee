//! Everything at once, as in [`storm`](super::storm), on a lock that is shared; and Redis is stopped too.
//!
//! **Bound:** every process has had its share again five seconds after the last fault, and what nobody wants is free again.
//! At no time somebody writes beside others, or believes to have a permit that is not there.

use std::time::Duration;

use tokio::time::sleep;

use super::arena::{Arena, PROMPT};
use super::crowd::Crowd;
use super::recipe::Want;
use super::stop::Stop;
use super::storm::{PROCESSES, strike};

const FAULTS: u32 = 20;

/// The calm before it: whoever is stopped stops others too, so this is when most is done.
const CALM: Duration = Duration::from_secs(2);

/// How many permits there are.
const OF: u32 = 4;

pub(super) async fn of_readers_and_writers(arena: &mut Arena) -> Result<(), Stop> {
    arena.wants = vec![Want::Read, Want::Read, Want::Write];
    storm(arena).await
}

pub(super) async fn of_permits(arena: &mut Arena) -> Result<(), Stop> {
    arena.wants = [1, 1, 2, 3].map(|count| Want::Permits { count, of: OF }).to_vec();
    storm(arena).await
}

async fn storm(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = arena.dice.millis(300, 700);
    arena.claim = arena.dice.millis(200, 500);
    arena.is_kept = arena.dice.coin();
    (arena.tasks, arena.shared_by) = (4, 2);
    let mut crowd = Crowd::begin(arena, PROCESSES).await?;
    // One is far away from the store, so that the others act on what it has said before it knows the answer.
    let distance = arena.dice.millis(2, 8);
    crowd.networks[0].delay(distance);
    sleep(CALM).await;
    for _ in 0..FAULTS {
        crowd.networks[0].delay(distance);
        sleep(arena.dice.millis(20, 200)).await;
        if arena.dice.below(8) == 0 {
            // Around the lease: some survive it, some do not.
            arena.redis.pause()?;
            sleep(arena.lease.mul_f64(2.0 * arena.dice.fraction())).await;
            arena.redis.resume()?;
        } else {
            strike(arena, &mut crowd).await?;
        }
        arena.count_fault();
    }
    for network in &crowd.networks {
        network.heal();
    }
    crowd.goes_on(arena, "a storm").await?;
    arena.becomes_free(arena.lease.max(arena.claim) + PROMPT).await;
    Ok(())
}
