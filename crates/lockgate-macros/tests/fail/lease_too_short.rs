//! A lease of nothing is none.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", lease = "0s")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
