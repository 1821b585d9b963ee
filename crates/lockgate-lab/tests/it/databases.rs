//! The databases that the services harness starts, asked with the client library that people use.
//!
//! They are tested here and not beside the harness, so that the library's own tree stays free of SQL, tests included.

use std::time::Duration;

use lockgate::testing::services::{MariaDb, Postgres, Server};
use sqlx::{Connection, Row};

/// Too short for a paused server.
const SHORT: Duration = Duration::from_millis(200);

/// Runs one statement over a connection of its own, with the client library that Lockgate uses; the first value of
/// the first row, if there is one.
fn ask(url: &str, patience: Duration, sql: &'static str) -> Result<Option<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        sqlx::any::install_default_drivers();
        let asking = async {
            let mut connection = sqlx::AnyConnection::connect(url).await?;
            let row = sqlx::query(sql).fetch_optional(&mut connection).await?;
            row.map(|row| row.try_get::<String, _>(0)).transpose()
        };
        let in_time = tokio::time::timeout(patience, asking).await.map_err(|_| "no answer".to_owned())?;
        in_time.map_err(|why| why.to_string())
    })
}

const LONG: Duration = Duration::from_secs(10);

fn keeps_what_it_committed(server: &Server, url: &str) {
    let value = || ask(url, LONG, "SELECT a FROM t").unwrap();
    ask(url, LONG, "CREATE TABLE t (a varchar(9))").unwrap();
    ask(url, LONG, "INSERT INTO t VALUES ('7')").unwrap();
    let refusal = ask(url, LONG, "SELECT * FROM no_such_table").unwrap_err();
    assert!(refusal.contains("no_such_table"), "{refusal}");

    server.pause().unwrap();
    assert!(ask(url, SHORT, "SELECT 'x'").is_err());
    server.resume().unwrap();
    assert_eq!(value().as_deref(), Some("7"));

    server.kill();
    assert!(ask(url, LONG, "SELECT 'x'").is_err());
    server.restart().unwrap();
    assert_eq!(value().as_deref(), Some("7"), "after a kill");
    server.restart().unwrap();
    assert_eq!(value().as_deref(), Some("7"), "after a graceful stop");
}

#[test]
fn postgres_keeps_what_it_committed() {
    let postgres = Postgres::start().unwrap();
    assert_eq!(postgres.url(), format!("postgres://lockgate@127.0.0.1:{}/postgres", postgres.port()));
    keeps_what_it_committed(&postgres, &postgres.url());
}

#[test]
fn mariadb_keeps_what_it_committed() {
    let mariadb = MariaDb::start().unwrap();
    assert_eq!(mariadb.url(), format!("mysql://lockgate:lockgate@127.0.0.1:{}/lockgate", mariadb.port()));
    keeps_what_it_committed(&mariadb, &mariadb.url());
}

#[test]
fn postgres_waits_for_the_disk_when_asked_to() {
    let postgres = Postgres::builder().fsync(true).setting("max_connections", "20").start().unwrap();
    assert_eq!(ask(&postgres.url(), LONG, "SHOW fsync").unwrap().as_deref(), Some("on"));
    assert_eq!(ask(&postgres.url(), LONG, "SHOW max_connections").unwrap().as_deref(), Some("20"));
}
