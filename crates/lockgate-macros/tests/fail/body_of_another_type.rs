//! The compiler's own error points at the body.

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

#[locked(key = "coupon:{coupon_id}")]
async fn issue(coupon_id: u64) -> Result<u64, lock::LockError> {
    if coupon_id == 0 {
        return 1;
    }
    coupon_id
}

#[locked(key = "coupon:{coupon_id}")]
async fn redeem(coupon_id: u64) -> Result<u64, lock::LockError> {
    issue(coupon_id).await?;
}

fn main() {}
