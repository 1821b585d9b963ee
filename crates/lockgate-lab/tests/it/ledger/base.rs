//! Databases for the ledger: each server is started once for the whole binary, each test has a database of its own in it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use lockgate::ledger::Ledger;
use lockgate::testing::services::{MariaDb, Postgres};
use sqlx::{AnyPool, AssertSqlSafe};
use tempfile::TempDir;

/// An empty database.
pub(super) struct Base {
    pub(super) url: String,
    _folder: Option<TempDir>,
}

impl Base {
    pub(super) async fn postgres() -> Self {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        Self::in_server(&SERVER.get_or_init(|| Postgres::start().unwrap()).url()).await
    }

    pub(super) async fn mariadb() -> Self {
        static SERVER: OnceLock<MariaDb> = OnceLock::new();
        Self::in_server(&SERVER.get_or_init(|| MariaDb::start().unwrap()).url()).await
    }

    #[expect(clippy::unused_async, reason = "as the others")]
    pub(super) async fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        Self { url: format!("sqlite:{}/ledger.db", folder.path().display()), _folder: Some(folder) }
    }

    /// A new database in a server that is the test's own.
    pub(super) async fn in_server(url: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("ledger_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        any(url).await.run(&format!("CREATE DATABASE {name}")).await;
        let server = url.rsplit_once('/').unwrap().0;
        Self { url: format!("{server}/{name}"), _folder: None }
    }

    pub(super) async fn ledger(&self) -> Ledger {
        Ledger::open(&self.url).await.unwrap()
    }

    /// For questions in plain SQL.
    pub(super) async fn sql(&self) -> Sql {
        any(&self.url).await
    }
}

pub(super) struct Sql(AnyPool);

async fn any(url: &str) -> Sql {
    sqlx::any::install_default_drivers();
    Sql(sqlx::any::AnyPoolOptions::new().max_connections(1).connect(url).await.unwrap())
}

impl Sql {
    pub(super) async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.0).await.unwrap();
    }

    pub(super) async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.0).await.unwrap()
    }

    pub(super) async fn texts(&self, sql: &str) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&self.0).await.unwrap()
    }
}
