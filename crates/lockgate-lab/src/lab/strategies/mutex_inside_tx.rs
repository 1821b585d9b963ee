//! **Fails: loses updates, and then oversells.** A mutex that is released before the commit.
//!
//! ```text
//! A: BEGIN; lock; read 5; write 4; insert A; unlock
//!      B: lock; read 5                    A's 4 is not committed, so nobody else can see it
//! A: COMMIT
//!      B: write 4; insert B; unlock; COMMIT
//! ```
//!
//! That is what `@Transactional` around a `synchronized` block does: the lock is inside, the commit outside. A lock has to be
//! released after the commit, always.

use tokio::sync::Mutex;

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_by_number;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "mutex-inside-tx",
    title: "Mutex, released before the commit",
    family: Family::InProcess,
    claim: || Claim::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always),
    needs: &[Need::ConcurrentTransactions],
    open: |scene| Box::pin(async { opened(MutexInsideTransaction { scene, mutex: Mutex::default() }) }),
    ..PLAIN
};

struct MutexInsideTransaction {
    scene: Scene,
    mutex: Mutex<()>,
}

impl Taker for MutexInsideTransaction {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let mut transaction = self.scene.begin().await?;
            let guard = self.mutex.lock().await;
            let answer = take_by_number(&mut transaction, user).await?;
            drop(guard);
            transaction.commit().await?;
            Ok(answer)
        })
    }
}
