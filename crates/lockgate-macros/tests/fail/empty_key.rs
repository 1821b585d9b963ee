//! A name of nothing.

use lockgate_macros::locked;

struct Error;

#[locked(key = "")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
