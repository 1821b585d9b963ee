//! **Exact across processes:** a lock in Redis with a lease, a watchdog and a token; waiters try again and again.
//!
//! ```text
//! A: acquire → yours, fence 7; BEGIN; read 5; write 4; COMMIT; release
//!      B: acquire → taken; sleep 1 ms; acquire → taken; sleep 2 ms; …; acquire → yours, fence 8
//! ```
//!
//! Right, and a waste: the number of calls grows with the number of waiters and with how long the lock is held, and after a
//! release it stays free until somebody happens to try. Whoever is lucky gets it.

use lockgate::lock::{Mutex, Waiting};

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "redis-spin",
    title: "Lock in Redis, waiters try again and again",
    family: Family::RedisLock,
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = scene.gate().await?.mutex(scene.lock_name())?.waiting(Waiting::spin());
            opened(Spinning { mutex, scene })
        })
    },
    ..PLAIN
};

struct Spinning {
    mutex: Mutex,
    scene: Scene,
}

impl Taker for Spinning {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let guard = self.mutex.lock().await?;
            let answer = take_in_transaction(&self.scene, user).await;
            guard.release().await?;
            answer
        })
    }
}
