//! Where the rows go.
//!
//! **Promise:** somebody else's database is left as it was found: the bench works in a schema (MySQL: a database) of its own,
//! called `lockgate_bench`, which it removes at the end; in SQLite in a file that was not there before.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use lockgate::error::without_secrets;
use lockgate::ledger::Ledger;
use lockgate::testing::services::{MariaDb, Postgres};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{MySqlPool, PgPool, SqlitePool};
use tempfile::TempDir;

use crate::bench::Failure;

/// As many connections as a ledger has that is opened by URL.
const CONNECTIONS: u32 = 4;

/// The database, and what has to live as long as it.
pub(super) struct Database {
    pub(super) pool: Pool,
    /// The file to remove.
    file: Option<PathBuf>,
    _own: Own,
}

/// What the bench has started or made.
enum Own {
    Nothing,
    Postgres { _server: Postgres },
    MariaDb { _server: MariaDb },
    Folder { _folder: TempDir },
}

/// Connections, whatever the database.
#[derive(Clone)]
pub(super) enum Pool {
    Postgres(PgPool),
    MySql(MySqlPool),
    Sqlite(SqlitePool),
}

/// What is expected on the reference machine.
pub(super) struct Bars {
    pub(super) per_second: Option<f64>,
    pub(super) of_limit: Option<f64>,
}

impl Database {
    /// What `--db` says; a PostgreSQL of our own when it says nothing.
    pub(super) async fn open(wanted: Option<&str>) -> Result<Self, Failure> {
        let (url, own) = match wanted.unwrap_or("postgres") {
            "postgres" => {
                let server = Postgres::builder().fsync(true).setting("shared_buffers", "256MB").start()?;
                (server.url(), Own::Postgres { _server: server })
            }
            "mysql" | "mariadb" => {
                let server = MariaDb::builder().fsync(true).start()?;
                (server.url(), Own::MariaDb { _server: server })
            }
            "sqlite" => {
                let folder = TempDir::new()?;
                (
                    format!("sqlite:{}", folder.path().join("ledger.db").display()),
                    Own::Folder { _folder: folder },
                )
            }
            url => (url.to_owned(), Own::Nothing),
        };
        let unreachable = |why: Failure| {
            let url = without_secrets(&url);
            format!("cannot measure on {url}: {why}; correct --db, or leave it out to start a PostgreSQL")
        };
        let (pool, file) = connect(&url).await.map_err(unreachable)?;
        Ok(Self { pool, file, _own: own })
    }

    /// Removes everything that the bench has made.
    pub(super) async fn leave(self) -> Result<(), Failure> {
        match &self.pool {
            Pool::Postgres(_) => self.pool.run("DROP SCHEMA lockgate_bench CASCADE").await?,
            Pool::MySql(_) => self.pool.run("DROP DATABASE lockgate_bench").await?,
            Pool::Sqlite(_) => {}
        }
        // Before the server goes, or the pool complains that it has.
        self.pool.close().await;
        if let Some(file) = &self.file {
            std::fs::remove_file(file)?;
        }
        Ok(())
    }

    /// The ledger in it.
    pub(super) async fn ledger(&self) -> Result<Ledger, Failure> {
        Ok(match &self.pool {
            Pool::Postgres(pool) => Ledger::on(pool.clone()).await?,
            Pool::MySql(pool) => Ledger::on(pool.clone()).await?,
            Pool::Sqlite(pool) => Ledger::on(pool.clone()).await?,
        })
    }

    /// A ledger without a row.
    pub(super) async fn empty_ledger(&self) -> Result<Ledger, Failure> {
        self.pool.clear("lockgate_ledger").await?;
        self.ledger().await
    }

    pub(super) fn bars(&self) -> Bars {
        match &self.pool {
            Pool::Postgres(_) => Bars { per_second: Some(60_000.0), of_limit: Some(0.5) },
            Pool::MySql(_) => Bars { per_second: Some(40_000.0), of_limit: None },
            Pool::Sqlite(_) => Bars { per_second: None, of_limit: None },
        }
    }
}

