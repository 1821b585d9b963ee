//! Fences in SQLite.

use sqlx::SqliteConnection;

use super::FencedConnection;
use super::sealed::KeepsFences;

/// One statement, under SQLite's one write lock.
const RAISE: &str = "\
    INSERT INTO lockgate_fences (name, fence) VALUES (?, ?) \
    ON CONFLICT (name) DO UPDATE SET fence = MAX(fence, excluded.fence) \
    RETURNING fence";

impl FencedConnection for SqliteConnection {
    /// `STRICT`, because SQLite would otherwise take a text for a name, which is never equal to the same bytes.
    const CREATE_TABLE: &str = "\
        CREATE TABLE IF NOT EXISTS lockgate_fences \
        (name BLOB NOT NULL PRIMARY KEY, fence INTEGER NOT NULL) STRICT, WITHOUT ROWID";
}

impl KeepsFences for SqliteConnection {
    async fn create_table(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(Self::CREATE_TABLE).execute(self).await.map(drop)
    }

    async fn raise(&mut self, name: &[u8], fence: i64) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(RAISE).bind(name).bind(fence).fetch_one(self).await
    }
}
