//! Why a run ended before its end.

use std::error::Error;

use super::Failure;

/// A promise that was broken, or something that has nothing to do with promises.
#[derive(Debug)]
pub(super) enum Stop {
    /// A violation.
    Broken(String),
    /// The run itself could not go on.
    Trouble(Failure),
}

impl Stop {
    pub(super) fn broken(what: impl Into<String>) -> Self {
        Stop::Broken(what.into())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Stop {
    fn from(why: E) -> Self {
        Stop::Trouble(why.into())
    }
}
