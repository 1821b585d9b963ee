//! Not getting the lock must be sayable.

use lockgate_macros::locked;

#[locked(key = "coupon:{coupon_id}")]
async fn issue(coupon_id: u64) {}

#[locked(key = "coupon:{coupon_id}")]
async fn left(coupon_id: u64) -> Option<u64> {
    None
}

#[locked(key = "coupon:{coupon_id}")]
async fn both(coupon_id: u64) -> (u64, u64) {
    (1, 2)
}

fn main() {}
