//! **Exact in one process, or gives up:** a mutex for which nobody waits longer than a while (`ReentrantLock.tryLock(time)`).
//!
//! **Fails across processes**, as every lock in memory does.
//!
//! ```text
//! A … Y: in front, 20 ms each
//!      Z: tryLock(5 s) … sorry, too busy      turned away, although there may be some left
//! ```
//!
//! A bound on waiting keeps a crowd from piling up for ever, and makes the shop undersell when it is too short: whoever gives
//! up must be told to come again, not that there are none left.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

/// How long a user waits for the mutex.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) const STRATEGY: Strategy = Strategy {
    name: "mutex-with-timeout",
    title: "Mutex, with an end to waiting",
    family: Family::InProcess,
    claim: || Claim {
        in_one_process: Promise::ExactOrGivesUp,
        across_processes: Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold, Flaw::Undersold], When::Always),
    },
    open: |scene| Box::pin(async { opened(MutexWithTimeout { scene, mutex: Mutex::default() }) }),
    ..PLAIN
};

struct MutexWithTimeout {
    scene: Scene,
    mutex: Mutex<()>,
}

impl Taker for MutexWithTimeout {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let Ok(_guard) = timeout(PATIENCE, self.mutex.lock()).await else { return Ok(Answer::GaveUp) };
            take_in_transaction(&self.scene, user).await
        })
    }
}
