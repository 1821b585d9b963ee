//! The key is read while compiling.

use lockgate_macros::locked;

const KEY: &str = "coupon";

struct Error;

#[locked(key = KEY)]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
