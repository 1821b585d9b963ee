//! The ledger in MySQL and MariaDB.

use std::collections::HashMap;

use sqlx::mysql::MySqlRow;
use sqlx::{MySql, MySqlConnection};

use super::dialect::{ask_with, insert_many, marks};
use super::{Arrival, Dialect, Migrations, Row, SCHEMA_VERSION, Value, pending, record_values};
use crate::store::Campaign;

const MIGRATIONS: Migrations = [
    include_str!("../../../migrations/mysql/0001_ledger.sql"),
    include_str!("../../../migrations/mysql/0002_actions.sql"),
];

/// How many records one statement inserts: always so many while there are, so that one statement is prepared once.
const AT_ONCE: usize = 1_000;

/// With so many bytes of text, a statement has fewer records.
const LONG_TEXTS: usize = 2 * 1024 * 1024;

impl Dialect for MySql {
    const INTEGER: &'static str = "SIGNED";
    const FIND_CAMPAIGN: &'static str = "SELECT id FROM lockgate_campaigns WHERE digest = MD5(?)";
    /// Even a binary collation takes `a ` for `a`.
    const IS_USER: &'static str = "CAST(user_id AS BINARY) = CAST(? AS BINARY)";

    /// `IGNORE` would also swallow a text that is too long; a key that is set to itself swallows nothing.
    fn insert_unless_there(table: &str, values: usize) -> String {
        let first = table.split(['(', ',']).nth(1).unwrap_or_default().trim();
        format!("INSERT INTO {table} VALUES {} ON DUPLICATE KEY UPDATE {first} = {first}", marks(values))
    }

    /// Every statement is committed at once here, so each may be run again: interrupted anywhere, the next one goes on.
    async fn migrate(connection: &mut MySqlConnection) -> Result<i64, sqlx::Error> {
        let take_turns = "SELECT CAST(GET_LOCK('lockgate_migration', 60) AS SIGNED)";
        let turn: Option<i64> = sqlx::query_scalar(take_turns).fetch_one(&mut *connection).await?;
        if turn != Some(1) {
            return Err(sqlx::Error::Protocol("somebody else has been migrating for a minute".into()));
        }
        let migrated = migrate_alone(connection).await;
        sqlx::query("DO RELEASE_LOCK('lockgate_migration')").execute(connection).await?;
        migrated
    }

    ask_with!(MySql, MySqlRow);

    async fn insert_records(
        connection: &mut MySqlConnection,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<(), sqlx::Error> {
        for some in arrivals.chunks(AT_ONCE).flat_map(in_packets) {
            let values: Vec<_> = some
                .iter()
                .flat_map(|arrival| record_values(ids[&arrival.record.campaign], &arrival.record))
                .collect();
            let sql = insert_many(some.len());
            // Statements of every other length would fill the connection's cache.
            let query = bound(sqlx::query(sqlx::AssertSqlSafe(sql)), &values);
            query.persistent(some.len() == AT_ONCE).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

/// The longest texts of a thousand records would not fit into one packet (16 MiB, unless somebody has said otherwise).
fn in_packets(some: &[Arrival]) -> impl Iterator<Item = &[Arrival]> {
    let length = |arrival: &Arrival| {
        let user = arrival.record.user.as_ref().map_or(0, |user| user.as_str().len());
        user + arrival.record.detail.as_ref().map_or(0, String::len)
    };
    let is_long = some.iter().map(length).sum::<usize>() > LONG_TEXTS;
    some.chunks(if is_long { AT_ONCE / 20 } else { AT_ONCE })
}

async fn migrate_alone(connection: &mut MySqlConnection) -> Result<i64, sqlx::Error> {
    let table =
        "CREATE TABLE IF NOT EXISTS lockgate_schema (version BIGINT NOT NULL PRIMARY KEY) ENGINE = InnoDB";
    sqlx::raw_sql(table).execute(&mut *connection).await?;
    let found: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM lockgate_schema").fetch_one(&mut *connection).await?;
    let found = found.unwrap_or(0);
    if found < SCHEMA_VERSION {
        for migration in pending(&MIGRATIONS, found) {
            sqlx::raw_sql(migration).execute(&mut *connection).await?;
        }
        sqlx::query("REPLACE INTO lockgate_schema VALUES (?)")
            .bind(SCHEMA_VERSION)
            .execute(&mut *connection)
            .await?;
    }
    Ok(found.max(SCHEMA_VERSION))
}

fn spelled(sql: &str) -> String {
    sql.to_owned()
}

ask_with!(functions MySql, MySqlRow);
