//! The body: it behaves as if the attribute were not there.

use std::error::Error;
use std::fmt::Display;
use std::num::ParseIntError;

use lockgate_macros::locked;

use crate::lock::LockError;
use crate::stand_in::{finish, finish_with_key};

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Taken,
    NotANumber,
    TooBig,
}

impl From<LockError> for Refusal {
    fn from(LockError: LockError) -> Self {
        Self::Taken
    }
}

impl From<ParseIntError> for Refusal {
    fn from(_: ParseIntError) -> Self {
        Self::NotANumber
    }
}

impl From<LockError> for Box<dyn Error> {
    fn from(LockError: LockError) -> Self {
        "taken".into()
    }
}

type Answer<T> = Result<T, Refusal>;

/// Ends in every way that a body can.
#[locked(key = "{key}")]
async fn parsed(key: &str, number: &str) -> Answer<u8> {
    let number: u32 = number.parse()?;
    if number > 255 {
        return Err(Refusal::TooBig);
    }
    let number = number.try_into().map_err(|_| Refusal::TooBig)?;
    Ok(number)
}

#[locked(key = "{id}")]
async fn hidden(id: u8) -> Result<impl Display, Refusal> {
    if id == 0 {
        return Err(Refusal::TooBig);
    }
    Ok(id)
}

#[locked(key = "{id}")]
async fn boxed(id: u8) -> Result<Box<dyn Display>, Box<dyn Error>> {
    if id == 0 {
        return Ok(Box::new("nothing"));
    }
    let _: u8 = "12".parse()?;
    Ok(Box::new(id))
}

#[locked(key = "first")]
#[locked(key = "second")]
async fn twice() -> Answer<u8> {
    parsed("third", "3").await
}

#[locked(key = "key")]
async fn with_names_of_the_macro(key: u8, gate: u8) -> Answer<u8> {
    Ok(key + gate)
}

trait Counter {
    async fn count(&self, by: u8) -> Answer<u8>;
}

impl Counter for u8 {
    #[locked(key = "counter:{self}")]
    async fn count(&self, by: u8) -> Answer<u8> {
        Ok(self + by)
    }
}

macro_rules! counted {
    ($name:ident, $key:literal, $id:ident: $kind:ty, $output:ty, $body:block) => {
        #[locked(key = $key)]
        async fn $name($id: $kind) -> $output $body
    };
}

counted!(from_another_macro, "made:{id}", id: u8, Answer<u8>, { Ok(id) });

const fn is_send<T: Send>(future: T) -> T {
    future
}

#[test]
fn returns_and_question_marks_end_it() {
    assert_eq!(finish_with_key(parsed("a", "12")), (Ok(12), "a".into()));
    assert_eq!(finish(parsed("a", "300")).0, Err(Refusal::TooBig));
    assert_eq!(finish(parsed("a", "x")).0, Err(Refusal::NotANumber));
}

#[test]
fn without_the_lock_it_does_not_begin() {
    assert_eq!(finish(parsed("taken", "x")).0, Err(Refusal::Taken));
}

#[test]
fn its_type_is_that_of_the_function() {
    assert_eq!(finish(hidden(7)).0.map(|hidden| hidden.to_string()), Ok("7".into()));
    assert_eq!(finish(boxed(0)).0.map(|boxed| boxed.to_string()).ok(), Some("nothing".into()));
    assert_eq!(finish(boxed(9)).0.map(|boxed| boxed.to_string()).ok(), Some("9".into()));
}

#[test]
fn locks_may_be_nested() {
    let (result, calls) = finish(twice());
    let keys: Vec<_> = calls.iter().map(|call| call.keys[0].as_str()).collect();
    assert_eq!((result, keys), (Ok(3), vec!["second", "first", "third"]));
}

#[test]
fn it_sees_its_own_names_only() {
    assert_eq!(finish(with_names_of_the_macro(1, 2)).0, Ok(3));
}

#[test]
fn a_trait_may_be_implemented_so() {
    assert_eq!(finish_with_key(1.count(2)), (Ok(3), "counter:1".into()));
}

#[test]
fn another_macro_may_write_it() {
    assert_eq!(finish_with_key(from_another_macro(4)), (Ok(4), "made:4".into()));
}

#[test]
fn its_future_can_go_to_another_thread() {
    assert_eq!(finish(is_send(parsed("a", "1"))).0, Ok(1));
}
