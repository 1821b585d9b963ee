//! The database refuses a holder whose lock has gone to somebody else.
//!
//! **Promise:** once a newer holder's transaction has committed, no transaction of an older holder commits: it is told
//! [`Fenced`] instead, and nothing of it stays. That holds however long the older one was paused, whatever it believes
//! about its lease, and whatever the clocks say.
//!
//! ```text
//! without a fence                             with the fence, in the same transaction as the write
//! A: lock (lease 10 s), read quantity 5       A: lock → fence 7, read quantity 5
//! A: … paused for 30 s …                      A: … paused for 30 s …
//!      B: lock, read 5, write 4, release           B: lock → fence 8; stored 0 ≤ 8: write 4, store 8
//! A: write 4, release  (one sale is lost)     A: stored 8 > 7: Fenced, rolled back
//! ```
//!
//! Every grant of a lock has a higher [`Fence`] than all before it. The table `lockgate_fences` keeps the highest that
//! has written under each name: `stored <= mine` passes and stores mine, everything else is refused. Equal passes,
//! because one holder may write several times.
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use lockgate::{fencing::{self, FenceError}, store::Fence};
//! # use sqlx::Connection as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut connection = sqlx::SqliteConnection::connect("sqlite::memory:").await?;
//! # sqlx::query("CREATE TABLE stock AS SELECT 5 AS quantity").execute(&mut connection).await?;
//! fencing::create_table(&mut connection).await?; // once, when the program starts
//!
//! let fence = Fence::new(8); // the grant's; here, of a lock on "stock"
//! let mut tx = fencing::begin(&mut connection, "stock", fence).await?;
//! sqlx::query("UPDATE stock SET quantity = quantity - 1").execute(&mut *tx).await?;
//! tx.commit().await?;
//! // … and only now is the lock released.
//!
//! // Somebody who got the lock before us, and has slept since:
//! let late = fencing::begin(&mut connection, "stock", Fence::new(7)).await;
//! assert!(matches!(late, Err(FenceError::Fenced(refused)) if refused.stored == fence));
//! # Ok(())
//! # }
//! ```
//!
//! # How to use it
//!
//! 1. **The check comes first in the transaction**, before anything is read that the write depends on. It locks the row
//!    of the fence until the transaction ends, so holders who overlap take turns, and whoever comes second reads what
//!    the first has committed. What was read before the check may be old: under `REPEATABLE READ`, even what is read
//!    after it, as the snapshot is that of the first read.
//! 2. **The writes are in the same transaction.** Between a check that has committed and a write that follows, a lease
//!    can run out.
//! 3. **The lock is released after the commit.** Whoever gets it next may read before it checks, or have other things
//!    to do under the lock than to ask this database.
//!
//! [`begin`] does the first, and its transaction borrows the guard's name, which makes the third a question for the
//! compiler. [`check_and_raise`] is for a transaction that is begun elsewhere.
//!
//! # What is not promised
//!
//! - Nothing about statements that do not go through a check, and nothing without a transaction: there the row is
//!   unlocked again before the next statement begins.
//! - That an older holder is refused before a newer one has **written**. Until then it comes first, as if it had been
//!   faster; the newer one reads what it left.
//! - That [`FenceError::Database`] never comes instead of [`Fenced`]: above `READ COMMITTED`, PostgreSQL answers with a
//!   serialization failure when both were at it at once, and so does SQLite when the transaction has read before the
//!   check. Nothing has changed then either, and the next try is told the truth.
//! - Anything about a database that loses what it has committed.
//!
//! # Names
//!
//! A name is kept as its bytes: case, accents, trailing spaces and NUL make a difference, whatever the database's
//! collation. It has at most [`MAX_NAME_BYTES`], less than a lock's name may have, because a key of MySQL's older row
//! formats has no room for more; longer ones are refused rather than hashed, so that the table can be read by people.

use std::future::Future;

use sqlx::Connection;

use crate::error::InvalidInput;
use crate::store::Fence;

mod error;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;

pub use self::error::{FenceError, Fenced};
pub use self::transaction::{Beginning, FencedTransaction, begin};

/// The longest name that can be fenced, in bytes.
pub const MAX_NAME_BYTES: usize = 512;

/// Every fence that is given out is below: stores count in doubles.
const FENCES_END: u64 = 1 << 53;

/// A connection to a database that keeps fences: `PgConnection` (feature `postgres`), `MySqlConnection` (`mysql`, also
/// for MariaDB) and `SqliteConnection` (`sqlite`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection that keeps fences",
    note = "a transaction or a pooled connection is handed over as `&mut *tx`",
    note = "`PgConnection` needs lockgate's feature `postgres`, `MySqlConnection` needs `mysql`, `SqliteConnection` `sqlite`"
)]
pub trait FencedConnection: Connection + sealed::KeepsFences {
    /// What [`create_table`] does, for those who keep their tables in migrations.
    const CREATE_TABLE: &'static str;
}

