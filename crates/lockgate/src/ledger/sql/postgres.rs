//! The ledger in PostgreSQL.

use std::collections::HashMap;
use std::fmt::Write as _;

use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Postgres};

use super::dialect::{ask_with, marks};
use super::{Arrival, Dialect, Migrations, Row, SCHEMA_VERSION, Value, pending, record_values};
use crate::store::Campaign;

const MIGRATIONS: Migrations = [
    include_str!("../../../migrations/postgres/0001_ledger.sql"),
    include_str!("../../../migrations/postgres/0002_actions.sql"),
];

/// Two that migrate at once take turns until the transaction ends. The number spells `lockgate`.
const TAKE_TURNS: &str = "SELECT pg_advisory_xact_lock(x'6c6f636b67617465'::bigint)";

impl Dialect for Postgres {
    const INTEGER: &'static str = "BIGINT";
    const FIND_CAMPAIGN: &'static str = "SELECT id FROM lockgate_campaigns WHERE md5(called) = md5(?)";

    fn insert_unless_there(table: &str, values: usize) -> String {
        format!("INSERT INTO {table} VALUES {} ON CONFLICT DO NOTHING", marks(values))
    }

    /// One transaction: interrupted anywhere, nothing has happened.
    async fn migrate(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
        // Whoever may not create tables can still use those that are there.
        if let Some(found) = version(connection).await?
            && found >= SCHEMA_VERSION
        {
            return Ok(found);
        }
        let mut transaction = connection.begin().await?;
        sqlx::raw_sql(TAKE_TURNS).execute(&mut *transaction).await?;
        let found = version(&mut transaction).await?.unwrap_or(0);
        if found < SCHEMA_VERSION {
            for migration in pending(&MIGRATIONS, found) {
                sqlx::raw_sql(migration).execute(&mut *transaction).await?;
            }
            sqlx::raw_sql("CREATE TABLE IF NOT EXISTS lockgate_schema (version BIGINT NOT NULL)")
                .execute(&mut *transaction)
                .await?;
            sqlx::raw_sql("DELETE FROM lockgate_schema").execute(&mut *transaction).await?;
            sqlx::query("INSERT INTO lockgate_schema VALUES ($1)")
                .bind(SCHEMA_VERSION)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(found.max(SCHEMA_VERSION))
    }

    ask_with!(Postgres, PgRow);

    /// By `COPY`, which is the fastest there is.
    async fn insert_records(
        connection: &mut PgConnection,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<(), sqlx::Error> {
        let copy =
            "COPY lockgate_ledger (campaign, rev, at_us, what, seq, user_id, quantity, detail) FROM STDIN";
        let mut lines = String::with_capacity(arrivals.len() * 64);
        for arrival in arrivals {
            write_line(&mut lines, &record_values(ids[&arrival.record.campaign], &arrival.record));
        }
        let mut copy = connection.copy_in_raw(copy).await?;
        copy.send(lines.into_bytes()).await?;
        copy.finish().await?;
        Ok(())
    }
}

/// One row in `COPY`'s text format.
fn write_line(lines: &mut String, values: &[Value]) {
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            lines.push('\t');
        }
        match value {
            // Writing into a String cannot fail.
            Value::Integer(number) => drop(write!(lines, "{number}")),
            Value::Null => lines.push_str("\\N"),
            Value::Text(text) => write_text(lines, text),
        }
    }
    lines.push('\n');
}

fn write_text(lines: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '\\' => lines.push_str("\\\\"),
            '\t' => lines.push_str("\\t"),
            '\n' => lines.push_str("\\n"),
            '\r' => lines.push_str("\\r"),
            letter => lines.push(letter),
        }
    }
}

/// The version of the tables, if there are any.
async fn version(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    let is_there: bool = sqlx::query_scalar("SELECT to_regclass('lockgate_schema') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !is_there {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT version FROM lockgate_schema").fetch_optional(connection).await
}

/// PostgreSQL numbers its values.
fn spelled(sql: &str) -> String {
    let mut spelled = String::with_capacity(sql.len() + 16);
    let mut number = 0;
    for letter in sql.chars() {
        spelled.push(if letter == '?' { '$' } else { letter });
        if letter == '?' {
            number += 1;
            let _ = write!(spelled, "{number}");
        }
    }
    spelled
}

ask_with!(functions Postgres, PgRow);
