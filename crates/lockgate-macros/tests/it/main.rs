//! What `#[locked]` writes, as a program that uses it sees it. The attribute's `::lockgate` is this crate: see `stand_in`.

#![warn(clippy::pedantic)]

extern crate self as lockgate;

mod body;
mod fixtures;
mod gates;
mod keys;
mod stand_in;
mod times;

use self::stand_in::{Gate, lock, locked};
