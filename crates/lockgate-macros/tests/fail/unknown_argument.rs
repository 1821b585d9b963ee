//! A name that is no argument, though it may be a variable of the body.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon}:{uses.len()}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    let coupon = coupon_id;
    Ok(())
}

#[locked(key = "sweep:{id}")]
async fn sweep() -> Result<(), Error> {
    Ok(())
}

fn main() {}
