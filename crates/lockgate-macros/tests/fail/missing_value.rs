//! A name without a value.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", wait)]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

#[locked(key = "coupon:{coupon_id}", gate = )]
async fn redeem(coupon_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
