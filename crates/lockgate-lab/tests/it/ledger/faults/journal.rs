//! Stores that die, start again, or spread their journal over many partitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate::Gate;
use lockgate::store::{JournalPosition, Store};
use lockgate::testing::breakable::BreakableStore;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Cluster, Persistence, Redis};
use tempfile::TempDir;

use super::super::base::Base;
use super::super::{coupon, finish, on_redis, quick};
use super::crowd::both;
use super::{Crowd, SOON, drain, judge};

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_while_the_ledger_is_written_loses_and_doubles_nothing() {
    let base = Base::postgres().await;
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let crowd = Crowd::begin(&gate, &["a".into(), "b".into()]).await;
    let mut config = quick();
    config.batch_rows = 20;
    let writer = base.ledger().await.start(gate.store(), config).unwrap();
    for _ in 0..2 {
        crowd.goes_on(150).await;
        redis.kill();
        redis.restart().unwrap();
        let before = writer.status().rows;
        crowd.goes_on(50).await;
        assert!(
            eventually_async(SOON, async || writer.status().rows > before).await,
            "{:?}",
            writer.status()
        );
    }
    let told = crowd.end().await;
    finish(writer).await;
    judge(&base, &gate, &told).await;
}

/// A writer trims before it was given its first entry: as long as nobody has, no group is known that the journal is kept for.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_writer_has_been_given_yet_is_not_trimmed() {
    let base = Base::postgres().await;
    let (_redis, gate) = on_redis().await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    crowd.goes_on(150).await;
    let first = gate.store().journal_read(0, JournalPosition::START, 1).await.unwrap();
    let breakable = Arc::new(BreakableStore::new(Arc::clone(gate.store())));
    breakable.refuse_to_give();
    let store: Arc<dyn Store> = breakable.clone();
    let writer = base.ledger().await.start(&store, quick()).unwrap();
    assert!(eventually_async(SOON, async || writer.status().looks >= 2).await, "{:?}", writer.status());
    let now_first = gate.store().journal_read(0, JournalPosition::START, 1).await.unwrap();
    assert_eq!(now_first, first, "it was trimmed before it was written");
    breakable.heal();
    let told = crowd.end().await;
    finish(writer).await;
    judge(&base, &gate, &told).await;
}

/// The process ends with its writer in the middle, and starts again.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_embedded_store_goes_on_where_its_ledger_was() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("journal.db").display());
    let base = Base::sqlite().await;
    let gate = Gate::open(&url).await.unwrap();
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    let mut config = quick();
    config.batch_rows = 20;
    let writer = base.ledger().await.start(gate.store(), config).unwrap();
    let many_are_written = async || writer.status().rows > 1_000;
    assert!(eventually_async(SOON, many_are_written).await, "{:?}", writer.status());
    let first = crowd.end().await;
    // Without a shutdown: what it has not written and acknowledged by now is for the next one.
    drop((writer, gate));

    let gate = reopened(&url).await;
    let crowd = Crowd::begin(&gate, &["c".into()]).await;
    crowd.goes_on(100).await;
    let second = drain_while(crowd, &base, &gate).await;
    let (told, known) = (both(first, second.0), second.1);
    assert!(known <= 100, "{known} rows were read again, though they were acknowledged");
    judge(&base, &gate, &told).await;
}

/// Starts a writer while the crowd buys, ends the crowd, and says what it was told and how many rows were known.
async fn drain_while(crowd: Crowd, base: &Base, gate: &Gate) -> (super::Told, u64) {
    let writer = base.ledger().await.start(gate.store(), quick()).unwrap();
    crowd.goes_on(100).await;
    let told = crowd.end().await;
    (told, finish(writer).await.known)
}

/// Whatever of the gate was under way lets go of the file when it is done.
async fn reopened(url: &str) -> Gate {
    let mut gate = None;
    let opens = async || {
        gate = Gate::open(url).await.ok();
        gate.is_some()
    };
    assert!(eventually_async(SOON, opens).await, "the journal is still in use");
    gate.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_of_a_cluster_write_every_partition() {
    let base = Base::postgres().await;
    let cluster = Cluster::start().unwrap();
    let gate = Gate::open(&cluster.url()).await.unwrap();
    let coupons = one_in_every_partition(&gate);
    assert_eq!(coupons.len(), usize::from(gate.store().partitions()));
    assert!(coupons.len() > 1);
    let writers = [quick(), quick()].map(|config| (config, base.url.clone()));
    let mut working = Vec::new();
    for (config, url) in writers {
        working
            .push(lockgate::ledger::Ledger::open(&url).await.unwrap().start(gate.store(), config).unwrap());
    }
    let crowd = Crowd::begin(&gate, &coupons).await;
    let enough = 110 * coupons.len() as u64;
    assert!(eventually_async(4 * SOON, async || crowd.told() > enough).await, "{}", crowd.told());
    let told = crowd.end().await;
    let mut rows = 0;
    for writer in working {
        let status = finish(writer).await;
        assert!(status.rows > 0, "one did all the work");
        rows += status.rows;
    }
    assert_eq!(rows, told.values().map(|told| told.len() as u64 + 1).sum::<u64>());
    assert_eq!(drain(&base, &gate).await.rows, 0);
    judge(&base, &gate, &told).await;
}

fn one_in_every_partition(gate: &Gate) -> Vec<String> {
    let mut found = BTreeSet::new();
    let is_new = |name: &String| found.insert(gate.store().partition_of(coupon(name).home()));
    (0..2_000).map(|number| format!("coupon-{number}")).filter(is_new).collect()
}
