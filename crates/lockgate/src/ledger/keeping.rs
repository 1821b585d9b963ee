//! What is not kept: old campaigns, and users who want to be forgotten.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::audit::MAX_PAGE;
use super::error::LedgerError;
use super::{Ledger, in_a_task};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Campaign, CampaignForget, CampaignState, MAX_BATCH, Store, UserErase};

/// What was erased, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// How many rows of the ledger were the user's.
    pub rows: u64,
    /// The campaigns in which something is held for the user: nothing was erased there. Settle the holds, and erase again.
    pub held: Vec<Campaign>,
    /// The campaigns that an embedded store keeps in its journal for ever, with the user's name.
    pub kept: Vec<Campaign>,
}

impl Ledger {
    /// Erases a user from the ledger and from the store: what the user was granted stays granted, to nobody. What the ledger
    /// has not written yet stays; so do, for a day, the store's notes of settled holds, requests and orders.
    ///
    /// The store comes first, so that an erasure that was interrupted is finished by the next.
    ///
    /// # Errors
    ///
    /// When the store or the database does not answer, or the store is recovering.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown how much of it happened; it can be done again.
    pub async fn erase(&self, store: &dyn Store, user: &Name) -> Result<Erasure, LedgerError> {
        let mut erasure = Erasure::default();
        let mut in_letters = self.seqs_in_letters(user).await?;
        for known in self.book.campaigns().await? {
            let (in_rows, in_letters) =
                (self.book.seqs_of(known.id, user).await?, in_letters.remove(&known.campaign));
            if in_rows.is_none() && in_letters.is_none() {
                continue;
            }
            let seqs = [in_rows.unwrap_or_default(), in_letters.unwrap_or_default()].concat();
            let alias = format!("erased {}", seqs.first().copied().unwrap_or(0));
            let alias = Name::new("user", alias).map_err(StoreError::from)?;
            // Also when no number is the user's: something may be held.
            let all = if seqs.is_empty() { vec![&seqs[..]] } else { seqs.chunks(MAX_BATCH).collect() };
            for some in all {
                match store.user_erase(&known.campaign, user, &alias, some).await? {
                    UserErase::Erased => {}
                    UserErase::Held => erasure.held.push(known.campaign.clone()),
                    UserErase::Kept => erasure.kept.push(known.campaign.clone()),
                    UserErase::Recovering => return Err(StoreError::Recovering.into()),
                }
            }
        }
        if !erasure.held.is_empty() {
            return Ok(erasure);
        }
        let (ledger, user) = (self.clone(), user.clone());
        erasure.rows = in_a_task(async move {
            let erased = ledger.book.erase(&user).await?;
            ledger.erase_from_letters(&user).await?;
            Ok(erased)
        })
        .await?;
        Ok(erasure)
    }

    /// The numbers that are the user's and could not be written.
    async fn seqs_in_letters(&self, user: &Name) -> Result<HashMap<Campaign, Vec<u64>>, LedgerError> {
        let mut found: HashMap<Campaign, Vec<u64>> = HashMap::new();
        let mut after = None;
        loop {
            let page = self.dead_letters(after.as_ref(), MAX_PAGE).await?;
            let Some(last) = page.last().cloned() else { return Ok(found) };
            let records = page.iter().filter_map(|letter| Some(letter.arrival()?.record));
            for record in records.filter(|record| record.user.as_ref() == Some(user)) {
                found.entry(record.campaign).or_default().extend(record.seq);
            }
            after = Some(last);
        }
    }

    async fn erase_from_letters(&self, user: &Name) -> Result<(), LedgerError> {
        let mut after = None;
        loop {
            let page = self.dead_letters(after.as_ref(), MAX_PAGE).await?;
            let Some(last) = page.last().cloned() else { return Ok(()) };
            for letter in page {
                if let Some(without) = letter.without(user) {
                    self.book.rewrite(&without).await?;
                }
            }
            after = Some(last);
        }
    }

    /// Removes a campaign that is over and has not changed for at least `age`: its rows here, and all of it in the store
    /// (except in an embedded one, which keeps it in its journal). Its sums stay in the ledger. Answers how many rows that
    /// were. It can be neither exported nor recovered afterwards, and its name should not be used again.
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
        if status.as_ref().is_some_and(|status| status.state != CampaignState::Closed || status.held > 0) {
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
            return self.forget(store, campaign, rev).await.map(|()| 0);
        }
        let last = self.book.records(&known, totals.last_rev - 1, 1).await?.pop();
        let changed_at = last.map_or(self.clock.wall(), |record| record.at);
        if self.clock.wall() < changed_at + age {
            return Err(LedgerError::Refused(format!("{campaign:?} changed less than {age:?} ago")));
        }
        let book = Arc::clone(&self.book);
        let removed = in_a_task(async move { book.purge(&known, totals).await }).await?;
        // Interrupted before this, the next purge finds no row, and comes here.
        self.forget(store, campaign, rev).await.map(|()| removed)
    }

    async fn forget(&self, store: &dyn Store, campaign: &Campaign, rev: u64) -> Result<(), LedgerError> {
        match store.campaign_forget(campaign, rev).await? {
            CampaignForget::Forgotten | CampaignForget::Kept => Ok(()),
            CampaignForget::Recovering => Err(StoreError::Recovering.into()),
            CampaignForget::NotOver | CampaignForget::Changed { .. } => {
                Err(LedgerError::Refused(format!("{campaign:?} has changed at this very moment; try again")))
            }
        }
    }
}
