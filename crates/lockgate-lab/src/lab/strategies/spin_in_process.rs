//! **Exact in one process:** a flag that everybody tries to set, again and again.
//!
//! **Fails across processes**, as every lock in memory does.
//!
//! ```text
//! process 1: flag free → set; read 5          process 2: flag (another one) free → set; read 5
//! ```
//!
//! Spinning saves the change of context when the lock is held for nanoseconds. Here it is held for a transaction, thousands of
//! times as long, and those who spin take the processor from the one whom they wait for. So they pause when they have looked
//! often enough, as real spin locks do; nobody is first come, first served.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::{Backoff, take_in_transaction};

/// How often somebody looks before it pauses.
const LOOKS: u32 = 50;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "spin-in-process",
    title: "Spin lock in memory",
    family: Family::InProcess,
    claim: || Claim::exact_in_one_process(Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)),
    open: |scene| Box::pin(async { opened(Spinning { scene, is_taken: AtomicBool::default() }) }),
    ..PLAIN
};

struct Spinning {
    scene: Scene,
    is_taken: AtomicBool,
}

/// Frees the flag when it is dropped, whatever happened.
struct Flag<'a>(&'a AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Spinning {
    async fn lock(&self) -> Flag<'_> {
        let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(8));
        loop {
            for _ in 0..LOOKS {
                if !self.is_taken.swap(true, Ordering::Acquire) {
                    return Flag(&self.is_taken);
                }
                tokio::task::yield_now().await;
            }
            backoff.pause().await;
        }
    }
}

impl Taker for Spinning {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let _flag = self.lock().await;
            take_in_transaction(&self.scene, user).await
        })
    }
}
