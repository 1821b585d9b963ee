//! The example of the documentation.

#![deny(warnings)]

extern crate self as lockgate;

#[path = "../it/stand_in.rs"]
#[allow(dead_code, unused_imports, reason = "every program uses another part")]
mod stand_in;

use lockgate_macros::locked;
use stand_in::*;

struct Issue(u64);

struct MyError;

impl From<lock::LockError> for MyError {
    fn from(_: lock::LockError) -> Self {
        Self
    }
}

#[locked(key = "coupon:{coupon_id}", wait = "3s", lease = "5s")]
async fn issue(coupon_id: u64, user: &str) -> Result<Issue, MyError> {
    if user.is_empty() {
        return Err(MyError);
    }
    Ok(Issue(coupon_id))
}

fn main() {
    let (result, calls) = finish(issue(7, "alice"));
    assert!(result.is_ok_and(|issue| issue.0 == 7));
    assert_eq!(calls[0].keys[0], "coupon:7");
}
