//! **Exact across processes:** a lock in Redis; waiters stand in a queue there, and who releases it hands it to the first.
//!
//! ```text
//! A: acquire → yours; …; COMMIT; release: Redis gives it to B in the same step, and tells B
//!      B: told that it is its turn; …
//! ```
//!
//! One or two calls per acquisition however many wait, first come, first served, and the lock is never free while somebody
//! wants it. Inside a process it is passed on without asking Redis at all.

use lockgate::lock::{Mutex, Waiting};

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "redis-handoff",
    title: "Lock in Redis, handed to the next in line",
    family: Family::RedisLock,
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = scene.gate().await?.mutex(scene.lock_name())?.waiting(Waiting::HandOff);
            opened(HandedOver { mutex, scene })
        })
    },
    ..PLAIN
};

struct HandedOver {
    mutex: Mutex,
    scene: Scene,
}

impl Taker for HandedOver {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let guard = self.mutex.lock().await?;
            let answer = take_in_transaction(&self.scene, user).await;
            guard.release().await?;
            answer
        })
    }
}
