//! The way back: the server has forgotten something, and the ledger has not.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::ledger::{Ledger, Light, Recovery, Writer};
use lockgate::stock::{CampaignOpen, CampaignState, HoldSettle, Issue, Purchase, Reservation, Terms};
use lockgate::store::redis::RedisStore;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis, Reply, Sentinel};

use super::base::Base;
use super::{Told, coupon, finish, issue, light, on_every_database, quick, winners};

/// Long enough for any recovery.
const LONG: Duration = Duration::from_secs(20);

on_every_database! {
    an_empty_server_gets_everything_back_from_the_ledger
    what_the_ledger_has_not_seen_is_found_in_the_journal_or_reported_as_lost
}

/// A gate on a store where the ledger decides what can be trusted.
async fn gate_on(url: &str) -> Gate {
    let mut config = Config::default();
    config.ledger_decides = true;
    config.recovery_grace = Duration::from_millis(1_500);
    Gate::on_with(Arc::new(RedisStore::connect(url, &config).await.unwrap()), &config)
}

async fn writer(ledger: &Ledger, gate: &Gate) -> Writer {
    let writer = ledger.start(gate.store(), quick()).unwrap();
    let is_settled = async || gate.store().epoch_read(0).await.is_ok_and(|epoch| epoch.is_settled);
    assert!(eventually_async(LONG, is_settled).await, "the ledger does not vouch");
    writer
}

async fn state_of(gate: &Gate, coupon: &str) -> Option<CampaignState> {
    gate.coupon(coupon).unwrap().status().await.ok()?.map(|status| status.state)
}

async fn opens(gate: &Gate, coupon: &str) -> bool {
    eventually_async(LONG, async || state_of(gate, coupon).await == Some(CampaignState::Open)).await
}

fn restart(redis: &Redis) {
    redis.kill();
    redis.restart().unwrap();
}

async fn recover(ledger: &Ledger, gate: &Gate) -> Recovery {
    tokio::time::timeout(LONG, ledger.recover(gate.store().as_ref())).await.expect("too slow").unwrap()
}

/// Everybody who was told something is told the same again.
async fn all_are_told_the_same(gate: &Gate, called: &str, told: &Told) {
    for (seq, user) in told {
        let answer = gate.coupon(called).unwrap().issue(user).await.unwrap();
        assert_eq!(answer, Issue::AlreadyIssued { seq: *seq }, "{user}");
    }
}

