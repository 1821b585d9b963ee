//! Processes that take the lock, write and give it back without end, each behind a network of its own that may fail.

use std::time::Duration;

use lockgate::testing::proxy::FaultProxy;
use tokio::time::sleep;

use super::arena::Arena;
use super::hand::{Hand, PATIENCE, now};
use super::orders::Policy;
use super::stop::Stop;

/// How soon after the last fault every process has had the lock again. Calls that were under way give up after three
/// seconds, and waiters ask again when they can.
const BACK_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Crowd {
    pub(super) hands: Vec<Hand>,
    pub(super) networks: Vec<FaultProxy>,
}

impl Crowd {
    /// The first process waits as the run says, the others in a similar way. Returns when all have had the lock.
    pub(super) async fn begin(arena: &mut Arena, processes: usize) -> Result<Self, Stop> {
        let mut crowd = Self { hands: Vec::new(), networks: Vec::new() };
        for process in 0..processes {
            let (hand, network) = begin_work(arena, process).await?;
            crowd.hands.push(hand);
            crowd.networks.push(network);
        }
        crowd.all_had_it_again().await?;
        Ok(crowd)
    }

    /// Kills a process, and starts another one in its place.
    pub(super) async fn replace(&mut self, arena: &mut Arena, place: usize) -> Result<(), Stop> {
        self.hands[place].kill()?;
        (self.hands[place], self.networks[place]) = begin_work(arena, place).await?;
        Ok(())
    }

    /// Returns when every process has had the lock again.
    async fn all_had_it_again(&mut self) -> Result<(), Stop> {
        let mut before = Vec::new();
        for hand in &mut self.hands {
            before.push(hand.ask("grants", 0, &["grants"]).await?.number);
        }
        let began = now();
        for (hand, before) in self.hands.iter_mut().zip(before) {
            while hand.ask("grants", 0, &["grants"]).await?.number <= before {
                if Duration::from_nanos(now() - began) > PATIENCE {
                    return Err(Stop::broken(format!("{} has not had the lock for {PATIENCE:?}", hand.name)));
                }
                sleep(Duration::from_millis(5)).await;
            }
        }
        Ok(())
    }

    /// The faults are over: everybody has the lock again in time, and then all rest.
    pub(super) async fn goes_on(mut self, arena: &mut Arena, what: &str) -> Result<(), Stop> {
        let over = now();
        self.all_had_it_again().await?;
        arena.within(&format!("going on after {what}"), over, now(), BACK_WITHIN);
        for hand in &mut self.hands {
            hand.tell("rest")?;
        }
        for hand in &mut self.hands {
            hand.says(0, &["resting"]).await?;
        }
        Ok(())
    }
}

async fn begin_work(arena: &mut Arena, process: usize) -> Result<(Hand, FaultProxy), Stop> {
    let of_the_run = arena.policy;
    if process > 0 {
        // Those who do not queue never get a lock for which others always do.
        let family = if of_the_run.queues() { Policy::QUEUED } else { [Policy::Notify, Policy::Spin] };
        arena.policy = arena.dice.one_of(&family);
    }
    let (mut hand, network) = arena.worker_behind_a_proxy(&format!("crowd-{process}")).await?;
    arena.policy = of_the_run;
    hand.tell(&format!("work {}", arena.tasks))?;
    hand.says(0, &["working"]).await?;
    Ok((hand, network))
}
