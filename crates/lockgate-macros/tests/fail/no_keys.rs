//! Brackets without a key.

use lockgate_macros::locked;

struct Error;

#[locked(key = [])]
async fn issue(coupon_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
