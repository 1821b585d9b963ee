//! A unit that there is not, and none at all.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", wait = "3x", lease = "5")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
