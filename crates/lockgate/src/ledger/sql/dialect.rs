//! In what the databases differ.

use std::collections::HashMap;
use std::future::Future;

use sqlx::Database;

use super::Arrival;
use crate::store::Campaign;

/// A value in a statement or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Integer(i64),
    Text(String),
    Null,
}

/// The values of a row.
pub(in crate::ledger) type Row = Vec<Value>;

impl Value {
    pub(in crate::ledger) fn text_or_null(text: Option<String>) -> Self {
        text.map_or(Value::Null, Value::Text)
    }

    pub(in crate::ledger) fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            Value::Text(_) | Value::Null => None,
        }
    }

    pub(in crate::ledger) fn into_text(self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Null => None,
        }
    }
}

/// A database that keeps a ledger. Statements have a `?` for each value.
pub trait Dialect: Database {
    /// What to cast a sum to.
    const INTEGER: &'static str;
    /// Begins a transaction that reads first and writes then, so that nobody writes in between unseen.
    const BEGIN_TO_WRITE: &'static str = "BEGIN";
    /// Finds the id of a campaign by what it is called.
    const FIND_CAMPAIGN: &'static str;
    /// The condition that a row is a user's, byte for byte.
    const IS_USER: &'static str = "user_id = ?";
    /// What stays of a row's detail when its user is erased: the request was the user's, the hold says nothing.
    const ERASED_DETAIL: &'static str = "CASE WHEN what = 'bought' THEN NULL ELSE detail END";

    /// Inserts one row into a table with these columns, unless its key is there.
    fn insert_unless_there(table: &str, values: usize) -> String;

    /// Brings the tables to this program's version, unless they have a newer one; answers which they have.
    fn migrate(connection: &mut Self::Connection) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;

    fn execute(
        connection: &mut Self::Connection,
        sql: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    fn fetch(
        connection: &mut Self::Connection,
        sql: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send;

    /// Inserts the rows of these records as fast as it can; a row that is there already is an error.
    fn insert_records(
        connection: &mut Self::Connection,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// So many question marks in parentheses: `(?, ?, ?)`.
#[cfg(any(feature = "mysql", feature = "sqlite", feature = "postgres"))]
pub(super) fn marks(count: usize) -> String {
    let mut marks = "(?".to_owned();
    (1..count).for_each(|_| marks.push_str(", ?"));
    marks.push(')');
    marks
}

/// The statement that inserts so many records at once.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(super) fn insert_many(count: usize) -> String {
    let columns = "campaign, rev, at_us, what, seq, user_id, quantity, detail";
    let mut sql = format!("INSERT INTO lockgate_ledger ({columns}) VALUES ");
    let row = marks(8);
    for place in 0..count {
        if place > 0 {
            sql.push_str(", ");
        }
        sql.push_str(&row);
    }
    sql
}

/// Binds values, runs and reads, in the same words for every database.
macro_rules! ask_with {
    ($database:ty, $row:ty) => {
        async fn execute(
            connection: &mut Self::Connection,
            sql: &str,
            values: &[Value],
        ) -> Result<u64, sqlx::Error> {
            let query = bound(sqlx::query(sqlx::AssertSqlSafe(spelled(sql))), values);
            Ok(query.execute(connection).await?.rows_affected())
        }

        async fn fetch(
            connection: &mut Self::Connection,
            sql: &str,
            values: &[Value],
        ) -> Result<Vec<Row>, sqlx::Error> {
            let query = bound(sqlx::query(sqlx::AssertSqlSafe(spelled(sql))), values);
            query.fetch_all(connection).await?.iter().map(read_row).collect()
        }
    };
    (functions $database:ty, $row:ty) => {
        fn bound<'q>(
            query: sqlx::query::Query<'q, $database, <$database as sqlx::Database>::Arguments>,
            values: &[Value],
        ) -> sqlx::query::Query<'q, $database, <$database as sqlx::Database>::Arguments> {
            values.iter().fold(query, |query, value| match value {
                Value::Integer(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.clone()),
                Value::Null => query.bind(None::<String>),
            })
        }

        /// Every value is an integer or a text, or missing.
        fn read_row(row: &$row) -> Result<Row, sqlx::Error> {
            use sqlx::Row as _;
            let value = |place| match row.try_get::<Option<i64>, _>(place) {
                Ok(number) => Ok(number.map_or(Value::Null, Value::Integer)),
                Err(_) => row.try_get::<Option<String>, _>(place).map(Value::text_or_null),
            };
            (0..row.len()).map(value).collect()
        }
    };
}
pub(super) use ask_with;
