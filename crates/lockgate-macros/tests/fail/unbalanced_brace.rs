//! One brace too few, one too many.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

#[locked(key = "user:id}")]
async fn redeem(id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
