//! **Exact across processes**, and while one of three servers is away: a lock on the majority of independent Redis servers.
//!
//! ```text
//! A: asks 1, 2, 3 → yours, yours, yours        B: asks 1, 2, 3 → taken, taken, taken; tries again
//! ```
//!
//! It survives the loss of a server, which a lock on one does not. Each acquisition asks all of them, in a crowd votes split and
//! everybody begins anew, and there is no queue: by far the most calls of all locks here. A holder that is paused for longer than
//! its lease is as wrong as anywhere; only a fence helps against that.

use lockgate::lock::QuorumMutex;
use tokio::sync::Semaphore;

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

/// How many of a process try at the same time. With hundreds, votes split so often that hardly anybody gets through: whoever
/// uses this lock in earnest lets few at it.
const CONTENDERS: usize = 8;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "redlock",
    title: "Lock on the majority of three Redis",
    family: Family::RedisLock,
    needs: &[Need::Quorum],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = scene.quorum().await?.mutex(scene.lock_name())?;
            opened(OnMajority { mutex, door: Semaphore::new(CONTENDERS), scene })
        })
    },
    ..PLAIN
};

struct OnMajority {
    mutex: QuorumMutex,
    door: Semaphore,
    scene: Scene,
}

impl Taker for OnMajority {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let _at_the_door = self.door.acquire().await?;
            let guard = self.mutex.lock().await?;
            let answer = take_in_transaction(&self.scene, user).await;
            guard.release().await?;
            answer
        })
    }
}
