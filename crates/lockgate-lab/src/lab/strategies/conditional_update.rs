//! **Exact across processes:** the check is in the write. `UPDATE … SET stock = stock - 1 WHERE stock > 0`.
//!
//! ```text
//! A: BEGIN; one less, if there is one: one row; insert A; COMMIT
//!      B: BEGIN; one less, if there is one … waits for A, then decides by what A left
//! ```
//!
//! There is nothing to read first, so nothing can change between reading and writing. The row is locked from the update to the
//! commit, one statement shorter than with `SELECT … FOR UPDATE`. For most shops, this is all that it takes.

use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};

pub(super) const STRATEGY: Strategy = Strategy {
    name: "conditional-update",
    title: "UPDATE … WHERE stock > 0",
    family: Family::Database,
    open: |scene| Box::pin(async { opened(ConditionalUpdate(scene)) }),
    ..PLAIN
};

struct ConditionalUpdate(Scene);

impl Taker for ConditionalUpdate {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let mut transaction = self.0.begin().await?;
            if !transaction.take_one_if_left().await? {
                return Ok(Answer::SoldOut);
            }
            transaction.add_issue(user).await?;
            transaction.commit().await?;
            Ok(Answer::Got)
        })
    }
}
