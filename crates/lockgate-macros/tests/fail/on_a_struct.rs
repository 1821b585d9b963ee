//! Not a function at all.

use lockgate_macros::locked;

#[locked(key = "shop")]
pub struct Shop;

#[locked(key = "shop")]
const SHOP: Shop = Shop;

fn main() {}
