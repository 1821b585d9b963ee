//! Fences in MySQL and MariaDB.

use sqlx::MySqlConnection;

use super::FencedConnection;
use super::sealed::KeepsFences;

/// The fence is handed over twice, because the two databases have no common word for "what was to be inserted".
const RAISE: &str = "\
    INSERT INTO lockgate_fences (name, fence) VALUES (?, ?) \
    ON DUPLICATE KEY UPDATE fence = GREATEST(fence, ?)";

/// MySQL has no `RETURNING`, and how many rows it says it changed depends on a flag of the connection.
///
/// `FOR UPDATE` reads the row as it is. A plain read would answer from the transaction's snapshot, which may be older
/// than the newer holder's fence, unless the statement before changed the row; and in just the case that matters, the
/// refusal, it did not.
const READ: &str = "SELECT fence FROM lockgate_fences WHERE name = ? FOR UPDATE";

impl FencedConnection for MySqlConnection {
    /// Bytes, because text is compared by a collation, and most of them take `a` for `A` and `a ` for `a`. InnoDB,
    /// because no other engine rolls back.
    const CREATE_TABLE: &str = "\
        CREATE TABLE IF NOT EXISTS lockgate_fences \
        (name VARBINARY(512) NOT NULL PRIMARY KEY, fence BIGINT NOT NULL) ENGINE = InnoDB";
}

impl KeepsFences for MySqlConnection {
    async fn create_table(&mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(Self::CREATE_TABLE).execute(self).await.map(drop)
    }

    async fn raise(&mut self, name: &[u8], fence: i64) -> Result<i64, sqlx::Error> {
        sqlx::query(RAISE).bind(name).bind(fence).bind(fence).execute(&mut *self).await?;
        sqlx::query_scalar(READ).bind(name).fetch_one(self).await
    }
}
