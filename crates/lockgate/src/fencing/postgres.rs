//! Fences in PostgreSQL.

use sqlx::{AssertSqlSafe, PgConnection};

use super::FencedConnection;
use super::sealed::KeepsFences;

/// One statement, so that nobody comes between. The conflicting row is locked before it is compared, and what is
/// compared is its newest version: in `READ COMMITTED` that of whoever committed last, above that a version which the
/// snapshot does not know is a serialization failure.
const RAISE: &str = "\
    INSERT INTO lockgate_fences (name, fence) VALUES ($1, $2) \
    ON CONFLICT (name) DO UPDATE SET fence = GREATEST(lockgate_fences.fence, EXCLUDED.fence) \
    RETURNING fence";

/// `IF NOT EXISTS` looks first and creates then, so two at once can both find nothing, and one of them fails on a
/// unique index of the catalogue. An error would also end a transaction that the caller may have open; so they take
/// turns. The number spells `lockgate`.
const TAKE_TURNS: &str = "SELECT pg_advisory_xact_lock(x'6c6f636b67617465'::bigint)";

impl FencedConnection for PgConnection {
    const CREATE_TABLE: &str =
        "CREATE TABLE IF NOT EXISTS lockgate_fences (name BYTEA PRIMARY KEY, fence BIGINT NOT NULL)";
}

impl KeepsFences for PgConnection {
    async fn create_table(&mut self) -> Result<(), sqlx::Error> {
        // Sent as one text, they are one transaction: the turn ends when the table is there for everybody.
        let one_text = format!("{TAKE_TURNS}; {}", Self::CREATE_TABLE);
        sqlx::raw_sql(AssertSqlSafe(one_text)).execute(self).await.map(drop)
    }

    async fn raise(&mut self, name: &[u8], fence: i64) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(RAISE).bind(name).bind(fence).fetch_one(self).await
    }
}
