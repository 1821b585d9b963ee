//! All are reported at once.

use lockgate_macros::locked;

#[locked(key = "coupon:{coupon}:{}", wait = "soon", lease = "25h", wiat = "3s")]
fn issue(coupon_id: u64) {}

fn main() {}
