//! Nobody leases for more than a day.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", lease = "25h")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
