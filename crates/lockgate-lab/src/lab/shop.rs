//! The database as the strategies see it: a coupon with a stock, and a row for everybody who has one.
//!
//! ```sql
//! CREATE TABLE coupon (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL, version BIGINT NOT NULL);
//! CREATE TABLE issue (coupon BIGINT NOT NULL, account BIGINT NOT NULL);
//! ```
//!
//! Neither table forbids anything: no unique user, no `CHECK (stock >= 0)`. What goes wrong is to be seen, not to be prevented.
//! Every round has a coupon of its own, so a statement that comes late from an earlier round spoils nothing.
//!
//! All databases run at READ COMMITTED, the default of most, so that a strategy means the same on each of them. SQLite knows no
//! such thing: there, a transaction that writes is the only one from its beginning.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::fencing::{self, FenceError};
use lockgate::ledger::{Ledger, Record, Sink, SinkFuture};
use lockgate::store::Fence;
use serde::{Deserialize, Serialize};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, MySqlPool, PgConnection, PgPool, Row as _, SqlitePool,
};

use super::Failure;
use super::audit::Books;
use super::session::{Held, Session, Sql};

/// Where the tables are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) url: String,
    /// The schema (MySQL: database) that the lab has made for itself; nothing outside of it is touched.
    pub(super) schema: String,
}

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Postgres,
    MySql,
    Sqlite,
}

impl Address {
    pub(super) fn dialect(&self) -> Result<Dialect, Failure> {
        match self.url.split(':').next().unwrap_or_default() {
            "postgres" | "postgresql" => Ok(Dialect::Postgres),
            "mysql" | "mariadb" => Ok(Dialect::MySql),
            "sqlite" => Ok(Dialect::Sqlite),
            _ => Err("it is no postgres://…, mysql://… or sqlite:<file>".into()),
        }
    }

    /// The file of a SQLite database.
    pub(super) fn file(&self) -> &str {
        let path = self.url.trim_start_matches("sqlite:").trim_start_matches("//");
        path.split('?').next().unwrap_or_default()
    }
}

/// Connections to it, and a count of what they are asked. Cheap to clone.
#[derive(Clone)]
pub(super) struct Shop {
    pub(super) pool: Pool,
    statements: Arc<AtomicU64>,
}

#[derive(Clone)]
pub(super) enum Pool {
    Postgres(PgPool),
    MySql(MySqlPool),
    Sqlite(SqlitePool),
}

/// Nobody waits in vain for a connection: the crowd is larger than the pool on purpose, and rounds have a limit of their own.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A pool would try for as long as that to reach a server that is not there, so the first connection is made without it.
async fn in_time<C>(connecting: impl Future<Output = Result<C, sqlx::Error>>) -> Result<C, Failure> {
    let in_time = tokio::time::timeout(Duration::from_secs(10), connecting).await;
    Ok(in_time.map_err(|_| "no answer within 10 s")??)
}

const OPEN_COUPON: Sql = Sql {
    postgres: "INSERT INTO coupon (id, stock, version) VALUES ($1, $2, 0)",
    others: "INSERT INTO coupon (id, stock, version) VALUES (?, ?, 0)",
};

