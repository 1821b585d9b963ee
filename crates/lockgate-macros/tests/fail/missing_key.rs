//! There is no lock without a name.

use lockgate_macros::locked;

struct Error;

#[locked(wait = "3s")]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

#[locked]
async fn sweep() -> Result<(), Error> {
    Ok(())
}

fn main() {}
