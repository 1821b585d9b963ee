//! `wait` and `lease`.

use std::time::Duration;

use lockgate_macros::locked;

use crate::lock::LockError;
use crate::stand_in::finish;

#[locked(key = "all")]
async fn by_default() -> Result<(), LockError> {
    Ok(())
}

#[locked(key = "all", wait = "250ms", lease = "2m")]
async fn as_written() -> Result<(), LockError> {
    Ok(())
}

#[locked(key = "all", lease = "24h", wait = "0s")]
async fn at_the_ends() -> Result<(), LockError> {
    Ok(())
}

fn wait_and_lease(future: impl Future<Output = Result<(), LockError>>) -> (Duration, Duration) {
    let (result, calls) = finish(future);
    assert_eq!(result, Ok(()));
    (calls[0].wait, calls[0].lease)
}

#[test]
fn five_seconds_and_ten_are_the_defaults() {
    assert_eq!(wait_and_lease(by_default()), (Duration::from_secs(5), Duration::from_secs(10)));
}

#[test]
fn what_is_written_is_passed_on() {
    assert_eq!(wait_and_lease(as_written()), (Duration::from_millis(250), Duration::from_mins(2)));
    assert_eq!(wait_and_lease(at_the_ends()), (Duration::ZERO, Duration::from_hours(24)));
}
