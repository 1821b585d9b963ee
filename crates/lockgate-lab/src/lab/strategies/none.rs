//! **Fails: loses updates, and then oversells.** A transaction, and nothing else.
//!
//! ```text
//! A: BEGIN; read stock 5
//!      B: BEGIN; read stock 5
//! A: write 4; insert A; COMMIT
//!      B: write 4; insert B; COMMIT      two are gone, the stock says one
//! ```
//!
//! A transaction is all or nothing; that is not the same as one after the other. At READ COMMITTED, which is the default nearly
//! everywhere, both may read before either writes, and the second write covers the first.

use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "none",
    title: "Read, subtract, write",
    family: Family::Nothing,
    claim: || Claim::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always),
    needs: &[Need::ConcurrentTransactions],
    open: |scene| Box::pin(async { opened(Unprotected(scene)) }),
    ..PLAIN
};

struct Unprotected(Scene);

impl Taker for Unprotected {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(take_in_transaction(&self.0, user))
    }
}
