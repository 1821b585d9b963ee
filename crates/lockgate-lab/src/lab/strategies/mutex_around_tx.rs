//! **Exact in one process:** a mutex around the whole transaction, released after the commit.
//!
//! **Fails across processes:** each has a mutex of its own, and they know nothing of each other.
//!
//! ```text
//! process 1: lock; BEGIN; read 5              process 2: lock (another one); BEGIN; read 5
//! process 1: write 4; COMMIT; unlock          process 2: write 4; COMMIT; unlock
//! ```
//!
//! Who gets the mutex reads what the one before has committed, because the commit came first. Everybody waits for everybody,
//! though: the crowd is as fast as one transaction after the other.

use tokio::sync::Mutex;

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "mutex-around-tx",
    title: "Mutex, released after the commit",
    family: Family::InProcess,
    claim: || Claim::exact_in_one_process(Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)),
    open: |scene| Box::pin(async { opened(MutexAroundTransaction { scene, mutex: Mutex::default() }) }),
    ..PLAIN
};

struct MutexAroundTransaction {
    scene: Scene,
    mutex: Mutex<()>,
}

impl Taker for MutexAroundTransaction {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let _guard = self.mutex.lock().await;
            take_in_transaction(&self.scene, user).await
        })
    }
}
