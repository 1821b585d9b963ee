//! A method that is only declared.

use lockgate_macros::locked;

struct Error;

trait Shop {
    #[locked(key = "shop:{user}")]
    async fn order(&self, user: u64) -> Result<(), Error>;
}

fn main() {}
