//! **Exact across processes:** `SELECT … FOR UPDATE` locks the row until the commit.
//!
//! ```text
//! A: BEGIN; read 5 FOR UPDATE
//!      B: BEGIN; read … FOR UPDATE            waits
//! A: write 4; insert A; COMMIT
//!      B: … 4; write 3; insert B; COMMIT
//! ```
//!
//! The lock is where the data is, so it is released by the commit itself and by the end of a connection: no lease, no crash to
//! think of. Everybody who waits holds a connection meanwhile, and those are few; whoever takes two rows in another order than
//! somebody else deadlocks.

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};

pub(super) const STRATEGY: Strategy = Strategy {
    name: "pessimistic",
    title: "SELECT … FOR UPDATE",
    family: Family::Database,
    needs: &[Need::SelectForUpdate],
    open: |scene| Box::pin(async { opened(Pessimistic(scene)) }),
    ..PLAIN
};

struct Pessimistic(Scene);

impl Taker for Pessimistic {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let mut transaction = self.0.begin().await?;
            let stock = transaction.stock_for_update().await?;
            if stock <= 0 {
                return Ok(Answer::SoldOut);
            }
            transaction.set_stock(stock - 1).await?;
            transaction.add_issue(user).await?;
            transaction.commit().await?;
            Ok(Answer::Got)
        })
    }
}
