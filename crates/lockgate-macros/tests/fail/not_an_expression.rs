//! What stands in a hole is Rust.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon id}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
