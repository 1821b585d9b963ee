//! A misspelled name; that `key` is missing goes without saying.

use lockgate_macros::locked;

struct Error;

#[locked(kee = "coupon:{coupon_id}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
