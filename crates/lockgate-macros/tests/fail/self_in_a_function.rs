//! Only methods have a `self`.

use lockgate_macros::locked;

struct Error;

#[locked(key = "coupon:{self.id}")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
