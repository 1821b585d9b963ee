//! Every method has a lock of its own.

use lockgate_macros::locked;

struct Shop;

#[locked(key = "shop")]
impl Shop {}

fn main() {}
