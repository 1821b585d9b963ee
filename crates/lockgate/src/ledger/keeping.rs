//! What is not kept: old campaigns, and users who want to be forgotten.

use std::sync::Arc;
use std::time::Duration;

use super::audit::MAX_PAGE;
use super::error::LedgerError;
use super::{Ledger, in_a_task};
use crate::key::Name;
use crate::store::{Campaign, CampaignState, Store};

impl Ledger {
    /// Erases a user from the ledger: what the user was granted stays granted, to nobody. Answers how many rows were the
    /// user's. What the store knows of the user, and what it has not written yet, is not touched.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether it happened; it can be done again.
    pub async fn erase(&self, user: &Name) -> Result<u64, LedgerError> {
        let (ledger, user) = (self.clone(), user.clone());
        in_a_task(async move {
            let erased = ledger.book.erase(&user).await?;
            ledger.erase_from_letters(&user).await?;
            Ok(erased)
        })
        .await
    }

    async fn erase_from_letters(&self, user: &Name) -> Result<(), LedgerError> {
        let mut after = None;
        loop {
            let page = self.dead_letters(after.as_ref(), MAX_PAGE).await?;
            let Some(last) = page.last().cloned() else { return Ok(()) };
            for letter in page {
                if let Some(without) = letter.without(user) {
                    self.book.discard(&letter).await?;
                    self.book.bury(std::slice::from_ref(&without)).await?;
                }
            }
            after = Some(last);
        }
    }

    /// Removes the rows of a campaign that is over and has not changed for at least `age`; its sums stay, so that audits go on
    /// adding up. Answers how many rows that were. A campaign without rows can be neither exported nor recovered.
    ///
    /// # Errors
    ///
    /// When the campaign is not closed, has changed since, is not entirely in the ledger or unknown to it; when the store or
    /// the database does not answer. Then nothing is removed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether it happened; it can be done again.
    pub async fn purge(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        age: Duration,
    ) -> Result<u64, LedgerError> {
        let known = self.known(campaign).await?;
        let status = store.campaign_read(campaign).await?;
        if status.is_some_and(|status| status.state != CampaignState::Closed || status.held > 0) {
            return Err(LedgerError::Refused(format!("{campaign:?} is not over; close it first")));
        }
        let totals = self.book.totals(known.id, u64::MAX).await?;
        let rev = status.map_or(totals.last_rev.max(known.purged_rev), |status| status.rev);
        if known.purged_rev + totals.rows != rev {
            return Err(LedgerError::Refused(format!(
                "{campaign:?} is not entirely in the ledger; let the writer finish, or look at the audit"
            )));
        }
        if totals.rows == 0 {
            return Ok(0);
        }
        let last = self.book.records(&known, totals.last_rev - 1, 1).await?.pop();
        let changed_at = last.map_or(self.clock.wall(), |record| record.at);
        if self.clock.wall() < changed_at + age {
            return Err(LedgerError::Refused(format!("{campaign:?} changed less than {age:?} ago")));
        }
        let book = Arc::clone(&self.book);
        in_a_task(async move { book.purge(&known, totals).await }).await
    }
}
