//! Who gets *one of N*?
//!
//! **Promise:** never oversold, never issued twice. Check, count and dedupe are one atomic step in the store, so
//! there is nothing between them for two callers to slip through:
//!
//! ```text
//! a GET and a SET                          one step
//! A: GET stock → 1                         A: issue → Issued { seq: 300, remaining: 0 }
//! B: GET stock → 1                         B: issue → SoldOut
//! A: SET stock 0, "you got it"
//! B: SET stock 0, "you got it"  (oversold)
//! ```
//!
//! A denial is an answer: see [`Issue`]. An error means that the store did not answer, and says whether the grant
//! may have happened; asking again finds out, and never issues twice.

mod coupon;

pub use self::coupon::Coupon;
pub use crate::store::{
    CouponOpen, CouponState, CouponStatus, CouponTerms, Issue, MAX_ISSUE_BATCH, MAX_QUANTITY,
};
