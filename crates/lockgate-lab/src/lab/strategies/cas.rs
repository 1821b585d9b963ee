//! **Exact in one process**, as long as it does not die: a counter that is lowered by compare-and-swap, then the database.
//!
//! **Fails across processes:** each counts by itself, so together they give away several times the stock.
//!
//! ```text
//! process 1: 300 → 299 … 0, sold out          process 2: 300 → 299 … 0, sold out: 600 of 300
//! ```
//!
//! "If it is still 5, make it 4" is one step, so looking and lowering cannot be torn apart. Who loses the race looks again. The
//! database is only told afterwards, by how much and not which number, as these writes may overtake each other. When the process
//! dies in between, the counter is gone, and what was taken from it is nobody's.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_down;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "cas",
    title: "Atomic counter, compare and swap",
    family: Family::InProcess,
    claim: || Claim::exact_in_one_process(Promise::fails(Flaw::Oversold, &[], When::MoreUsersThanStock)),
    open: |scene| {
        Box::pin(async {
            let counter = AtomicU64::new(scene.stock);
            opened(CompareAndSwap { scene, counter })
        })
    },
    ..PLAIN
};

struct CompareAndSwap {
    scene: Scene,
    counter: AtomicU64,
}

impl CompareAndSwap {
    /// Whether one was left, and is ours now.
    fn take_one(&self) -> bool {
        let mut seen = self.counter.load(Ordering::Relaxed);
        while seen > 0 {
            match self.counter.compare_exchange_weak(seen, seen - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => {
                    self.scene.count_retry();
                    seen = now;
                }
            }
        }
        false
    }
}

impl Taker for CompareAndSwap {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            if !self.take_one() {
                return Ok(Answer::SoldOut);
            }
            write_down(&self.scene, user).await?;
            Ok(Answer::Got)
        })
    }
}
