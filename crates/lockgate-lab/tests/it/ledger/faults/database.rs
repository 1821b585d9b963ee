//! Databases that die, are away, lock or cut their connections. Grants go on, and the ledger follows.

use std::time::Duration;

use lockgate::ledger::{Ledger, Writer};
use lockgate::testing::eventually_async;
use lockgate::testing::proxy::{Direction, FaultProxy};
use lockgate::testing::services::{MariaDb, Postgres, Server};
use sqlx::{Connection as _, SqliteConnection};

use super::super::base::Base;
use super::super::{finish, on_redis, quick};
use super::crowd::both;
use super::{Crowd, SOON, judge};

/// What happens to the database while everybody buys and one writes.
async fn on_a_bad_day(base: &Base, bad_day: impl AsyncFnOnce(&Crowd, &Writer)) {
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let writer = base.ledger().await.start(gate.store(), quick()).unwrap();
    crowd.goes_on(100).await;
    bad_day(&crowd, &writer).await;
    crowd.goes_on(100).await;
    let told = crowd.end().await;
    let status = finish(writer).await;
    assert_eq!((status.dead_letters, status.failing), (0, None));
    judge(base, &gate, &told).await;
}

async fn is_writing(writer: &Writer) {
    let before = writer.status().rows;
    let writes = async || writer.status().rows > before && writer.status().failing.is_none();
    assert!(eventually_async(SOON, writes).await, "it does not write again: {:?}", writer.status());
}

async fn is_failing(writer: &Writer, within: Duration) {
    let fails = async || writer.status().failing.is_some();
    assert!(eventually_async(within, fails).await, "it does not say so: {:?}", writer.status());
}

async fn killed_and_restarted(server: &Server, times: u32, crowd: &Crowd, writer: &Writer) {
    for _ in 0..times {
        server.kill();
        // Grants do not need the database.
        crowd.goes_on(50).await;
        server.restart().unwrap();
        is_writing(writer).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_is_killed_twice_under_load_has_everything_once() {
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    on_a_bad_day(&base, async |crowd, writer| killed_and_restarted(&server, 2, crowd, writer).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mariadb_that_is_killed_under_load_has_everything_once() {
    let server = MariaDb::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    on_a_bad_day(&base, async |crowd, writer| killed_and_restarted(&server, 1, crowd, writer).await).await;
}

/// Longer than SQLite's own patience of five seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_that_somebody_else_locks_for_long_has_everything_once() {
    let base = Base::sqlite().await;
    on_a_bad_day(&base, async |crowd, writer| {
        let mut other = SqliteConnection::connect(&base.url).await.unwrap();
        sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
        let long = tokio::time::sleep(Duration::from_secs(8));
        is_failing(writer, Duration::from_secs(8)).await;
        assert!(writer.status().failing.unwrap().contains("locked"), "{:?}", writer.status());
        long.await;
        crowd.goes_on(10).await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
        is_writing(writer).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_cuts_every_connection_all_the_time_has_everything_once() {
    let base = Base::postgres().await;
    on_a_bad_day(&base, async |_, writer| {
        let sql = base.sql().await;
        let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let mut cuts = 0;
        for _ in 0..25 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cuts += sql.number(cut).await;
        }
        assert!(cuts >= 10, "only {cuts} connections were cut");
        is_writing(writer).await;
    })
    .await;
}

/// Commits happen, and nobody hears of it: what is written again is found.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_not_made_twice() {
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).await.unwrap();
    let around = base.url.replace(&server.port().to_string(), &proxy.port().to_string());
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let writer = Ledger::open(&around).await.unwrap().start(gate.store(), quick()).unwrap();
    // Slow enough, and at so many moments, that every answer of a transaction is lost at some time.
    proxy.delay(Duration::from_millis(2));
    let mut dice = 0;
    let is_found = async || {
        is_writing(&writer).await;
        dice += 1;
        tokio::time::sleep(Duration::from_millis(dice * 37 % 100)).await;
        proxy.lose_next_reply();
        proxy.until_replies_lost(dice).await;
        writer.status().known > 0 && dice >= 10
    };
    assert!(
        eventually_async(2 * SOON, is_found).await,
        "{:?}, {} lost",
        writer.status(),
        proxy.replies_lost()
    );
    proxy.heal();
    let told = crowd.end().await;
    finish(writer).await;
    judge(&base, &gate, &told).await;
}

/// As when a machine loses its power: connections stay open, and nothing comes any more.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fall_silent_are_given_up() {
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    let proxy = FaultProxy::start(([127, 0, 0, 1], server.port()).into()).await.unwrap();
    let around = base.url.replace(&server.port().to_string(), &proxy.port().to_string());
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let writer = Ledger::open(&around).await.unwrap().start(gate.store(), quick()).unwrap();
    crowd.goes_on(100).await;
    proxy.black_hole(Direction::ToClient);
    crowd.goes_on(50).await;
    let before = writer.status().rows;
    proxy.heal();
    // A minute, and what a busy machine needs.
    let writes = async || writer.status().rows > before;
    assert!(eventually_async(3 * SOON, writes).await, "it does not write again: {:?}", writer.status());
    let told = crowd.end().await;
    finish(writer).await;
    judge(&base, &gate, &told).await;
}

/// Nothing is under way when it dies: a connection that lies idle does not tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_died_unnoticed_is_noticed_with_the_next_grant() {
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let writer = base.ledger().await.start(gate.store(), quick()).unwrap();
    crowd.goes_on(100).await;
    let first = crowd.end().await;
    writer.drained().await;
    server.kill();
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    is_failing(&writer, Duration::from_secs(10)).await;
    let refused = Ledger::open(&base.url);
    let refused = tokio::time::timeout(Duration::from_secs(10), refused).await.expect("not told in time");
    assert!(refused.unwrap_err().to_string().contains("start the database there"));
    server.restart().unwrap();
    is_writing(&writer).await;
    let told = both(first, crowd.end().await);
    finish(writer).await;
    judge(&base, &gate, &told).await;
}

/// It says that it fails, and how far behind it is; nobody else notices.
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_is_away_for_a_minute_is_waited_for() {
    const AWAY: Duration = Duration::from_secs(60);
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    on_a_bad_day(&base, async |crowd, writer| {
        server.kill();
        let away = tokio::time::sleep(AWAY);
        is_failing(writer, Duration::from_secs(10)).await;
        let before = crowd.told();
        away.await;
        assert!(crowd.told() - before > 1_000, "grants did not go on");
        let status = writer.status();
        assert!(status.failing.is_some(), "{status:?}");
        assert!(status.behind > AWAY - Duration::from_secs(5), "{status:?}");
        server.restart().unwrap();
        is_writing(writer).await;
    })
    .await;
}
