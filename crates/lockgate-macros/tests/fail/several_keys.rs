//! Every key of several that is wrong is reported.

use lockgate_macros::locked;

const KEY: &str = "coupon";

struct Error;

#[locked(key = ["coupon:{coupon_id}", KEY, "", "user:{userr}"])]
async fn issue(coupon_id: u64, user: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
