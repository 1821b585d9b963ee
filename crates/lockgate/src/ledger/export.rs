//! Who has what.

use std::collections::HashSet;

use super::Ledger;
use super::audit::MAX_PAGE;
use super::error::LedgerError;
use super::record::Record;
use super::sql::Known;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::Campaign;

/// Somebody who has something, by the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Winner {
    /// The number of the grant.
    pub seq: u64,
    /// Whose; `None` when the user was erased.
    pub user: Option<Name>,
    /// How many.
    pub quantity: u64,
    /// When.
    pub at: Timestamp,
}

/// The winners of a campaign, page by page. Made by [`Ledger::winners`].
#[derive(Debug)]
pub struct Export {
    ledger: Ledger,
    known: Known,
    revoked: HashSet<u64>,
    after: u64,
}

impl Ledger {
    /// All who have something of a campaign and did not have it revoked, by the ledger, in the order of the changes.
    ///
    /// # Errors
    ///
    /// When the ledger has never heard of the campaign, retention has removed it, or the database does not answer.
    pub async fn winners(&self, campaign: &Campaign) -> Result<Export, LedgerError> {
        let known = self.known(campaign).await?;
        if known.purged_rev > 0 {
            return Err(LedgerError::Refused(format!(
                "{campaign:?} was removed from the ledger by retention"
            )));
        }
        let revoked = self.book.revoked(known.id).await?;
        Ok(Export { ledger: self.clone(), known, revoked, after: 0 })
    }

    pub(super) async fn known(&self, campaign: &Campaign) -> Result<Known, LedgerError> {
        let known = self.book.campaigns().await?.into_iter().find(|known| known.campaign == *campaign);
        known.ok_or_else(|| LedgerError::Refused(format!("the ledger has never heard of {campaign:?}")))
    }
}

impl Export {
    /// The next winners; `None` after the last.
    ///
    /// # Errors
    ///
    /// When the database does not answer. Asking again goes on where it was.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Winner>>, LedgerError> {
        let page = self.ledger.book.records(&self.known, self.after, MAX_PAGE).await?;
        let Some(last) = page.last().map(|record| record.rev) else { return Ok(None) };
        self.after = last;
        Ok(Some(page.into_iter().filter_map(|record| self.winner(record)).collect()))
    }

    fn winner(&self, record: Record) -> Option<Winner> {
        let seq = record.seq.filter(|seq| record.what.is_grant() && !self.revoked.contains(seq))?;
        Some(Winner { seq, user: record.user, quantity: record.quantity.unwrap_or(1), at: record.at })
    }
}
