//! Whatever the program wants to be warned of, it is not warned of what the attribute writes.

#![deny(warnings, future_incompatible, let_underscore, nonstandard_style, rust_2018_idioms, unused)]
#![deny(missing_docs, single_use_lifetimes, unreachable_pub, unused_lifetimes, unused_qualifications, unused_results)]
#![forbid(unsafe_code, unused_mut, unused_variables)]

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
#[allow(dead_code, missing_docs, unused_results, reason = "every program uses another part")]
mod stand_in;

use std::time::Duration;

use lockgate_macros::locked;
use stand_in::lock::LockError;
use stand_in::*;

/// Ends at once.
#[must_use]
pub fn at_once(_: Duration) -> String {
    String::new()
}

/// Its body is one expression.
#[locked(key = "one:{id}")]
pub async fn one_line(id: u8) -> Result<u8, LockError> { Ok(id) }

/// Its body is nothing but another future.
#[locked(key = "one:{id}")]
pub async fn only_awaits(id: u8) -> Result<u8, LockError> { one_line(id).await }

/// Its body begins with what might go on with the statement before.
#[locked(key = "begin:{a}")]
pub async fn begins_with_parentheses(a: u8, b: u8) -> Result<u8, LockError> {
    (if a > b { Ok(a) } else { Err(LockError) }).or(Ok(b))
}

/// Its argument is used by the key alone, and another changes in the body.
#[locked(key = "args:{id}", gate = (gate), wait = "60000ms", lease = "60s")]
pub async fn arguments(id: u8, gate: &Gate, mut list: Vec<u8>) -> Result<Vec<u8>, LockError> {
    #![allow(unused_must_use, reason = "an inner attribute stays one")]
    one_line(1);
    list.push(1);
    Ok(list)
}

/// Its body never ends.
#[locked(key = "never")]
pub async fn never() -> Result<u8, LockError> { panic!("never") }

/// Its body does not return.
#[locked(key = "for ever")]
#[expect(clippy::infinite_loop, reason = "an attribute behind this one stays where it is")]
pub async fn for_ever() -> Result<std::convert::Infallible, LockError> {
    loop {
        std::future::pending::<()>().await;
    }
}

fn main() {
    assert_eq!(finish(only_awaits(3)).0, Ok(3));
    assert_eq!(finish(begins_with_parentheses(1, 2)).0, Ok(2));
    assert_eq!(finish(arguments(1, &Gate("mine"), vec![])).0, Ok(vec![1]));
}
