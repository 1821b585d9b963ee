//! A coupon: so many, one per user.

use std::sync::Arc;

use super::{CouponOpen, CouponStatus, CouponTerms, Issue};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::Store;

/// So many of something, one per user. Made by [`Gate::coupon`](crate::Gate::coupon).
///
/// ```
/// use lockgate::{Gate, stock::{CouponTerms, Issue}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let coupon = gate.coupon("last one")?;
/// coupon.open(&CouponTerms::new(1)?).await?;
/// assert_eq!(coupon.issue("alice").await?, Issue::Issued { seq: 1, remaining: 0 });
/// assert_eq!(coupon.issue("alice").await?, Issue::AlreadyIssued { seq: 1 });
/// assert_eq!(coupon.issue("bob").await?, Issue::SoldOut);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Coupon {
    store: Arc<dyn Store>,
    name: Name,
}

impl Coupon {
    pub(crate) fn new(store: Arc<dyn Store>, name: Name) -> Self {
        Self { store, name }
    }

    /// Creates the coupon or replaces its terms, at any time.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; opening again with the same terms is harmless.
    pub async fn open(&self, terms: &CouponTerms) -> Result<CouponOpen, StoreError> {
        self.store.coupon_open(&self.name, terms).await
    }

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
        let user = [Name::new("user", user)?];
        let answers = self.store.coupon_issue(&self.name, &user).await?;
        match answers.as_slice() {
            [answer] => Ok(*answer),
            answers => Err(StoreError::UnknownOutcome(format!("{} answers for one user", answers.len()))),
        }
    }

    /// How the coupon stands, or `None` when it was never opened.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn status(&self) -> Result<Option<CouponStatus>, StoreError> {
        self.store.coupon_read(&self.name).await
    }
}
