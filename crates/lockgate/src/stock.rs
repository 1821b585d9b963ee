//! Who gets *one of N*?
//!
//! **Promise:** never oversold, never issued twice, nothing lost that was acknowledged. Check, count, dedupe and journal are
//! one atomic step in the store, so there is nothing between them for two callers to slip through:
//!
//! ```text
//! a GET and a SET                          one step
//! A: GET stock → 1                         A: issue → Issued { seq: 300, remaining: 0 }
//! B: GET stock → 1                         B: issue → SoldOut
//! A: SET stock 0, "you got it"
//! B: SET stock 0, "you got it"  (oversold)
//! ```
//!
//! | what | how many per user | taken by |
//! | --- | --- | --- |
//! | [`Coupon`] | one | [`Coupon::issue`] |
//! | [`Deal`] | up to a limit | [`Deal::purchase`] |
//! | [`Sku`] | any | an [`Order`] over several of them, all or nothing |
//!
//! A coupon or a deal can also be **held** for a while and then confirmed or given back ([`Hold`]), and a grant can be
//! revoked. Every change has a number and an entry in the journal ([`JournalEntry`](crate::store::JournalEntry)).
//!
//! A denial is an answer: see [`Issue`]. An error means that the store did not answer, and says whether the grant
//! may have happened; asking again finds out, and never issues twice.
//!
//! Callers that come at the same time share a call to the store: `counter.rs` says how.

mod campaign;
mod counter;
mod coupon;
mod deal;
mod hold;
mod metrics;
pub(crate) mod operation;
mod order;

pub(crate) use self::counter::Counter;
pub use self::coupon::Coupon;
pub use self::deal::Deal;
pub use self::hold::{Hold, Reservation};
pub(crate) use self::order::resolve_all;
pub use self::order::{Order, Sku};
pub use crate::store::{
    CampaignChanged, CampaignOpen, CampaignState, CampaignStatus, HoldId, HoldPlace, HoldSettle, HoldState,
    HoldStatus, Issue, MAX_HOLD, MAX_ORDER_ITEMS, MAX_QUANTITY, OrderPlace, OrderStatus, PassUse, Purchase,
    REQUEST_KEPT, Revoke, Shortage, Terms, UserShare,
};
