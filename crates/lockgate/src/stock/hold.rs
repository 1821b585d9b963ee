//! A hold: put aside for a while, then confirmed or given back.

use std::time::Duration;

use super::campaign::Handle;
use super::{HoldId, HoldPlace, HoldSettle, HoldStatus};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{HoldWish, SettleWish, Settlement};

/// What came of a wish to put something aside.
#[derive(Clone, Debug)]
pub enum Reservation {
    /// It is put aside.
    Held {
        /// The hold, to be confirmed or cancelled.
        hold: Hold,
        /// When it goes back on the shelf unless it is confirmed.
        expires_at: Timestamp,
        /// How many are left.
        remaining: u64,
    },
    /// It is not, and why.
    Denied(HoldPlace),
}

/// Something put aside for a user. It is not sold, and nobody else gets it; when its time is over it goes back on the
/// shelf by itself, exactly once. Dropping this object changes nothing: a hold outlives the process that placed it.
///
/// ```
/// use std::time::Duration;
/// use lockgate::{Gate, stock::{HoldSettle, Reservation, Terms}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let deal = gate.deal("seat 12")?;
/// deal.open(&Terms::new(1)?).await?;
/// let Reservation::Held { hold, .. } = deal.hold("alice", 1, Duration::from_secs(300)).await? else {
///     return Ok(());
/// };
/// // … alice pays …
/// assert_eq!(hold.confirm().await?, HoldSettle::Confirmed { seq: 1 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Hold {
    handle: Handle,
    id: HoldId,
    user: Name,
}

impl Hold {
    pub(super) fn new(handle: Handle, id: HoldId, user: Name) -> Self {
        Self { handle, id, user }
    }

    pub(super) async fn place(
        handle: &Handle,
        id: HoldId,
        user: Name,
        quantity: u64,
        ttl: Duration,
    ) -> Result<Reservation, StoreError> {
        let (campaign, pass) = (handle.campaign.clone(), handle.pass.clone());
        let wish = HoldWish { campaign, id, user: user.clone(), quantity, ttl, pass };
        wish.check()?;
        Ok(match handle.counter.holding.ask(wish).await? {
            HoldPlace::Held { expires_at, remaining } => {
                Reservation::Held { hold: Self::new(handle.clone(), id, user), expires_at, remaining }
            }
            denied => Reservation::Denied(denied),
        })
    }

    /// Its id, by which it can be found again.
    #[must_use]
    pub fn id(&self) -> HoldId {
        self.id
    }

    /// Makes it a grant. Works also when the campaign is paused or closed by now: a hold is a promise.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; confirming again finds out.
    pub async fn confirm(&self) -> Result<HoldSettle, StoreError> {
        self.settle(Settlement::Confirm).await
    }

    /// Puts it back on the shelf.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; cancelling again finds out.
    pub async fn cancel(&self) -> Result<HoldSettle, StoreError> {
        self.settle(Settlement::Cancel).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<HoldSettle, StoreError> {
        let (campaign, user) = (self.handle.campaign.clone(), self.user.clone());
        let wish = SettleWish { campaign, id: self.id, user, settlement };
        self.handle.counter.settling.ask(wish).await
    }

    /// What has become of it, or `None` when it is unknown or was settled more than 24 hours ago.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn status(&self) -> Result<Option<HoldStatus>, StoreError> {
        self.handle.counter.store().hold_read(&self.handle.campaign, &self.id).await
    }
}
