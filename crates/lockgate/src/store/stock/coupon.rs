//! Coupons: one per user.

use super::{Campaign, CampaignKind, HoldId, PassUse};
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// Somebody wants a coupon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueWish {
    /// Which.
    pub coupon: Campaign,
    /// Who.
    pub user: Name,
    /// The pass that is shown with it.
    pub pass: Option<PassUse>,
}

impl IssueWish {
    /// Refuses what no store can be asked.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        match self.coupon.kind {
            CampaignKind::Coupon => Ok(()),
            _ => Err(InvalidInput::new("coupon", "must be a coupon: deals and articles are not issued")),
        }
    }
}

/// The answer to one user's wish for a coupon. A denial is an answer, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Issue {
    /// The user has it now.
    Issued {
        /// The number of this grant: 1, 2, 3 …
        seq: u64,
        /// How many are left after it.
        remaining: u64,
    },
    /// The user had it before.
    AlreadyIssued {
        /// The number that it was given then.
        seq: u64,
    },
    /// One is held for the user already: confirm or cancel the hold.
    Held {
        /// Which hold.
        hold: HoldId,
    },
    /// It demands the pass of a line, and none was shown.
    PassRequired,
    /// The pass is of another line than the one that is demanded, or somebody else's.
    PassInvalid,
    /// The pass is over, by the store's clock.
    PassExpired,
    /// The pass was used for a grant before.
    PassUsed,
    /// None is left.
    SoldOut,
    /// It opens later.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// Somebody has paused it.
    Paused,
    /// Its time is over.
    Closed,
    /// There is no coupon of that name.
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}
