//! The compiler's own error points at the key.

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

struct Coupon;

#[locked(key = "coupon:{coupon}")]
async fn issue(coupon: &Coupon) -> Result<(), lock::LockError> {
    Ok(())
}

fn main() {}