impl Pool {
    pub(super) async fn run(&self, sql: &'static str) -> Result<(), Failure> {
        let _affected = match self {
            Pool::Postgres(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
            Pool::MySql(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
            Pool::Sqlite(pool) => sqlx::raw_sql(sql).execute(pool).await?.rows_affected(),
        };
        Ok(())
    }

    pub(super) async fn count(&self, sql: &'static str) -> Result<i64, Failure> {
        Ok(match self {
            Pool::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
            Pool::MySql(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
            Pool::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        })
    }

    async fn close(&self) {
        match self {
            Pool::Postgres(pool) => pool.close().await,
            Pool::MySql(pool) => pool.close().await,
            Pool::Sqlite(pool) => pool.close().await,
        }
    }

    /// Empties one of the two tables that are written.
    pub(super) async fn clear(&self, table: &'static str) -> Result<(), Failure> {
        match (self, table) {
            (Pool::Sqlite(_), "lockgate_ledger") => self.run("DELETE FROM lockgate_ledger").await,
            (Pool::Sqlite(_), _) => self.run("DELETE FROM bench_rows").await,
            (_, "lockgate_ledger") => self.run("TRUNCATE TABLE lockgate_ledger").await,
            _ => self.run("TRUNCATE TABLE bench_rows").await,
        }
    }
}

/// Connects, and makes the table beside the ledger's, which is like it and which no ledger writes.
async fn connect(url: &str) -> Result<(Pool, Option<PathBuf>), Failure> {
    match url.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => Ok((connect_postgres(url).await?, None)),
        "mysql" | "mariadb" => Ok((connect_mysql(url).await?, None)),
        "sqlite" => {
            let file = url.trim_start_matches("sqlite:").trim_start_matches("//");
            let file = Path::new(file.split('?').next().unwrap_or_default());
            if file.exists() {
                return Err("the file exists; name one that does not".into());
            }
            Ok((connect_sqlite(file).await?, Some(file.to_owned())))
        }
        _ => Err("it is no postgres://…, mysql://… or sqlite:<file>".into()),
    }
}

async fn connect_postgres(url: &str) -> Result<Pool, Failure> {
    let options = PgConnectOptions::from_str(url)?;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
    let fresh = "DROP SCHEMA IF EXISTS lockgate_bench CASCADE; CREATE SCHEMA lockgate_bench";
    sqlx::raw_sql(fresh).execute(&pool).await?;
    let options = options.options([("search_path", "lockgate_bench")]);
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?;
    Ledger::on(pool.clone()).await?;
    let table = "CREATE TABLE bench_rows (LIKE lockgate_ledger INCLUDING ALL)";
    sqlx::raw_sql(table).execute(&pool).await?;
    Ok(Pool::Postgres(pool))
}

async fn connect_mysql(url: &str) -> Result<Pool, Failure> {
    let options = MySqlConnectOptions::from_str(url)?;
    let pool = MySqlPoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
    sqlx::raw_sql("DROP DATABASE IF EXISTS lockgate_bench").execute(&pool).await?;
    sqlx::raw_sql("CREATE DATABASE lockgate_bench CHARACTER SET utf8mb4").execute(&pool).await?;
    let options = options.database("lockgate_bench");
    let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?;
    Ledger::on(pool.clone()).await?;
    sqlx::raw_sql("CREATE TABLE bench_rows LIKE lockgate_ledger").execute(&pool).await?;
    Ok(Pool::MySql(pool))
}

async fn connect_sqlite(file: &Path) -> Result<Pool, Failure> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?;
    Ledger::on(pool.clone()).await?;
    let table = "CREATE TABLE bench_rows (campaign INTEGER NOT NULL, rev INTEGER NOT NULL, at_us INTEGER NOT NULL, \
         what TEXT NOT NULL, seq INTEGER, user_id TEXT, quantity INTEGER, detail TEXT, PRIMARY KEY (campaign, rev)) \
         STRICT, WITHOUT ROWID";
    sqlx::raw_sql(table).execute(&pool).await?;
    Ok(Pool::Sqlite(pool))
}
