//! Holds: taken off the shelf for a while, then confirmed or given back.

use std::fmt;
use std::time::Duration;

use super::deal::check_wanted;
use super::{Campaign, CampaignKind, PassUse};
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;
use crate::store::Token;

/// The longest hold.
pub const MAX_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

/// Which hold: 128 bits that nobody can guess, chosen by whoever places it, so that placing it again is harmless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(Token);

impl HoldId {
    /// One that nobody can guess.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    pub fn random() -> Self {
        Self(Token::random())
    }

    /// The one with these bits: for a hold that is named by its request.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(Token::from_bits(bits))
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    #[must_use]
    pub fn parse(hexadecimal: &str) -> Option<Self> {
        (hexadecimal.len() == 32).then(|| Token::parse(hexadecimal).map(Self))?
    }
}

#[cfg(feature = "durable")]
impl serde::Serialize for HoldId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "durable")]
impl<'de> serde::Deserialize<'de> for HoldId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hold's id"))
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hold({})", self.0)
    }
}

/// Somebody wants something put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldWish {
    /// Of what.
    pub campaign: Campaign,
    /// The hold's name.
    pub id: HoldId,
    /// For whom.
    pub user: Name,
    /// How many: at least one, and of a coupon exactly one.
    pub quantity: u64,
    /// For how long: 1 ms to [`MAX_HOLD`].
    pub ttl: Duration,
    /// The pass that is shown with it.
    pub pass: Option<PassUse>,
}

impl HoldWish {
    /// Refuses what no store can be asked.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        check_wanted(self.quantity)?;
        if self.campaign.kind == CampaignKind::Coupon && self.quantity != 1 {
            return Err(InvalidInput::new("quantity", "must be 1: a coupon is one per user"));
        }
        if self.ttl < Duration::from_millis(1) || self.ttl > MAX_HOLD {
            return Err(InvalidInput::new("ttl", "must be 1 ms to 24 h"));
        }
        Ok(())
    }
}

/// The answer to one wish to hold. A denial is an answer, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldPlace {
    /// It is put aside. The same wish again is told the same, whatever became of the hold.
    Held {
        /// When it goes back on the shelf unless it is confirmed.
        expires_at: Timestamp,
        /// How many are left.
        remaining: u64,
    },
    /// The same hold id came before with another user or quantity.
    RequestReused,
    /// The user has the coupon already.
    AlreadyIssued {
        /// As which number.
        seq: u64,
    },
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
        /// How many the user has or holds.
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
    /// There is no such campaign.
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// What is to become of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It becomes a grant.
    Confirm,
    /// It goes back on the shelf.
    Cancel,
}

/// Somebody settles a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleWish {
    /// Of what.
    pub campaign: Campaign,
    /// Which.
    pub id: HoldId,
    /// Whose.
    pub user: Name,
    /// How.
    pub settlement: Settlement,
}

/// The answer to one wish to settle a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldSettle {
    /// It is a grant now, or was made one before.
    Confirmed {
        /// The number of the grant.
        seq: u64,
    },
    /// It is back on the shelf, or was put there before by a cancellation.
    Cancelled,
    /// Its time was over: it is back on the shelf.
    Expired,
    /// It was confirmed before, so it cannot be cancelled; revoke the grant instead.
    AlreadyConfirmed {
        /// The number of the grant.
        seq: u64,
    },
    /// It was cancelled before, so it cannot be confirmed.
    AlreadyCancelled,
    /// There is no such hold of that user (any more: see [`REQUEST_KEPT`](super::REQUEST_KEPT)).
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// What has become of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// Put aside.
    Held,
    /// A grant.
    Confirmed {
        /// Its number.
        seq: u64,
    },
    /// Given back.
    Cancelled,
    /// Gone back by itself.
    Expired,
}

/// How a hold stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldStatus {
    /// For whom.
    pub user: Name,
    /// How many.
    pub quantity: u64,
    /// When it goes back by itself, or would have.
    pub expires_at: Timestamp,
    /// What has become of it.
    pub state: HoldState,
}
