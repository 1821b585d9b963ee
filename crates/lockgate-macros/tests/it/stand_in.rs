//! A stand-in for `lockgate` with the names that the attribute uses. It writes down what it is asked, so that tests see
//! exactly what the attribute wrote, and need no store.
//!
//! A crate root that says `extern crate self as lockgate` and takes these names in is `::lockgate` to the attribute.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// What `run` was asked for, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) gate: Option<&'static str>,
    pub(crate) keys: Vec<String>,
    pub(crate) wait: Duration,
    pub(crate) lease: Duration,
}

/// A gate with a name to know it by.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) &'static str);

pub(crate) mod lock {
    /// The lock was not to be had.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct LockError;
}

pub(crate) mod locked {
    use std::time::Duration;

    use super::lock::LockError;
    use super::{CALLS, Call, Gate};

    pub(crate) fn gate(given: &Gate) -> Gate {
        given.clone()
    }

    /// Writes the call down. Keys that begin with `taken` are not to be had.
    pub(crate) async fn run<T, E, F, const KEYS: usize>(
        gate: Option<&Gate>,
        keys: [String; KEYS],
        wait: Duration,
        lease: Duration,
        body: F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: From<LockError>,
    {
        let taken = keys.iter().any(|key| key.starts_with("taken"));
        let (gate, keys) = (gate.map(|gate| gate.0), keys.to_vec());
        CALLS.with_borrow_mut(|calls| calls.push(Call { gate, keys, wait, lease }));
        if taken { Err(LockError.into()) } else { body.await }
    }
}

/// The result of a future that never has to wait, and the calls that it made.
#[expect(clippy::panic, reason = "a test whose future waits is wrong")]
pub(crate) fn finish<T>(future: impl Future<Output = T>) -> (T, Vec<Call>) {
    CALLS.take();
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => (result, CALLS.take()),
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Like [`finish`], with the key of the only call.
pub(crate) fn finish_with_key<T>(future: impl Future<Output = T>) -> (T, String) {
    let (result, calls) = finish(future);
    assert!(calls.len() == 1 && calls[0].keys.len() == 1, "{calls:?}");
    (result, calls[0].keys[0].clone())
}
