//! The three databases, as far as the tests of fencing have to know them: an empty one, a statement, a number.
//!
//! Each server is started once for the whole binary, and the kernel ends it with it; each test has a database of its own
//! in it.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate::fencing::{self, Beginning, FencedConnection};
use lockgate::store::Fence;
use lockgate::testing::services::{MariaDb, Postgres};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Database, Pool};
use tempfile::TempDir;

/// As many as the most crowded test needs at once.
const CONNECTIONS: u32 = 10;

pub(super) type ConnectionOf<D> = <<D as Tested>::Sqlx as Database>::Connection;

/// A database that is under test, empty at first and nobody else's.
pub(super) trait Tested: Sized + Send + Sync + 'static {
    type Sqlx: Database<Connection: FencedConnection>;

    /// A statement for each isolation level that must keep the promises, for the transactions to come.
    const ISOLATION_LEVELS: &[&str];

    fn empty() -> impl Future<Output = Self> + Send;

    fn pool(&self) -> &Pool<Self::Sqlx>;

    /// `fencing::begin` on a connection that is no pool's.
    fn begin<'a>(
        connection: &'a mut ConnectionOf<Self>,
        name: &'a str,
        fence: Fence,
    ) -> Beginning<'a, Self::Sqlx>;

    fn run(
        connection: &mut ConnectionOf<Self>,
        sql: impl Into<String> + Send,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    fn number(
        connection: &mut ConnectionOf<Self>,
        sql: &'static str,
    ) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;
}

/// What is written alike for all three, and cannot be written once.
macro_rules! asks_like_the_others {
    () => {
        fn pool(&self) -> &Pool<Self::Sqlx> {
            &self.pool
        }

        fn begin<'a>(
            connection: &'a mut ConnectionOf<Self>,
            name: &'a str,
            fence: Fence,
        ) -> Beginning<'a, Self::Sqlx> {
            fencing::begin(connection, name, fence)
        }

        async fn run(
            connection: &mut ConnectionOf<Self>,
            sql: impl Into<String> + Send,
        ) -> Result<(), sqlx::Error> {
            sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(connection).await.map(drop)
        }

        async fn number(connection: &mut ConnectionOf<Self>, sql: &'static str) -> Result<i64, sqlx::Error> {
            sqlx::query_scalar(sql).fetch_one(connection).await
        }
    };
}

/// A name that no other test of this process has.
fn own_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("own_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(super) struct OnPostgres {
    pool: Pool<sqlx::Postgres>,
}

impl Tested for OnPostgres {
    type Sqlx = sqlx::Postgres;

    const ISOLATION_LEVELS: &[&str] = &[
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ];

    async fn empty() -> Self {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        let url = SERVER.get_or_init(|| Postgres::start().unwrap()).url();
        let options: PgConnectOptions = url.parse().unwrap();
        let schema = own_name();
        Self::run(&mut options.connect().await.unwrap(), format!("CREATE SCHEMA {schema}")).await.unwrap();
        let options = options.options([("search_path", schema)]);
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        Self { pool: pool.unwrap() }
    }

    asks_like_the_others!();
}

pub(super) struct OnMariaDb {
    pool: Pool<sqlx::MySql>,
}

impl Tested for OnMariaDb {
    type Sqlx = sqlx::MySql;

    const ISOLATION_LEVELS: &[&str] = &[
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ];

    async fn empty() -> Self {
        static SERVER: OnceLock<MariaDb> = OnceLock::new();
        let url = SERVER.get_or_init(|| MariaDb::start().unwrap()).url();
        let options: MySqlConnectOptions = url.parse().unwrap();
        let name = own_name();
        Self::run(&mut options.connect().await.unwrap(), format!("CREATE DATABASE {name}")).await.unwrap();
        let options = options.database(&name);
        let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        Self { pool: pool.unwrap() }
    }

    asks_like_the_others!();
}

pub(super) struct OnSqlite {
    pool: Pool<sqlx::Sqlite>,
    _folder: TempDir,
}

impl Tested for OnSqlite {
    type Sqlx = sqlx::Sqlite;

    /// It has one level only.
    const ISOLATION_LEVELS: &[&str] = &["SELECT 'serializable'"];

    async fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("own.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Who waits asks again after ever longer pauses, so that an unlucky one may wait for long.
            .busy_timeout(Duration::from_secs(60));
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        Self { pool: pool.unwrap(), _folder: folder }
    }

    asks_like_the_others!();
}
