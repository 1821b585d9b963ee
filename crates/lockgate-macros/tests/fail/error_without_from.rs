//! The error cannot hold a `LockError`.

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

struct Refusal;

#[locked(key = "coupon:{coupon_id}")]
async fn issue(coupon_id: u64) -> Result<u64, Refusal> {
    Ok(coupon_id)
}

fn main() {}
