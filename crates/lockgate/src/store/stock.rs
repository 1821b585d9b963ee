//! The words of the stock operations.
//!
//! A **campaign** is so much of something that is limited: a coupon (one per user), a deal (so many per user) or an
//! article (a SKU, taken in orders). They share their terms, their states, their holds and their numbers:
//!
//! - `seq` numbers the grants of a campaign: 1, 2, 3 …
//! - `rev` numbers *every* change of it, without a gap; each change stands in the [journal](JournalEntry) under its `rev`,
//!   and got there in the same step. A gap is proof of a loss, a repeat is proof of a double.
//!
//! Remaining = total − granted − held.

mod campaign;
mod coupon;
mod deal;
mod epoch;
mod hold;
mod journal;
mod keeping;
mod order;
mod order_across;
mod pass;
mod sending;

pub use self::campaign::{
    Campaign, CampaignChange, CampaignChanged, CampaignKind, CampaignOpen, CampaignState, CampaignStatus,
    MAX_QUANTITY, Terms,
};
pub(crate) use self::campaign::{Counts, Switch, not_open};
pub use self::coupon::{Issue, IssueWish};
pub use self::deal::{Purchase, PurchaseWish, Revoke, RevokeWish, UserShare};
pub use self::epoch::{EpochSettle, EpochStatus, Rebuild, Rebuilt, Reopen, Seen};
pub use self::hold::{
    HoldId, HoldPlace, HoldSettle, HoldState, HoldStatus, HoldWish, MAX_HOLD, SettleWish, Settlement,
};
pub use self::journal::{
    JournalChange, JournalEntry, JournalPosition, JournalReader, JournalStanding, JournalTaken,
};
pub use self::keeping::{CampaignForget, UserErase};
pub use self::order::{MAX_ORDER_ITEMS, OrderItem, OrderPlace, OrderStatus, OrderWish, Shortage};
#[cfg(feature = "redis")]
pub(crate) use self::order_across::{COMMIT_WITHIN, UNSETTLED_KEPT};
pub use self::order_across::{
    CommittedOrder, OrderDecision, OrderPart, OrderReserve, OrderSettle, OrderVerdict, PartItem,
};
pub(crate) use self::pass::PassDenial;
pub use self::pass::{PassUse, UsedPass};
pub use self::sending::{MAX_BATCH, SENDING_KEPT, Sending};
pub(crate) use self::sending::{check_batch, check_orders, late_copy};

use std::time::Duration;

/// For how long a request id (a client's idempotency key), an order and a hold that was settled are remembered.
pub const REQUEST_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many holds one step gives back at the most. Many more than fall due in the time of one step; it is a bound on
/// how long a step can take when nobody has asked for a long time.
pub(crate) const MAX_SWEEP: usize = 10_000;
