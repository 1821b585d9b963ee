//! **Exact in one process**, as long as it does not die half-way: a mutex, and no transaction.
//!
//! **Fails across processes:** each has a mutex of its own, and they know nothing of each other.
//!
//! ```text
//! process 1: lock; read 5                     process 2: lock (another one); read 5
//! process 1: write 4; insert A; unlock        process 2: write 4; insert B; unlock
//! ```
//!
//! Every statement is committed when it returns, so nothing is hidden from whoever gets the mutex next. The price is a commit
//! for each statement, and no atomicity: who is killed between the two writes has taken one and given it to nobody.

use tokio::sync::Mutex;

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_by_number;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "mutex-no-tx",
    title: "Mutex, without a transaction",
    family: Family::InProcess,
    claim: || Claim::exact_in_one_process(Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)),
    open: |scene| Box::pin(async { opened(MutexWithoutTransaction { scene, mutex: Mutex::default() }) }),
    ..PLAIN
};

struct MutexWithoutTransaction {
    scene: Scene,
    mutex: Mutex<()>,
}

impl Taker for MutexWithoutTransaction {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let _guard = self.mutex.lock().await;
            let mut connection = self.scene.plain().await?;
            take_by_number(&mut connection, user).await
        })
    }
}