impl Shop {
    pub(super) async fn connect(address: &Address, connections: u32) -> Result<Self, Failure> {
        let pool = match address.dialect()? {
            Dialect::Postgres => {
                let options = PgConnectOptions::from_str(&address.url)?;
                let options = options.options([("search_path", &address.schema)]);
                in_time(PgConnection::connect_with(&options)).await?;
                let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE);
                Pool::Postgres(pool.connect_with(options).await?)
            }
            Dialect::MySql => {
                let options = MySqlConnectOptions::from_str(&address.url)?.database(&address.schema);
                in_time(MySqlConnection::connect_with(&options)).await?;
                let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
                let pool = MySqlPoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE);
                let pool = pool.after_connect(move |connection, _| {
                    Box::pin(async move { sqlx::raw_sql(level).execute(connection).await.map(|_| ()) })
                });
                Pool::MySql(pool.connect_with(options).await?)
            }
            Dialect::Sqlite => Pool::Sqlite(connect_sqlite(address).await?),
        };
        Ok(Self { pool, statements: Arc::default() })
    }

    /// Opens all connections, so that the first round does not pay for them.
    pub(super) async fn warm_up(&self, connections: u32) -> Result<(), Failure> {
        let mut all = Vec::new();
        if !matches!(self.pool, Pool::Sqlite(_)) {
            for _ in 0..connections {
                all.push(self.plain(0).await?);
            }
        }
        Ok(())
    }

    /// Puts a new coupon on the shelf.
    pub(super) async fn open_coupon(&self, coupon: i64, stock: u64) -> Result<(), Failure> {
        let mut session = self.plain(coupon).await?;
        session.write(OPEN_COUPON, &[coupon, i64::try_from(stock)?]).await?;
        Ok(())
    }

    /// A transaction. It is rolled back when it is dropped.
    pub(super) async fn begin(&self, coupon: i64) -> Result<Session, Failure> {
        let held = match &self.pool {
            Pool::Postgres(pool) => Held::Postgres(pool.begin().await?.into()),
            Pool::MySql(pool) => Held::MySql(pool.begin().await?.into()),
            // At once, as one that has read before it wants to write is refused when somebody else was faster.
            Pool::Sqlite(pool) => Held::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?.into()),
        };
        self.statements.fetch_add(1, Ordering::Relaxed);
        Ok(Session::new(held, coupon, Arc::clone(&self.statements)))
    }

    /// A connection on which every statement is a transaction of its own.
    pub(super) async fn plain(&self, coupon: i64) -> Result<Session, Failure> {
        let held = match &self.pool {
            Pool::Postgres(pool) => Held::Postgres(pool.acquire().await?.into()),
            Pool::MySql(pool) => Held::MySql(pool.acquire().await?.into()),
            Pool::Sqlite(pool) => Held::Sqlite(pool.acquire().await?.into()),
        };
        Ok(Session::new(held, coupon, Arc::clone(&self.statements)))
    }

    /// How many statements were sent since it was last asked.
    pub(super) fn take_statements(&self) -> u64 {
        self.statements.swap(0, Ordering::Relaxed)
    }

    /// Lockgate's ledger in the same database.
    pub(super) async fn ledger(&self) -> Result<Ledger, Failure> {
        let counts = Counts(Arc::clone(&self.statements));
        Ok(match &self.pool {
            Pool::Postgres(pool) => Ledger::with_sink(pool.clone(), counts).await?,
            Pool::MySql(pool) => Ledger::with_sink(pool.clone(), counts).await?,
            Pool::Sqlite(pool) => Ledger::with_sink(pool.clone(), counts).await?,
        })
    }

    /// What is written of a coupon in the end.
    pub(super) async fn books(&self, coupon: i64) -> Result<Books, Failure> {
        // Given back at once: SQLite's is the only one.
        let stock = self.plain(coupon).await?.stock().await?;
        let rows = self.users(&format!("SELECT account FROM issue WHERE coupon = {coupon}")).await?;
        self.take_statements();
        Ok(Books { stock, rows })
    }

    /// The same of one that is in Lockgate's ledger: what is left is what was opened, less what was granted.
    pub(super) async fn books_of_ledger(&self, coupon: i64, stock: u64) -> Result<Books, Failure> {
        let account = match &self.pool {
            Pool::MySql(_) => "CAST(l.user_id AS SIGNED)",
            Pool::Postgres(_) | Pool::Sqlite(_) => "CAST(l.user_id AS BIGINT)",
        };
        let rows = self
            .users(&format!(
                "SELECT {account} FROM lockgate_ledger l JOIN lockgate_campaigns c ON c.id = l.campaign \
                 WHERE c.kind = 'coupon' AND c.name = '{coupon}' AND l.what = 'issued'"
            ))
            .await?;
        Ok(Books { stock: i64::try_from(stock)?.saturating_sub(i64::try_from(rows.len())?), rows })
    }

    /// One number per row. The statement has nothing in it that a user has written.
    async fn users(&self, sql: &str) -> Result<Vec<u64>, Failure> {
        let sql = AssertSqlSafe(sql.to_owned());
        let users: Vec<i64> = match &self.pool {
            Pool::Postgres(pool) => sqlx::query_scalar(sql).fetch_all(pool).await?,
            Pool::MySql(pool) => sqlx::query_scalar(sql).fetch_all(pool).await?,
            Pool::Sqlite(pool) => sqlx::query_scalar(sql).fetch_all(pool).await?,
        };
        Ok(users.into_iter().map(i64::unsigned_abs).collect())
    }

    /// One line of text.
    pub(super) async fn line(&self, sql: &'static str) -> Result<String, Failure> {
        Ok(match &self.pool {
            Pool::Postgres(pool) => sqlx::query(sql).fetch_one(pool).await?.try_get(0)?,
            Pool::MySql(pool) => sqlx::query(sql).fetch_one(pool).await?.try_get(0)?,
            Pool::Sqlite(pool) => sqlx::query(sql).fetch_one(pool).await?.try_get(0)?,
        })
    }

    /// Runs statements that the lab itself needs.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Failure> {
        let sql = AssertSqlSafe(sql.to_owned());
        let _affected = match &self.pool {
            Pool::Postgres(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
            Pool::MySql(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
            Pool::Sqlite(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
        };
        Ok(())
    }

    pub(super) async fn close(&self) {
        match &self.pool {
            Pool::Postgres(pool) => pool.close().await,
            Pool::MySql(pool) => pool.close().await,
            Pool::Sqlite(pool) => pool.close().await,
        }
    }

    /// Makes the tables.
    pub(super) async fn create_tables(&self) -> Result<(), Failure> {
        self.run(
            "CREATE TABLE coupon (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL, version BIGINT NOT NULL)",
        )
        .await?;
        self.run("CREATE TABLE issue (coupon BIGINT NOT NULL, account BIGINT NOT NULL)").await?;
        self.run("CREATE INDEX issue_account ON issue (coupon, account)").await?;
        match &self.pool {
            Pool::Postgres(pool) => fencing::create_table(&mut *pool.acquire().await?).await?,
            Pool::MySql(pool) => fencing::create_table(&mut *pool.acquire().await?).await?,
            Pool::Sqlite(pool) => fencing::create_table(&mut *pool.acquire().await?).await?,
        }
        Ok(())
    }
}

/// One connection: SQLite has one writer at a time anyway, and waiting for it in a queue is faster than asking again and again.
async fn connect_sqlite(address: &Address) -> Result<SqlitePool, Failure> {
    let options = SqliteConnectOptions::new()
        .filename(address.file())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    Ok(SqlitePoolOptions::new().max_connections(1).acquire_timeout(PATIENCE).connect_with(options).await?)
}

/// Counts what the ledger's writer sends, which has connections of its own: for each transaction its beginning, the campaign, the
/// rows and the commit.
struct Counts(Arc<AtomicU64>);

const STATEMENTS_OF_A_BATCH: u64 = 4;

impl<D: sqlx::Database> Sink<D> for Counts {
    fn write<'a>(&'a self, _: &'a mut D::Connection, _: &'a [Record]) -> SinkFuture<'a> {
        self.0.fetch_add(STATEMENTS_OF_A_BATCH, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

/// Whether the fence passes in the session's transaction; a refusal is an answer.
pub(super) async fn raise_fence(session: &mut Session, name: &str, fence: Fence) -> Result<bool, Failure> {
    let passed = match session.held_mut() {
        Held::Postgres(held) => fencing::check_and_raise(held.connection(), name, fence).await,
        Held::MySql(held) => fencing::check_and_raise(held.connection(), name, fence).await,
        Held::Sqlite(held) => fencing::check_and_raise(held.connection(), name, fence).await,
    };
    session.count_statement();
    match passed {
        Ok(()) => Ok(true),
        Err(FenceError::Fenced(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}
