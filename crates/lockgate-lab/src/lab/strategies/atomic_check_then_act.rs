//! **Fails: oversells, when more want one than there are.** An atomic counter, looked at first and lowered later.
//!
//! ```text
//! A: counter is 1, so there is one
//!      B: counter is 1, so there is one
//! A: writes to the database; lowers the counter to 0
//!      B: writes to the database; lowers the counter to -1
//! ```
//!
//! Each step is atomic, the two together are not. Everybody who looks while somebody else writes sees a number that is already
//! spoken for. (As long as there is enough for all, nobody notices: that is how it gets into production.)

use std::sync::atomic::{AtomicI64, Ordering};

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_down;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "atomic-check-then-act",
    title: "Atomic counter, checked and then lowered",
    family: Family::InProcess,
    claim: || Claim::fails(Flaw::Oversold, &[], When::MoreUsersThanStock),
    open: |scene| {
        Box::pin(async {
            let counter = AtomicI64::new(i64::try_from(scene.stock)?);
            opened(CheckThenAct { scene, counter })
        })
    },
    ..PLAIN
};

struct CheckThenAct {
    scene: Scene,
    counter: AtomicI64,
}

impl Taker for CheckThenAct {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            if self.counter.load(Ordering::SeqCst) <= 0 {
                return Ok(Answer::SoldOut);
            }
            write_down(&self.scene, user).await?;
            self.counter.fetch_sub(1, Ordering::SeqCst);
            Ok(Answer::Got)
        })
    }
}
