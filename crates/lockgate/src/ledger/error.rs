//! What can go wrong with a ledger.

use crate::error::StoreError;

/// The ledger could not do what it was asked. Nothing is half done: what was not committed has not happened, and what may
/// have been committed can be done again without happening twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The database did not answer, or refused.
    #[error("the ledger's database: {0}")]
    Database(#[from] sqlx::Error),
    /// The database must not be used as it is: its tables are of a newer version, or not ours.
    #[error("{0}")]
    Unfit(String),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The user's own tables refused some records.
    #[error("the sink refused: {0}")]
    Sink(String),
    /// What was asked for makes no sense, or is not there.
    #[error("{0}")]
    Refused(String),
}

impl LedgerError {
    /// Whether the records themselves are at fault, so that trying again helps nobody. Everything else (a database that is
    /// away, full, read-only, restarting, or has lost its tables) is no fault of the records, and passes or is mended.
    #[must_use]
    pub fn is_fault_of_the_records(&self) -> bool {
        match self {
            LedgerError::Sink(_) => true,
            LedgerError::Database(sqlx::Error::Encode(_)) => true,
            LedgerError::Database(sqlx::Error::Database(refusal)) => {
                is_about_data(refusal.code().as_deref().unwrap_or_default())
            }
            _ => false,
        }
    }

    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, LedgerError::Database(sqlx::Error::Database(refusal)) if refusal.is_unique_violation())
    }
}

/// SQLSTATE's classes for what is wrong with the data (21, 22), breaks a rule about it (23, 44) or was refused by a trigger
/// (P0001, 45000); MySQL's HY000 is for anything, so not for this. SQLite's numbers: too big, constraint, mismatch.
fn is_about_data(code: &str) -> bool {
    match code.len() {
        5 => ["21", "22", "23", "44", "45"].contains(&&code[..2]) || code == "P0001",
        _ => code.parse::<u32>().is_ok_and(|number| [18, 19, 20].contains(&(number & 0xff))),
    }
}
