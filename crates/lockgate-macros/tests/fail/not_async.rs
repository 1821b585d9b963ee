//! Waiting for a lock takes an async function.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}")]
fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
