//! A number in a hole is not the number of an argument.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{0}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
