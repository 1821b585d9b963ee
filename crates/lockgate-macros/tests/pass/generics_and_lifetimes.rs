//! The signature stays as it was.

#![deny(warnings)]

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
#[allow(dead_code, unused_imports, reason = "every program uses another part")]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

use std::fmt::{Debug, Display};

struct Shelf<'a, T> {
    items: &'a [T],
}

impl<'a, T: Debug + Sync> Shelf<'a, T> {
    #[locked(key = "shelf:{self.items:?}:{at}")]
    async fn item<I>(&self, at: I) -> Result<&'a T, lock::LockError>
    where
        I: Display + Into<usize>,
    {
        self.items.get(at.into()).ok_or(lock::LockError)
    }

    #[locked(key = "{PREFIX}:{number}")]
    async fn numbered<'b, const PREFIX: char>(
        &'b self,
        number: impl Display,
    ) -> Result<impl Iterator<Item = &'b T>, lock::LockError> {
        Ok(self.items.iter())
    }
}

#[locked(key = "{name}")]
async fn shorter<'a>(name: &'a str, other: &str) -> Result<&'a str, lock::LockError> {
    Ok(name.get(other.len()..).unwrap_or(name))
}

fn main() {
    let shelf = Shelf { items: &["a", "b"] };
    assert_eq!(finish_with_key(shelf.item(1_u8)), (Ok(&"b"), "shelf:[\"a\", \"b\"]:1".into()));
    assert_eq!(finish(shelf.numbered::<'n'>(7)).0.map(Iterator::count), Ok(2));
    assert_eq!(finish_with_key(shorter("north", "a")), (Ok("orth"), "north".into()));
}