async fn an_empty_server_gets_everything_back_from_the_ledger(base: Base) {
    let redis = Redis::start(Persistence::Off).unwrap();
    let (gate, ledger) = (gate_on(&redis.url()).await, base.ledger().await);
    let at_work = writer(&ledger, &gate).await;
    let told = issue(&gate, "c", 0..1_200).await;
    let deal = gate.deal("d").unwrap();
    deal.open(&Terms::new(10).unwrap().per_user(3).unwrap()).await.unwrap();
    deal.purchase_as("request", "alice", 2).await.unwrap();
    let held = deal.hold("bob", 1, Duration::from_secs(600)).await.unwrap();
    let Reservation::Held { hold, .. } = held else { panic!("{held:?}") };
    deal.revoke("alice", 1).await.unwrap();
    deal.purchase("alice", 1).await.unwrap();
    let strict = gate.deal("only after the line").unwrap();
    let line = Name::new("line", "tour\\ \0 line=9\n🎟").unwrap();
    strict.open(&Terms::new(10).unwrap().per_user(3).unwrap().demanding_pass_of(line)).await.unwrap();
    let [before, demanded] = [deal.status().await.unwrap(), strict.status().await.unwrap()];
    at_work.drained().await;

    restart(&redis);
    assert_eq!(gate.coupon("c").unwrap().issue("late").await.unwrap(), Issue::Recovering);
    let opened = gate.coupon("c").unwrap().open(&Terms::new(5).unwrap()).await.unwrap();
    assert_eq!(opened, CampaignOpen::Recovering, "never a fresh one");
    let is_settled = async || gate.store().epoch_read(0).await.is_ok_and(|epoch| epoch.is_settled);
    assert!(eventually_async(LONG, is_settled).await);
    assert_eq!(
        gate.coupon("c").unwrap().issue("late").await.unwrap(),
        Issue::Recovering,
        "it is missing all"
    );
    assert!(matches!(
        gate.coupon("new").unwrap().open(&Terms::new(5).unwrap()).await.unwrap(),
        CampaignOpen::Created(_)
    ));
    assert_eq!(light(&ledger, &gate).await, Light::Red);

    let recovery = recover(&ledger, &gate).await;
    assert_eq!((recovery.campaigns.len(), recovery.lost()), (3, 0), "{recovery:?}");
    let of_coupon = recovery.campaigns.iter().find(|one| one.campaign == coupon("c")).unwrap();
    assert_eq!((of_coupon.had, of_coupon.known, of_coupon.found), (0, 1_201, 1_201));
    all_are_told_the_same(&gate, "c", &told).await;
    assert!(matches!(
        gate.coupon("c").unwrap().issue("late").await.unwrap(),
        Issue::Issued { seq: 1_201, .. }
    ));
    assert_eq!([deal.status().await.unwrap(), strict.status().await.unwrap()], [before, demanded]);
    assert_eq!(strict.purchase("alice", 1).await.unwrap(), Purchase::PassRequired);
    let replayed = deal.purchase_as("request", "alice", 2).await.unwrap();
    assert!(matches!(replayed, Purchase::AlreadyBought { seq: 1, .. }), "{replayed:?}");
    assert_eq!(hold.confirm().await.unwrap(), HoldSettle::Confirmed { seq: 3 });
    finish(at_work).await;
    assert_eq!(light(&ledger, &gate).await, Light::Green);
    assert_eq!(recover(&ledger, &gate).await.campaigns, [], "nothing is left to do");
}

