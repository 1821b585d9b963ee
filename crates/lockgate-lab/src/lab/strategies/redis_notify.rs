//! **Exact across processes:** a lock in Redis; waiters subscribe, and try again when they hear that it is free.
//!
//! ```text
//! A: acquire → yours; …; COMMIT; release, which publishes "free"
//!      B, C in two processes: hear it, acquire: one gets it, the other waits for the next message
//! ```
//!
//! No polling, but every release wakes up somebody in every process, and all but one come for nothing. Whoever is faster gets
//! it, so there is no order.

use lockgate::lock::{Mutex, Waiting};

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "redis-notify",
    title: "Lock in Redis, waiters hear when it is free",
    family: Family::RedisLock,
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = scene.gate().await?.mutex(scene.lock_name())?.waiting(Waiting::Notify);
            opened(Notified { mutex, scene })
        })
    },
    ..PLAIN
};

struct Notified {
    mutex: Mutex,
    scene: Scene,
}

impl Taker for Notified {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let guard = self.mutex.lock().await?;
            let answer = take_in_transaction(&self.scene, user).await;
            guard.release().await?;
            answer
        })
    }
}
