//! Nameless holes have no argument to take.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{}:{:?}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
