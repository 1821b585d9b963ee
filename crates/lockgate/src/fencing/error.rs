//! How a fenced write can fail.

use crate::error::InvalidInput;
use crate::store::Fence;

/// A newer holder of the lock has written: this one's lease ran out without its noticing. **Nothing was changed.**
///
/// It is final. The same fence will be refused again, so the transaction can only be rolled back, and the work begins
/// anew under a new grant of the lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "lock {name:?}: a newer holder has written with fence {stored}, so fence {mine} may not write any more; roll the \
     transaction back and do not retry with this guard: take the lock anew and read again"
)]
pub struct Fenced {
    /// The lock that was lost.
    pub name: String,
    /// The fence of the holder that was refused.
    pub mine: Fence,
    /// The fence of the newer holder.
    pub stored: Fence,
}

/// The fence could not be checked, or was checked and refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The lock has a newer holder. Trying again is useless.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The name or the fence cannot be kept. Nothing has changed.
    #[error(transparent)]
    InvalidInput(#[from] InvalidInput),
    /// The database answered with an error, or not at all. This says nothing about the lock: a deadlock, a
    /// serialization failure or a lost connection may be tried again, from the beginning of the transaction, as long as
    /// the lock is held.
    #[error(
        "the database failed: {0}; roll back, and try the whole transaction again while the lock is held (after a \
         failed commit, look first whether it happened)"
    )]
    Database(#[from] sqlx::Error),
}
