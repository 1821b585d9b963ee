//! The compiler's own error points at the gate.

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

#[locked(key = "coupon:{coupon_id}", gate = shop)]
async fn issue(coupon_id: u64, shop: &str) -> Result<(), lock::LockError> {
    Ok(())
}

fn main() {}
