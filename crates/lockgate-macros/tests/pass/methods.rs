//! `&self`, `&mut self`, `self` and a method without any.

#![deny(warnings)]

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
#[allow(dead_code, unused_imports, reason = "every program uses another part")]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

struct Shop {
    gate: Gate,
    name: String,
    sold: u64,
}

impl Shop {
    #[locked(key = "{self.name}", gate = self.gate)]
    async fn sold(&self) -> Result<u64, lock::LockError> { Ok(self.sold) }

    #[locked(key = "{self.name}", gate = &self.gate)]
    async fn sell(&mut self, more: u64) -> Result<(), lock::LockError> {
        self.sold += more;
        Ok(())
    }

    #[locked(key = "{self.name}", gate = self.gate)]
    async fn close(mut self) -> Result<String, lock::LockError> {
        self.name.push('!');
        Ok(self.name)
    }

    #[locked(key = "{name}", gate = gate)]
    async fn open(name: String, gate: Gate) -> Result<Self, lock::LockError> {
        Ok(Self { gate, name, sold: 0 })
    }
}

fn main() {
    let mut shop = finish(Shop::open("north".into(), Gate("mine"))).0.unwrap();
    finish(shop.sell(2)).0.unwrap();
    assert_eq!(finish(shop.sold()).0, Ok(2));
    assert_eq!(finish(shop.close()).0, Ok("north!".into()));
}
