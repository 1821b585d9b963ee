//! Everything at once: processes are killed and stopped, connections cut, replies lost, scripts forgotten, while a crowd
//! with every way of waiting works.
//!
//! **Bound:** everybody has had the lock again five seconds after the last fault. At no time two believe to have it.

use std::time::Duration;

use lockgate::testing::proxy::Direction;
use tokio::time::sleep;

use super::arena::Arena;
use super::crowd::Crowd;
use super::stop::Stop;

pub(super) const PROCESSES: usize = 3;
const FAULTS: u32 = 20;

pub(super) async fn storm(arena: &mut Arena) -> Result<(), Stop> {
    arena.lease = arena.dice.millis(300, 700);
    arena.claim = arena.dice.millis(200, 500);
    let mut crowd = Crowd::begin(arena, PROCESSES).await?;
    for _ in 0..FAULTS {
        sleep(arena.dice.millis(10, 100)).await;
        strike(arena, &mut crowd).await?;
        arena.count_fault();
    }
    for network in &crowd.networks {
        network.heal();
    }
    crowd.goes_on(arena, "a storm").await
}

pub(super) async fn strike(arena: &mut Arena, crowd: &mut Crowd) -> Result<(), Stop> {
    let place = arena.dice.one_of(&[0, 1, 2]);
    let network = &crowd.networks[place];
    match arena.dice.below(8) {
        0 => crowd.replace(arena, place).await?,
        1 => {
            // Around the lease: some survive it, some do not.
            crowd.hands[place].pause()?;
            sleep(arena.lease.mul_f64(2.0 * arena.dice.fraction())).await;
            crowd.hands[place].resume()?;
        }
        2 => network.reset(),
        3 => {
            network.black_hole(arena.dice.one_of(&[Direction::ToClient, Direction::ToServer]));
            sleep(arena.dice.millis(10, 300)).await;
            // A connection that has lost something never goes on.
            network.reset();
            network.heal();
        }
        4 => {
            network.delay(arena.dice.millis(10, 300));
            sleep(arena.dice.millis(100, 500)).await;
            network.delay(Duration::ZERO);
        }
        5 => drop(arena.redis.command(&["SCRIPT", "FLUSH"])?),
        6 => drop(arena.redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"])?),
        _ => network.lose_next_reply(),
    }
    Ok(())
}
