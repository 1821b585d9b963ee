//! What was done by hand: who changed the terms, paused a line, took a lock away.
//!
//! **Promise:** an action is there once, however often it is written, and those of all who share the database are in one list.
//! **Not promised:** that anybody writes them but `lockgate serve`; a program of your own writes its own.

use super::error::LedgerError;
use super::sql::{Row, Value, read_text, text};
use super::{Ledger, in_a_task};
use crate::clock::Timestamp;
use crate::store::Token;

/// Something that somebody did, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Which it is: written twice, it is there once.
    pub id: Token,
    /// When.
    pub at: Timestamp,
    /// What, such as `pause-coupon`.
    pub action: String,
    /// To what.
    pub target: String,
    /// What became of it.
    pub outcome: String,
    /// From where, as far as that is known.
    pub address: Option<String>,
}

impl Action {
    /// The values of its row.
    pub(super) fn values(&self) -> [Value; 6] {
        [
            Value::Text(self.id.to_string()),
            Value::Integer(i64::try_from(self.at.as_micros()).unwrap_or(i64::MAX)),
            Value::Text(text(&self.action)),
            Value::Text(text(&self.target)),
            Value::Text(text(&self.outcome)),
            Value::text_or_null(self.address.as_deref().map(text)),
        ]
    }

    pub(super) fn read(row: Row) -> Result<Self, LedgerError> {
        let bad = || LedgerError::Unfit("a row of lockgate_actions makes no sense".into());
        let [id, at, action, target, outcome, address] = <[Value; 6]>::try_from(row).map_err(|_| bad())?;
        let words = |value: Value| value.into_text().map(|text| read_text(&text).into_owned());
        Ok(Self {
            id: id.into_text().and_then(|id| Token::parse(&id)).ok_or_else(bad)?,
            at: Timestamp::from_micros(at.integer().and_then(|at| u64::try_from(at).ok()).ok_or_else(bad)?),
            action: words(action).ok_or_else(bad)?,
            target: words(target).ok_or_else(bad)?,
            outcome: words(outcome).ok_or_else(bad)?,
            address: words(address),
        })
    }
}

impl Ledger {
    /// Writes down what was done, all of it or nothing; what is there already stays as it is.
    ///
    /// # Errors
    ///
    /// When the database does not answer. It can be done again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether it happened; it can be done again.
    pub async fn note_actions(&self, actions: Vec<Action>) -> Result<(), LedgerError> {
        let book = std::sync::Arc::clone(&self.book);
        in_a_task(async move { book.note_actions(&actions).await }).await
    }

    /// The latest actions, the latest first, at most so many.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn actions(&self, limit: usize) -> Result<Vec<Action>, LedgerError> {
        self.book.actions(limit).await
    }
}
