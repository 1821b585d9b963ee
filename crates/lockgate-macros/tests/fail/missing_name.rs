//! A key without `key =`.

use lockgate_macros::locked;

struct Error;

#[locked("coupon:{coupon_id}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

#[locked(3)]
async fn redeem(coupon_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
