//! A deal: so many, some per user.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "pass")]
use super::campaign::pass_methods;
use super::campaign::{Handle, campaign_methods};
use super::hold::{Hold, Reservation};
use super::{Counter, HoldId, Purchase};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Campaign, CampaignKind, PurchaseWish};

/// So many of something, some per user. Made by [`Gate::deal`](crate::Gate::deal).
///
/// ```
/// use lockgate::{Gate, stock::{Purchase, Terms}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let deal = gate.deal("headphones")?;
/// deal.open(&Terms::new(100)?.per_user(2)?).await?;
/// let bought = deal.purchase("alice", 2).await?;
/// assert_eq!(bought, Purchase::Bought { seq: 1, purchased: 2, remaining: 98 });
/// assert_eq!(deal.purchase("alice", 1).await?, Purchase::LimitExceeded { taken: 2, per_user: 2 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Deal {
    handle: Handle,
}

impl Deal {
    pub(crate) fn new(counter: Arc<Counter>, name: Name) -> Self {
        Self { handle: Handle::new(counter, Campaign::new(CampaignKind::Deal, name)) }
    }

    campaign_methods!();
    #[cfg(feature = "pass")]
    pass_methods!();

    /// Buys so many for `user`, or none.
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB, when the quantity is zero or above
    /// [`MAX_QUANTITY`](super::MAX_QUANTITY), or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown, and asking again may buy again:
    /// [`purchase_as`](Self::purchase_as) does not.
    pub async fn purchase(&self, user: impl AsRef<str>, quantity: u64) -> Result<Purchase, StoreError> {
        self.ask(None, Name::new("user", user)?, quantity).await
    }

    /// The same with a name for the request (an idempotency key): asked again within 24 hours, it answers
    /// [`Purchase::AlreadyBought`] and buys nothing. Only purchases that happened are remembered; a denial is decided anew.
    ///
    /// # Errors
    ///
    /// As [`Deal::purchase`], and when the request's name is empty or longer than 16 KiB.
    ///
    /// # Cancel safety
    ///
    /// Asking again with the same request finds out.
    pub async fn purchase_as(
        &self,
        request: impl AsRef<str>,
        user: impl AsRef<str>,
        quantity: u64,
    ) -> Result<Purchase, StoreError> {
        self.ask(Some(Name::new("request", request)?), Name::new("user", user)?, quantity).await
    }

    async fn ask(&self, request: Option<Name>, user: Name, quantity: u64) -> Result<Purchase, StoreError> {
        let Handle { counter, campaign, pass } = &self.handle;
        let wish = PurchaseWish { deal: campaign.clone(), user, quantity, request, pass: pass.clone() };
        wish.check()?;
        counter.purchasing.ask(wish).await
    }

    /// Puts so many aside for `user`, for at most `ttl`: see [`Hold`].
    ///
    /// # Errors
    ///
    /// As [`Deal::purchase`], and when `ttl` is not 1 ms to 24 h.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave them aside until `ttl` is over.
    pub async fn hold(
        &self,
        user: impl AsRef<str>,
        quantity: u64,
        ttl: Duration,
    ) -> Result<Reservation, StoreError> {
        self.hold_as(HoldId::random(), user, quantity, ttl).await
    }

    /// The same under an id of your own, so that asking again after a lost answer finds the same hold.
    ///
    /// # Errors
    ///
    /// As [`Deal::hold`].
    ///
    /// # Cancel safety
    ///
    /// Asking again with the same id finds out.
    pub async fn hold_as(
        &self,
        id: HoldId,
        user: impl AsRef<str>,
        quantity: u64,
        ttl: Duration,
    ) -> Result<Reservation, StoreError> {
        Hold::place(&self.handle, id, Name::new("user", user)?, quantity, ttl).await
    }

    /// The hold of that id, placed earlier and perhaps elsewhere. Nothing is asked.
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB.
    pub fn held(&self, id: HoldId, user: impl AsRef<str>) -> Result<Hold, StoreError> {
        Ok(Hold::new(self.handle.clone(), id, Name::new("user", user)?))
    }
}
