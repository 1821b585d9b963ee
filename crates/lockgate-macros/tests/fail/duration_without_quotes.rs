//! A duration is written in quotes.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", wait = 3, lease = 5s)]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