mod sealed {
    use super::Future;

    /// The two statements, as each database says them.
    pub trait KeepsFences: Send {
        fn create_table(&mut self) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

        /// Stores the higher of `fence` and what is stored, and answers with it. The row stays locked until the
        /// transaction ends, also when it was not changed.
        fn raise(&mut self, name: &[u8], fence: i64)
        -> impl Future<Output = Result<i64, sqlx::Error>> + Send;
    }
}

/// Creates the table `lockgate_fences` unless it exists. May be called by many at once.
///
/// Call it when the program starts, outside of a transaction: MySQL and MariaDB commit one that is open.
///
/// # Errors
///
/// When the database refuses (PostgreSQL wants the right to create tables even if this one exists) or does not answer.
///
/// # Cancel safety
///
/// Dropping the future leaves it unknown whether the table exists; calling again is harmless.
pub async fn create_table<C: FencedConnection>(connection: &mut C) -> Result<(), sqlx::Error> {
    sealed::KeepsFences::create_table(connection).await
}

/// Lets the caller's transaction go on when nobody with a higher fence has written under `name`, and has everybody with
/// a lower one refused from its commit on.
///
/// It waits for a transaction that has checked the same name and has not ended yet. A rollback takes the fence back
/// with everything else.
///
/// ```
/// # use lockgate::{fencing::{self, FenceError, FencedConnection}, store::Fence};
/// # async fn write<DB: sqlx::Database>(pool: &sqlx::Pool<DB>, fence: Fence) -> Result<(), FenceError>
/// # where DB::Connection: FencedConnection {
/// let mut tx = pool.begin().await?;
/// fencing::check_and_raise(&mut *tx, "coupon:7", fence).await?;
/// // read, decide and write through `&mut *tx`
/// tx.commit().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`FenceError::Fenced`] when a newer holder has written. Nothing was changed, and the transaction can still be used;
/// roll it back soon, because it keeps the row of the fence locked.
///
/// [`FenceError::InvalidInput`] when the name is empty or longer than [`MAX_NAME_BYTES`], or when the fence is none that
/// a lock gives out: stored, it would lock out every holder to come.
///
/// # Cancel safety
///
/// Dropping the future leaves it unknown what the transaction has done; roll it back.
pub async fn check_and_raise<C: FencedConnection>(
    connection: &mut C,
    name: &str,
    fence: Fence,
) -> Result<(), FenceError> {
    check_name(name)?;
    let number = number_to_store(fence)?;
    // Not negative, as it is not below ours.
    let stored = Fence::new(connection.raise(name.as_bytes(), number).await?.unsigned_abs());
    if stored <= fence { Ok(()) } else { Err(Fenced { name: name.to_owned(), mine: fence, stored }.into()) }
}

fn check_name(name: &str) -> Result<(), InvalidInput> {
    match name.len() {
        0 => Err(InvalidInput::new("name", "must not be empty")),
        1..=MAX_NAME_BYTES => Ok(()),
        length => Err(InvalidInput::new(
            "name",
            format!(
                "is {length} bytes long; at most {MAX_NAME_BYTES} can be fenced: give the lock a shorter name, for \
                 example with a hash in place of the long part"
            ),
        )),
    }
}

fn number_to_store(fence: Fence) -> Result<i64, InvalidInput> {
    let given_out = fence > Fence::NONE && fence.get() < FENCES_END;
    i64::try_from(fence.get()).ok().filter(|_| given_out).ok_or_else(|| {
        InvalidInput::new("fence", format!("no lock gives out {fence}; take the fence of the lock's grant"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_is_told_what_would() {
        assert_eq!(check_name(&"x".repeat(MAX_NAME_BYTES)), Ok(()));
        assert_eq!(check_name("").unwrap_err().to_string(), "name: must not be empty");
        let too_long = check_name(&"x".repeat(MAX_NAME_BYTES + 1)).unwrap_err().to_string();
        assert!(too_long.starts_with("name: is 513 bytes long; at most 512 can be fenced"), "{too_long}");
    }

    #[test]
    fn only_fences_that_a_lock_gives_out_are_stored() {
        assert_eq!(number_to_store(Fence::new(1)), Ok(1));
        assert_eq!(number_to_store(Fence::new(FENCES_END - 1)), Ok((1 << 53) - 1));
        for from_nowhere in [0, FENCES_END, u64::MAX] {
            assert_eq!(number_to_store(Fence::new(from_nowhere)).unwrap_err().field, "fence");
        }
    }

    #[test]
    fn the_refusal_says_who_has_written_and_what_to_do() {
        let refused = Fenced { name: "coupon:7".to_owned(), mine: Fence::new(7), stored: Fence::new(9) };
        assert_eq!(
            FenceError::from(refused).to_string(),
            "lock \"coupon:7\": a newer holder has written with fence 9, so fence 7 may not write any more; roll the \
             transaction back and do not retry with this guard: take the lock anew and read again"
        );
    }
}