/// Some of it is in the ledger, some only in the journal, and some nowhere but in the memory of a process.
async fn what_the_ledger_has_not_seen_is_found_in_the_journal_or_reported_as_lost(base: Base) {
    let redis = Redis::start(Persistence::Off).unwrap();
    let (gate, ledger) = (gate_on(&redis.url()).await, base.ledger().await);
    let at_work = writer(&ledger, &gate).await;
    let mut told = issue(&gate, "c", 0..10).await;
    finish(at_work).await;
    told.extend(issue(&gate, "c", 10..15).await);
    redis.command(&["SAVE"]).unwrap();
    let lost = issue(&gate, "c", 15..18).await;
    assert_eq!(lost.len(), 3);
    restart(&redis);
    // Somebody deletes the campaign too; the journal still has the five that the ledger has not seen.
    for key in ["lg:{0}:coupon:c", "lg:{0}:coupon-members:c"] {
        redis.command(&["DEL", key]).unwrap();
    }
    let at_work = writer(&ledger, &gate).await;
    assert_eq!(gate.coupon("c").unwrap().issue("late").await.unwrap(), Issue::Recovering);

    let recovery = recover(&ledger, &gate).await;
    let [of_coupon] = &recovery.campaigns[..] else { panic!("{recovery:?}") };
    assert_eq!((of_coupon.had, of_coupon.known, of_coupon.found, of_coupon.lost), (0, 19, 16, 3));
    all_are_told_the_same(&gate, "c", &told).await;
    // The numbers of those who are lost go to nobody else.
    let next = gate.coupon("c").unwrap().issue("late").await.unwrap();
    assert_eq!(next, Issue::Issued { seq: 19, remaining: 1_000_000 - 16 });
    finish(at_work).await;
    told.insert(19, "late".into());
    assert_eq!(winners(&ledger, &coupon("c")).await, told, "exactly the reported loss");
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert!(audit.is_green(), "{audit:?}");
    let sql = base.sql().await;
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_ledger WHERE what = 'lost'").await, 3);
    assert_eq!(sql.number("SELECT MAX(rev) FROM lockgate_ledger").await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_misses_nothing_opens_when_the_ledger_has_vouched() {
    let base = Base::sqlite().await;
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let (gate, ledger) = (gate_on(&redis.url()).await, base.ledger().await);
    assert_eq!(
        gate.coupon("c").unwrap().open(&Terms::new(5).unwrap()).await.unwrap(),
        CampaignOpen::Recovering
    );
    let at_work = writer(&ledger, &gate).await;
    issue(&gate, "c", 0..10).await;
    finish(at_work).await;
    restart(&redis);
    assert_eq!(gate.coupon("c").unwrap().issue("late").await.unwrap(), Issue::Recovering);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        gate.coupon("c").unwrap().issue("late").await.unwrap(),
        Issue::Recovering,
        "the ledger has said nothing"
    );
    let at_work = writer(&ledger, &gate).await;
    assert!(opens(&gate, "c").await);
    finish(at_work).await;
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

/// A server that was rolled back behind the ledger, and no process that remembers.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_file_is_noticed_by_the_ledger_alone() {
    let base = Base::postgres().await;
    let redis = Redis::start(Persistence::Off).unwrap();
    let ledger = base.ledger().await;
    let gate = gate_on(&redis.url()).await;
    let at_work = writer(&ledger, &gate).await;
    let mut told = issue(&gate, "c", 0..10).await;
    redis.command(&["SAVE"]).unwrap();
    told.extend(issue(&gate, "c", 10..20).await);
    finish(at_work).await;
    drop(gate);
    restart(&redis);
    let gate = gate_on(&redis.url()).await;
    let at_work = writer(&ledger, &gate).await;
    assert_eq!(state_of(&gate, "c").await, Some(CampaignState::Recovering));
    let recovery = recover(&ledger, &gate).await;
    let [of_coupon] = &recovery.campaigns[..] else { panic!("{recovery:?}") };
    assert_eq!((of_coupon.had, of_coupon.known, of_coupon.found, of_coupon.lost), (11, 21, 21, 0));
    all_are_told_the_same(&gate, "c", &told).await;
    finish(at_work).await;
    assert_eq!(winners(&ledger, &coupon("c")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

/// The store is further than the ledger, and a process has seen more than both: the store's own state is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_that_loses_writes_is_recovered_with_exactly_that_loss() {
    let base = Base::postgres().await;
    let sentinel = Sentinel::start().unwrap();
    let ledger = base.ledger().await;
    let gate = gate_on(&sentinel.url()).await;
    let at_work = writer(&ledger, &gate).await;
    let mut told = issue(&gate, "c", 0..10).await;
    finish(at_work).await;
    told.extend(issue(&gate, "c", 10..15).await);
    let master = sentinel.master().unwrap();
    let is_replicated =
        async || master.command(&["WAIT", "2", "100"]).is_ok_and(|reply| reply == Reply::Int(2));
    assert!(eventually_async(LONG, is_replicated).await);
    let replicas: Vec<_> = sentinel.nodes().iter().filter(|node| node.port() != master.port()).collect();
    replicas.iter().for_each(|replica| replica.pause().unwrap());
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]).unwrap();
    let lost = issue(&gate, "c", 15..22).await;
    let old_port = Some(master.port());
    master.kill();
    replicas.iter().for_each(|replica| replica.resume().unwrap());
    sentinel.wait_for_master_other_than(old_port).unwrap();

    let at_work = writer(&ledger, &gate).await;
    assert_eq!(state_of(&gate, "c").await, Some(CampaignState::Recovering));
    assert_eq!(light(&ledger, &gate).await, Light::Red, "only a process remembers what is missing");
    let recovery = recover(&ledger, &gate).await;
    let [of_coupon] = &recovery.campaigns[..] else { panic!("{recovery:?}") };
    assert_eq!((of_coupon.had, of_coupon.known, of_coupon.lost), (16, 23, lost.len() as u64));
    all_are_told_the_same(&gate, "c", &told).await;
    for user in lost.values() {
        let again = gate.coupon("c").unwrap().issue(user).await.unwrap();
        let Issue::Issued { seq, .. } = again else { panic!("{again:?}") };
        assert!(seq > 22, "a number that was told to somebody is used again: {seq}");
        told.insert(seq, user.clone());
    }
    finish(at_work).await;
    assert_eq!(winners(&ledger, &coupon("c")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

/// Somebody has deleted rows from the ledger, and then Redis forgets everything: the hole is a loss, and said to be one.
#[tokio::test(flavor = "multi_thread")]
async fn a_hole_in_the_ledger_is_counted_as_lost() {
    let base = Base::postgres().await;
    let redis = Redis::start(Persistence::Off).unwrap();
    let (gate, ledger) = (gate_on(&redis.url()).await, base.ledger().await);
    let at_work = writer(&ledger, &gate).await;
    let mut told = issue(&gate, "c", 0..10).await;
    at_work.drained().await;
    let sql = base.sql().await;
    sql.run("DELETE FROM lockgate_ledger WHERE rev IN (5, 6)").await;
    restart(&redis);
    let recovery = recover(&ledger, &gate).await;
    assert_eq!(recovery.lost(), 2, "{recovery:?}");
    for seq in [4, 5] {
        told.remove(&seq);
    }
    all_are_told_the_same(&gate, "c", &told).await;
    finish(at_work).await;
    assert_eq!(winners(&ledger, &coupon("c")).await, told);
    assert_eq!(light(&ledger, &gate).await, Light::Green);

    // Without the opening there is nothing to build on; the others are recovered all the same.
    let at_work = writer(&ledger, &gate).await;
    issue(&gate, "other", 0..3).await;
    at_work.drained().await;
    sql.run(
        "DELETE FROM lockgate_ledger WHERE rev = 1 AND campaign = (SELECT MIN(id) FROM lockgate_campaigns)",
    )
    .await;
    restart(&redis);
    let recovery = recover(&ledger, &gate).await;
    assert_eq!((recovery.campaigns.len(), recovery.failed.len()), (1, 1), "{recovery:?}");
    assert!(recovery.failed[0].1.contains("was opened"), "{recovery:?}");
    finish(at_work).await;
}

/// What retention has removed is not missed, neither by a process that has seen it nor by `recover`.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_purged_is_not_missed() {
    let base = Base::sqlite().await;
    let redis = Redis::start(Persistence::Off).unwrap();
    let (gate, ledger) = (gate_on(&redis.url()).await, base.ledger().await);
    let at_work = writer(&ledger, &gate).await;
    issue(&gate, "old", 0..5).await;
    let told = issue(&gate, "running", 0..5).await;
    gate.coupon("old").unwrap().close().await.unwrap();
    at_work.drained().await;
    ledger.purge(gate.store().as_ref(), &coupon("old"), Duration::ZERO).await.unwrap();
    restart(&redis);
    let recovery = recover(&ledger, &gate).await;
    assert_eq!((recovery.campaigns.len(), recovery.failed.len()), (1, 0), "{recovery:?}");
    all_are_told_the_same(&gate, "running", &told).await;
    assert_eq!(gate.store().epoch_read(0).await.unwrap().missing, []);
    finish(at_work).await;
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}

/// An embedded store whose disk is gone, and whose ledger is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_disk_is_rebuilt_from_the_ledger() {
    let base = Base::sqlite().await;
    let ledger = base.ledger().await;
    let told = {
        let gate = Gate::open("memory").await.unwrap();
        let at_work = ledger.start(gate.store(), quick()).unwrap();
        let told = issue(&gate, "c", 0..50).await;
        finish(at_work).await;
        told
    };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/journal.db", folder.path().display());
    let gate = Gate::open(&url).await.unwrap();
    let recovery = recover(&ledger, &gate).await;
    assert_eq!((recovery.campaigns.len(), recovery.lost()), (1, 0));
    all_are_told_the_same(&gate, "c", &told).await;
    drop(gate);
    let gate = Gate::open(&url).await.unwrap();
    all_are_told_the_same(&gate, "c", &told).await;
    let at_work = ledger.start(gate.store(), quick()).unwrap();
    let status = finish(at_work).await;
    assert_eq!((status.rows, status.dead_letters), (0, 0), "{status:?}");
    assert_eq!(light(&ledger, &gate).await, Light::Green);
}
