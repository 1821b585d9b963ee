//! Which of them was meant?

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{coupon_id}", wait = "3s", wait = "5s")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
