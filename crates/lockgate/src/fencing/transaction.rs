//! A transaction that has passed the check.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

use sqlx::{Acquire, Database, Transaction};

use super::{FenceError, FencedConnection, check_and_raise};
use crate::store::Fence;

/// A transaction whose first statement was [`check_and_raise`]. Made by [`begin`], used like sqlx's own:
/// `execute(&mut *tx)`.
///
/// It borrows the lock's name. When that is the guard's, the compiler sees to it that the lock is released only after
/// the commit:
///
/// ```
/// # use lockgate::{fencing::{self, FencedConnection}, lock::MutexGuard};
/// # async fn sell<DB: sqlx::Database>(pool: &sqlx::Pool<DB>, guard: MutexGuard) -> Result<(), Box<dyn std::error::Error>>
/// # where DB::Connection: FencedConnection {
/// let mut tx = fencing::begin(pool, guard.name().as_str(), guard.fence()).await?;
/// // read, decide and write through `&mut *tx`
/// tx.commit().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// The other order does not compile:
///
/// ```compile_fail,E0505
/// # use lockgate::{fencing::{self, FencedConnection}, lock::MutexGuard};
/// # async fn sell<DB: sqlx::Database>(pool: &sqlx::Pool<DB>, guard: MutexGuard) -> Result<(), Box<dyn std::error::Error>>
/// # where DB::Connection: FencedConnection {
/// let mut tx = fencing::begin(pool, guard.name().as_str(), guard.fence()).await?;
/// // read, decide and write through `&mut *tx`
/// guard.release().await?; // cannot move out of `guard` because it is borrowed
/// tx.commit().await?;
/// # Ok(()) }
/// ```
///
/// Dropped without a commit, it is rolled back, as sqlx does it: at once in a pool, otherwise before the next use of
/// the connection. Until then the row of the fence stays locked; [`rollback`](Self::rollback) does not leave it to
/// chance.
#[must_use = "a transaction that is not committed is rolled back"]
pub struct FencedTransaction<'a, DB: Database> {
    transaction: Transaction<'a, DB>,
    name: &'a str,
    fence: Fence,
}

/// What [`begin`] returns: a future that may be sent to another task, whatever it was begun on.
pub type Beginning<'a, DB> =
    Pin<Box<dyn Future<Output = Result<FencedTransaction<'a, DB>, FenceError>> + Send + 'a>>;

/// Begins a transaction on a pool or a connection, and lets it through only when `fence` passes [`check_and_raise`].
///
/// That the check comes first matters: what the transaction reads after it cannot be older than what the holders before
/// have committed. A transaction that is refused is rolled back before this returns.
///
/// # Errors
///
/// As [`check_and_raise`].
///
/// # Cancel safety
///
/// Dropping the future rolls back, as dropping a [`FencedTransaction`] does.
pub fn begin<'a, A, DB>(database: A, name: &'a str, fence: Fence) -> Beginning<'a, DB>
where
    A: Acquire<'a, Database = DB>,
    DB: Database<Connection: FencedConnection>,
{
    // Before the async block, because a future that holds an `Acquire` cannot be spawned: the compiler then asks for
    // one that is implemented for all lifetimes.
    let beginning = database.begin();
    Box::pin(async move {
        let mut transaction = beginning.await?;
        match check_and_raise(&mut *transaction, name, fence).await {
            Ok(()) => Ok(FencedTransaction { transaction, name, fence }),
            Err(refused) => {
                // Not left to the drop: a newer holder would wait for the row meanwhile. A rollback that fails has
                // lost its connection, and with it the transaction.
                let _ = transaction.rollback().await;
                Err(refused)
            }
        }
    })
}

impl<DB: Database> FencedTransaction<'_, DB> {
    /// Makes everything permanent, the fence included. Now the lock may be released.
    ///
    /// # Errors
    ///
    /// When the database did not confirm: then nobody knows whether it happened, as with any commit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the commit happened.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    /// Undoes everything, the fence included.
    ///
    /// # Errors
    ///
    /// When the database did not answer. It undoes what is not committed when it notices that the connection is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls back, as dropping the transaction does.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

impl<DB: Database> Deref for FencedTransaction<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.transaction
    }
}

impl<DB: Database> DerefMut for FencedTransaction<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.transaction
    }
}

impl<DB: Database> fmt::Debug for FencedTransaction<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedTransaction")
            .field("name", &self.name)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
