//! **Exact across processes, or gives up:** a version in the row, and a write that only counts if the version is still the same.
//!
//! ```text
//! A: read stock 5, version 8
//!      B: read stock 5, version 8
//! A: write 4, version 9, where version = 8: one row; COMMIT
//!      B: write 4, version 9, where version = 8: no row, so begin anew
//! ```
//!
//! Nobody waits for a lock, and nothing is lost. But of all who read the same version one gets through, and the work of the
//! others was for nothing: a crowd on one row is the worst case. Retries are bounded here, as they must be, with growing pauses;
//! who has used them up is turned away although there may be some left.

use std::time::Duration;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::claim::Claim;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::Backoff;

/// How often somebody tries.
const TRIES: u32 = 50;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "optimistic",
    title: "Version column, try again on conflict",
    family: Family::Database,
    claim: Claim::exact_or_gives_up,
    open: |scene| Box::pin(async { opened(Optimistic(scene)) }),
    ..PLAIN
};

struct Optimistic(Scene);

impl Optimistic {
    /// `None` when somebody else was faster.
    async fn try_once(&self, user: u64) -> Result<Option<Answer>, Failure> {
        let mut transaction = self.0.begin().await?;
        let (stock, version) = transaction.stock_and_version().await?;
        if stock <= 0 {
            return Ok(Some(Answer::SoldOut));
        }
        if !transaction.set_stock_of_version(stock - 1, version).await? {
            return Ok(None);
        }
        transaction.add_issue(user).await?;
        transaction.commit().await?;
        Ok(Some(Answer::Got))
    }
}

impl Taker for Optimistic {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let mut backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(100));
            for _ in 0..TRIES {
                if let Some(answer) = self.try_once(user).await? {
                    return Ok(answer);
                }
                self.0.count_retry();
                backoff.pause().await;
            }
            Ok(Answer::GaveUp)
        })
    }
}
