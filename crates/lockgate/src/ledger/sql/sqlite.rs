//! The ledger in SQLite.

use std::collections::HashMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Sqlite, SqliteConnection};

use super::dialect::{ask_with, insert_many, marks};
use super::{Arrival, Dialect, Migrations, Row, SCHEMA_VERSION, Value, pending, record_values};
use crate::store::Campaign;

const MIGRATIONS: Migrations = [
    include_str!("../../../migrations/sqlite/0001_ledger.sql"),
    include_str!("../../../migrations/sqlite/0002_actions.sql"),
];

/// How many records one statement inserts: enough that the statement itself costs nothing.
const AT_ONCE: usize = 500;

impl Dialect for Sqlite {
    const INTEGER: &'static str = "INTEGER";
    /// Whoever has read already does not wait for another that writes, but fails at once.
    const BEGIN_TO_WRITE: &'static str = "BEGIN IMMEDIATE";
    const FIND_CAMPAIGN: &'static str = "SELECT id FROM lockgate_campaigns WHERE called = ?";

    fn insert_unless_there(table: &str, values: usize) -> String {
        format!("INSERT INTO {table} VALUES {} ON CONFLICT DO NOTHING", marks(values))
    }

    /// One transaction: interrupted anywhere, nothing has happened.
    async fn migrate(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
        let mut transaction = connection.begin_with(Self::BEGIN_TO_WRITE).await?;
        sqlx::raw_sql("CREATE TABLE IF NOT EXISTS lockgate_schema (version INTEGER NOT NULL) STRICT")
            .execute(&mut *transaction)
            .await?;
        let found: Option<i64> = sqlx::query_scalar("SELECT version FROM lockgate_schema")
            .fetch_optional(&mut *transaction)
            .await?;
        if found.unwrap_or(0) < SCHEMA_VERSION {
            for migration in pending(&MIGRATIONS, found.unwrap_or(0)) {
                sqlx::raw_sql(migration).execute(&mut *transaction).await?;
            }
            sqlx::raw_sql("DELETE FROM lockgate_schema").execute(&mut *transaction).await?;
            sqlx::query("INSERT INTO lockgate_schema VALUES (?)")
                .bind(SCHEMA_VERSION)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(found.unwrap_or(0).max(SCHEMA_VERSION))
    }

    ask_with!(Sqlite, SqliteRow);

    async fn insert_records(
        connection: &mut SqliteConnection,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<(), sqlx::Error> {
        for some in arrivals.chunks(AT_ONCE) {
            let values =
                some.iter().flat_map(|arrival| record_values(ids[&arrival.record.campaign], &arrival.record));
            Self::execute(connection, &insert_many(some.len()), &values.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}

fn spelled(sql: &str) -> String {
    sql.to_owned()
}

ask_with!(functions Sqlite, SqliteRow);
