//! What can go wrong with a lock.

use std::time::Duration;

use crate::error::{InvalidInput, StoreError};
use crate::key::Name;

/// Why a lock was not given, or could not be kept.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Others had the lock for all the time that the caller was willing to wait.
    #[error("{name} was taken for all of the {waited:?} that were waited; try again later, or wait longer")]
    TimedOut {
        /// Which lock.
        name: Name,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The lock ran out while it was needed; somebody else may have it.
    #[error(transparent)]
    Lost(#[from] LockLost),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Who holds a lock for reading asked to write: it would wait for itself.
    #[error(
        "{name} is held for reading by the same owner, and a reader cannot become a writer: two of them would wait for each \
         other for ever; release the read lock first, or take the write lock from the start and downgrade it"
    )]
    Upgrade {
        /// Which lock.
        name: Name,
    },
    /// There is no such latch.
    #[error(
        "there is no latch {name}: nobody has set it, or it was forgotten a day after its last use; set it first"
    )]
    NoLatch {
        /// Which latch.
        name: Name,
    },
    /// So many servers of a quorum did not answer that nothing is certain.
    #[error(
        "{name}: only {answered} servers of the quorum answered, no majority; try again when more are back"
    )]
    NoQuorum {
        /// Which lock.
        name: Name,
        /// How many servers answered.
        answered: usize,
    },
    /// The gate is shutting down.
    #[error("the gate is shutting down; open another one")]
    ShuttingDown,
    /// `#[locked]` has no gate to lock with.
    #[error(
        "there is no gate to lock with; call `gate.make_default()` when the program starts, or write `gate = …` in #[locked]"
    )]
    NoGate,
}

impl From<InvalidInput> for LockError {
    fn from(why: InvalidInput) -> Self {
        LockError::Store(why.into())
    }
}

/// The lock can no longer be trusted: its lease has run out, it was taken away, or the store could not be asked in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} is no longer held: its lease ran out or it was taken away; undo what was not yet committed, and lock again"
)]
pub struct LockLost {
    /// Which lock.
    pub name: Name,
}
