//! Deals: some per user. And what users have of any campaign.

use super::{Campaign, CampaignKind, PassUse, campaign::check_quantity};
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// Somebody wants to buy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurchaseWish {
    /// What.
    pub deal: Campaign,
    /// Who.
    pub user: Name,
    /// How many: at least one.
    pub quantity: u64,
    /// The client's own name for this request: sent again within [`REQUEST_KEPT`](super::REQUEST_KEPT), it is answered again
    /// and not decided again. Only purchases that happened are remembered; a denial is decided anew.
    pub request: Option<Name>,
    /// The pass that is shown with it.
    pub pass: Option<PassUse>,
}

impl PurchaseWish {
    /// Refuses what no store can be asked.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.deal.kind != CampaignKind::Deal {
            return Err(InvalidInput::new("deal", "must be a deal: coupons are issued and articles ordered"));
        }
        check_wanted(self.quantity)
    }
}

/// Refuses a wish for nothing, and one for more than can be counted.
pub(crate) fn check_wanted(quantity: u64) -> Result<(), InvalidInput> {
    if quantity == 0 {
        return Err(InvalidInput::new("quantity", "must be at least 1"));
    }
    check_quantity("quantity", quantity)
}

/// The answer to one wish to buy. A denial is an answer, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purchase {
    /// It is the user's now.
    Bought {
        /// The number of this grant: 1, 2, 3 …
        seq: u64,
        /// How many the user has bought in all.
        purchased: u64,
        /// How many are left after it.
        remaining: u64,
    },
    /// This request has bought before; the numbers are those of then.
    AlreadyBought {
        /// The number of that grant.
        seq: u64,
        /// How many the user had bought in all.
        purchased: u64,
        /// How many were left after it.
        remaining: u64,
    },
    /// The same request id came before with another user or quantity.
    RequestReused,
    /// It demands the pass of a line, and none was shown.
    PassRequired,
    /// The pass is of another line than the one that is demanded, or somebody else's.
    PassInvalid,
    /// The pass is over, by the store's clock.
    PassExpired,
    /// The pass was used for a grant before.
    PassUsed,
    /// The user would have more than one user may.
    LimitExceeded {
        /// How many the user has bought or holds.
        taken: u64,
        /// How many one user may have.
        per_user: u64,
    },
    /// Fewer are left than were asked for.
    SoldOut {
        /// How many are left.
        remaining: u64,
    },
    /// It opens later.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// Somebody has paused it.
    Paused,
    /// Its time is over.
    Closed,
    /// There is no deal of that name.
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// Somebody gives a grant back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokeWish {
    /// Of which campaign.
    pub campaign: Campaign,
    /// Whose grant.
    pub user: Name,
    /// Which of the user's grants.
    pub seq: u64,
}

/// The answer to one wish to revoke a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revoke {
    /// The grant is gone, and what it took can be had again.
    Revoked {
        /// How many are left now.
        remaining: u64,
    },
    /// The user has no grant of that number (any more).
    NotGranted,
    /// There is no such campaign.
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// What one user has of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserShare {
    /// How many are granted to the user.
    pub granted: u64,
    /// How many are held for the user.
    pub held: u64,
    /// The number of the user's grant, of a coupon that is issued.
    pub seq: Option<u64>,
}
