//! A coupon: so many, one per user.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "pass")]
use super::campaign::pass_methods;
use super::campaign::{Handle, campaign_methods};
use super::hold::{Hold, Reservation};
use super::{Counter, HoldId, Issue};
use crate::coalesce::Meter as _;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Campaign, CampaignKind, IssueWish, Sending};

/// So many of something, one per user. Made by [`Gate::coupon`](crate::Gate::coupon).
///
/// ```
/// use lockgate::{Gate, stock::{Issue, Terms}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let coupon = gate.coupon("last one")?;
/// coupon.open(&Terms::new(1)?).await?;
/// assert_eq!(coupon.issue("alice").await?, Issue::Issued { seq: 1, remaining: 0 });
/// assert_eq!(coupon.issue("alice").await?, Issue::AlreadyIssued { seq: 1 });
/// assert_eq!(coupon.issue("bob").await?, Issue::SoldOut);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Coupon {
    pub(crate) handle: Handle,
}

impl Coupon {
    pub(crate) fn new(counter: Arc<Counter>, name: Name) -> Self {
        Self { handle: Handle::new(counter, Campaign::new(CampaignKind::Coupon, name)) }
    }

    campaign_methods!();
    #[cfg(feature = "pass")]
    pass_methods!();

    /// Asks for one for `user`.
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown, but nothing is lost: asking again answers
    /// [`Issue::AlreadyIssued`] if the user got one.
    pub async fn issue(&self, user: impl AsRef<str>) -> Result<Issue, StoreError> {
        let Handle { counter, campaign, pass } = &self.handle;
        let wish = IssueWish { coupon: campaign.clone(), user: Name::new("user", user)?, pass: pass.clone() };
        counter.issuing.ask(wish).await
    }

    /// Asks for one for `user`, who shows a pass: short for [`with_pass`](Self::with_pass) and [`issue`](Self::issue).
    ///
    /// # Errors
    ///
    /// As [`Coupon::issue`].
    ///
    /// # Cancel safety
    ///
    /// As [`Coupon::issue`]; whoever got one is told so, although the pass is used.
    #[cfg(feature = "pass")]
    pub async fn issue_with_pass(
        &self,
        user: impl AsRef<str>,
        pass: &crate::line::pass::Pass,
    ) -> Result<Issue, StoreError> {
        self.with_pass(pass).issue(user).await
    }

    /// Issues to many at once, in their order: for taking over those who have one already, from wherever they were kept.
    /// Doing it again changes nothing: whoever has one keeps the number. No pass is shown, so a coupon that is to demand one
    /// is opened with that demand afterwards.
    ///
    /// # Errors
    ///
    /// When more than [`MAX_BATCH`](crate::store::MAX_BATCH) come at once, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; doing it again finds out.
    pub async fn issue_to_all(&self, users: &[Name]) -> Result<Vec<Issue>, StoreError> {
        let wish =
            |user: &Name| IssueWish { coupon: self.handle.campaign.clone(), user: user.clone(), pass: None };
        let wishes: Vec<_> = users.iter().map(wish).collect();
        let counter = &self.handle.counter;
        let answers = counter.store().coupon_issue(&Sending::once(), &wishes).await?;
        counter.issuing.meter().count(&answers);
        Ok(answers)
    }

    /// Puts one aside for `user`, for at most `ttl`: see [`Hold`].
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB, when `ttl` is not 1 ms to 24 h, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave one aside until `ttl` is over.
    pub async fn hold(&self, user: impl AsRef<str>, ttl: Duration) -> Result<Reservation, StoreError> {
        self.hold_as(HoldId::random(), user, ttl).await
    }

    /// The same under an id of your own, so that asking again after a lost answer finds the same hold.
    ///
    /// # Errors
    ///
    /// As [`Coupon::hold`].
    ///
    /// # Cancel safety
    ///
    /// Asking again with the same id finds out.
    pub async fn hold_as(
        &self,
        id: HoldId,
        user: impl AsRef<str>,
        ttl: Duration,
    ) -> Result<Reservation, StoreError> {
        Hold::place(&self.handle, id, Name::new("user", user)?, 1, ttl).await
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
