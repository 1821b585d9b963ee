//! The user's own tables, filled in the same transaction.

use std::pin::Pin;

use sqlx::Database;

use super::error::LedgerError;
use super::record::Record;

/// What a sink's method returns.
pub type SinkFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SinkError>> + Send + 'a>>;

/// Fills tables of the user's own with what was decided.
///
/// **Promise:** every record is given to the sink exactly once *in effect*: what it writes over the given connection is
/// committed together with the ledger's rows, or not at all. A record that the ledger has already is not given again.
/// **Not promised:** the order. Records of one call stand in the order of the journal; those of several calls may come in
/// any order, because several writers work at once and one may take over what another has left. Who needs the order goes
/// by [`Record::rev`].
///
/// It has a minute for each call, and 10 ms for each record in it; a transaction that takes longer is given up and tried again.
///
/// Only write over the connection that is given, and do not commit: whatever else the sink does (a mail, a call) happens
/// again when the transaction does.
pub trait Sink<DB: Database>: Send + Sync + 'static {
    /// Writes the records.
    ///
    /// # Errors
    ///
    /// [`SinkError::Refused`] for records that it will never take: they are tried one by one, and whichever is refused alone
    /// becomes a dead letter. A [`SinkError::Database`] that is about the data (a broken constraint) means the same; any other
    /// is tried again until it works.
    fn write<'a>(&'a self, transaction: &'a mut DB::Connection, records: &'a [Record]) -> SinkFuture<'a>;
}

/// Why a sink did not write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// It does not take these records.
    #[error("{0}")]
    Refused(String),
}

impl From<SinkError> for LedgerError {
    fn from(why: SinkError) -> Self {
        match why {
            SinkError::Database(why) => LedgerError::Database(why),
            SinkError::Refused(why) => LedgerError::Sink(why),
        }
    }
}
