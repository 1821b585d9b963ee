//! What can be done with every campaign.

use std::sync::Arc;

use super::Counter;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignChanged, CampaignOpen, CampaignStatus, PassUse, Revoke, RevokeWish,
    Sending, Terms, UserShare,
};

/// A campaign and where it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) counter: Arc<Counter>,
    pub(super) campaign: Campaign,
    /// What is shown with every wish.
    pub(super) pass: Option<PassUse>,
}

impl Handle {
    pub(super) fn new(counter: Arc<Counter>, campaign: Campaign) -> Self {
        Self { counter, campaign, pass: None }
    }

    pub(super) async fn open(&self, terms: &Terms) -> Result<CampaignOpen, StoreError> {
        self.counter.store().campaign_open(&Sending::once(), &self.campaign, terms).await
    }

    pub(super) async fn change(&self, change: CampaignChange) -> Result<CampaignChanged, StoreError> {
        self.counter.store().campaign_change(&Sending::once(), &self.campaign, change).await
    }

    pub(super) async fn status(&self) -> Result<Option<CampaignStatus>, StoreError> {
        self.counter.store().campaign_read(&self.campaign).await
    }

    pub(super) async fn share_of(&self, user: &str) -> Result<Option<UserShare>, StoreError> {
        self.counter.store().share_read(&self.campaign, &Name::new("user", user)?).await
    }

    pub(super) async fn revoke(&self, user: &str, seq: u64) -> Result<Revoke, StoreError> {
        let wish = RevokeWish { campaign: self.campaign.clone(), user: Name::new("user", user)?, seq };
        self.counter.revoking.ask(wish).await
    }
}

/// The methods that all campaigns share, for a type with a [`Handle`].
macro_rules! campaign_methods {
    () => {
        /// Creates it or replaces its terms, at any time. Whether it is paused or closed stays.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown; opening again with the same terms is harmless.
        pub async fn open(
            &self,
            terms: &crate::store::Terms,
        ) -> Result<crate::store::CampaignOpen, crate::error::StoreError> {
            self.handle.open(terms).await
        }

        /// Adds so many to the quantity, whatever it is now.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown, and doing it again would add them again: read the status first.
        pub async fn restock(
            &self,
            by: u64,
        ) -> Result<crate::store::CampaignChanged, crate::error::StoreError> {
            self.handle.change(crate::store::CampaignChange::Restock { by }).await
        }

        /// Grants nothing until it is resumed. Holds can still be settled, and who has something is still told so.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown; pausing again is harmless.
        pub async fn pause(&self) -> Result<crate::store::CampaignChanged, crate::error::StoreError> {
            self.handle.change(crate::store::CampaignChange::Pause).await
        }

        /// Goes on after a pause.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown; resuming again is harmless.
        pub async fn resume(&self) -> Result<crate::store::CampaignChanged, crate::error::StoreError> {
            self.handle.change(crate::store::CampaignChange::Resume).await
        }

        /// Grants nothing any more, for ever. Holds can still be settled, and who has something is still told so.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown; closing again is harmless.
        pub async fn close(&self) -> Result<crate::store::CampaignChanged, crate::error::StoreError> {
            self.handle.change(crate::store::CampaignChange::Close).await
        }

        /// How it stands, or `None` when it was never opened.
        ///
        /// # Errors
        ///
        /// When the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Reads only.
        pub async fn status(&self) -> Result<Option<crate::store::CampaignStatus>, crate::error::StoreError> {
            self.handle.status().await
        }

        /// What `user` has of it, or `None` when it was never opened.
        ///
        /// # Errors
        ///
        /// When the user's id is empty or longer than 16 KiB, or when the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Reads only.
        pub async fn share_of(
            &self,
            user: impl AsRef<str>,
        ) -> Result<Option<crate::store::UserShare>, crate::error::StoreError> {
            self.handle.share_of(user.as_ref()).await
        }

        /// Takes the grant of that number back from `user`: a refund. What it took can be had again; its number is not used
        /// again.
        ///
        /// # Errors
        ///
        /// When the user's id is empty or longer than 16 KiB, or when the store did not answer.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future leaves the outcome unknown, but nothing happens twice: revoking again answers
        /// [`NotGranted`](crate::store::Revoke::NotGranted) if it was done.
        pub async fn revoke(
            &self,
            user: impl AsRef<str>,
            seq: u64,
        ) -> Result<crate::store::Revoke, crate::error::StoreError> {
            self.handle.revoke(user.as_ref(), seq).await
        }
    };
}

/// The method that those share which can demand a pass.
#[cfg(feature = "pass")]
macro_rules! pass_methods {
    () => {
        /// The same, for somebody who was admitted by the line whose pass it [demands](crate::store::Terms::demanding_pass_of):
        /// the pass is shown with every wish. The first grant uses it up, for good: revoking the grant or cancelling the hold
        /// does not give it back. Whoever asks again for what was granted is told so, with the used pass or without.
        #[must_use]
        pub fn with_pass(&self, pass: &crate::line::pass::Pass) -> Self {
            let mut shown = self.clone();
            shown.handle.pass = Some(pass.into());
            shown
        }
    };
}

pub(super) use campaign_methods;
#[cfg(feature = "pass")]
pub(super) use pass_methods;
