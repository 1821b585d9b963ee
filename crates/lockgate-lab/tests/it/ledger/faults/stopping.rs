//! Writers that are asked to stop.

use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::{JournalEntry, JournalPosition, MAX_BATCH};
use lockgate::testing::eventually_async;
use lockgate::testing::services::Postgres;

use super::super::base::Base;
use super::super::{on_redis, quick};
use super::{Crowd, SOON, drain, judge, oldest_waiting};

/// Everything that was given to it is written and acknowledged; everything else was given to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_shut_down_under_load_leaves_nothing_half_done() {
    let base = Base::postgres().await;
    let sql = base.sql().await;
    let (redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    for _ in 0..5 {
        let mut config = quick();
        config.batch_rows = 20;
        let writer = base.ledger().await.start(gate.store(), config).unwrap();
        crowd.goes_on(50).await;
        assert!(eventually_async(SOON, async || writer.status().rows > 0).await);
        writer.shutdown().await;
        let pending = redis.command(&["XPENDING", "lg:{0}:journal", "ledger"]).unwrap();
        assert_eq!(pending.parts()[0].as_int(), Some(0), "given and not acknowledged: {pending:?}");
        crowd.goes_on(5).await;
        let oldest = oldest_waiting(&gate).await.expect("somebody has bought since");
        let next = entry_at(&gate, oldest).await;
        let rows = sql.number("SELECT COUNT(*) FROM lockgate_ledger").await;
        assert_eq!(rows + 1, i64::try_from(next.rev).unwrap(), "what waits is what is not written");
        let last = "SELECT MAX(rev) FROM lockgate_ledger";
        assert_eq!(sql.number(last).await, rows);
    }
    let told = crowd.end().await;
    let status = drain(&base, &gate).await;
    assert_eq!(status.known, 0, "{status:?}");
    judge(&base, &gate, &told).await;
}

async fn entry_at(gate: &Gate, position: JournalPosition) -> JournalEntry {
    let mut after = JournalPosition::START;
    loop {
        let page = gate.store().journal_read(0, after, MAX_BATCH).await.unwrap();
        after = page.last().expect("it is not there").position;
        if let Some(found) = page.into_iter().find(|entry| entry.position == position) {
            return found;
        }
    }
}

/// It cannot write, and does not wait for longer than it was told; what it had is for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_database_hangs_stops_in_time() {
    let server = Postgres::start().unwrap();
    let base = Base::in_server(&server.url()).await;
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let mut config = quick();
    config.shutdown_within = Duration::from_secs(2);
    let writer = base.ledger().await.start(gate.store(), config).unwrap();
    crowd.goes_on(100).await;
    server.pause().unwrap();
    crowd.goes_on(100).await;
    let (clock, start) = (Clock::system(), Clock::system().monotonic());
    writer.shutdown().await;
    let took = clock.monotonic().since(start);
    assert!(took >= Duration::from_secs(2), "it gave up after {took:?}");
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    let waits = gate.store().journal_read(0, JournalPosition::START, 1).await.unwrap();
    assert!(!waits.is_empty() && oldest_waiting(&gate).await.is_some(), "nothing is left to write");

    server.resume().unwrap();
    let told = crowd.end().await;
    drain(&base, &gate).await;
    judge(&base, &gate, &told).await;
}
