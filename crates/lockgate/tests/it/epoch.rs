//! The server behind the store is another one than before: restarted, replaced by a replica, restored from an old file. What
//! it has forgotten is not taken for new, as long as somebody alive has seen it.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::stock::{
    CampaignChanged, CampaignOpen, CampaignState, HoldId, HoldPlace, HoldSettle, Issue, OrderPlace, Purchase,
    Reservation, Revoke, Terms,
};
use lockgate::store::redis::RedisStore;
use lockgate::store::{
    Campaign, CampaignChange, CampaignKind, EpochSettle, HoldWish, IssueWish, JournalPosition, OrderItem,
    OrderPart, OrderReserve, OrderWish, PartItem, PurchaseWish, Reopen, RevokeWish, Seen, Sending,
    SettleWish, Settlement, Store, Token,
};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Cluster, Persistence, Redis, Reply, Sentinel};

/// Long enough for any recovery.
const LONG: Duration = Duration::from_secs(20);
/// How long those who know something have time to say it, in these tests.
const GRACE: Duration = Duration::from_millis(2_500);

fn config(grace: Duration) -> Config {
    let mut config = Config::default();
    config.recovery_grace = grace;
    config
}

async fn gate_on(url: &str) -> Gate {
    let config = config(GRACE);
    Gate::on_with(Arc::new(RedisStore::connect(url, &config).await.unwrap()), &config)
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn terms() -> Terms {
    Terms::new(100).unwrap()
}

async fn issue(gate: &Gate, coupon: &str, user: &str) -> Result<Issue, StoreError> {
    gate.coupon(coupon).unwrap().issue(user).await
}

async fn state_of(gate: &Gate, coupon: &str) -> Option<CampaignState> {
    gate.coupon(coupon).unwrap().status().await.ok()?.map(|status| status.state)
}

async fn opens(gate: &Gate, coupon: &str) -> bool {
    eventually_async(LONG, async || state_of(gate, coupon).await == Some(CampaignState::Open)).await
}

/// Everything that the server holds about campaigns.
fn contents(redis: &Redis) -> Vec<(String, Reply)> {
    let Reply::Array(keys) = redis.command(&["KEYS", "lg:{0}:*"]).unwrap() else { panic!("no keys") };
    let keys = keys.into_iter().map(|key| match key {
        Reply::Text(key) => key,
        other => panic!("{other:?}"),
    });
    let is_content = |key: &String| !["sending", "epoch", "marks"].iter().any(|word| key.contains(word));
    let mut keys: Vec<_> = keys.filter(is_content).collect();
    keys.sort();
    // Of a campaign's state all but the stamp: looking after it takes that away.
    let is_state = |key: &str| [":coupon:", ":deal:", ":sku:"].iter().any(|kind| key.contains(kind));
    let content = |key: &str| match is_state(key) {
        true => redis.command(&["GETRANGE", key, "0", "72"]).unwrap(),
        false => redis.command(&["DUMP", key]).unwrap(),
    };
    keys.into_iter().map(|key| (key.clone(), content(&key))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_answers_recovering_and_changes_nothing() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let store = RedisStore::connect(&redis.url(), &config(Duration::from_secs(600))).await.unwrap();
    let [coupon, deal, sku] = [CampaignKind::Coupon, CampaignKind::Deal, CampaignKind::Sku]
        .map(|kind| Campaign::new(kind, name("campaign")));
    for campaign in [&coupon, &deal, &sku] {
        store.campaign_open(&Sending::once(), campaign, &terms()).await.unwrap();
    }
    let user = name("alice");
    let bought =
        PurchaseWish { deal: deal.clone(), user: user.clone(), quantity: 1, request: None, pass: None };
    store.deal_purchase(&Sending::once(), std::slice::from_ref(&bought)).await.unwrap();
    let (held, short) = (HoldId::random(), Duration::from_millis(50));
    let hold =
        |id, ttl| HoldWish { campaign: deal.clone(), id, user: user.clone(), quantity: 1, ttl, pass: None };
    // One of them is over when the server is back: also that is not touched.
    let holds = [hold(held, LONG), hold(HoldId::random(), short)];
    store.hold_place(&Sending::once(), &holds).await.unwrap();
    let item = OrderItem { sku: sku.clone(), quantity: 1 };
    let part_item = PartItem { place: 0, item: item.clone(), hold: HoldId::random() };
    let part =
        |id: &str| OrderPart::new(name(id), Token::random(), user.clone(), vec![part_item.clone()]).unwrap();
    let reserved = part("reserved");
    store.order_reserve(&Sending::once(), &reserved, Some(short)).await.unwrap();

    redis.kill();
    redis.restart().unwrap();
    let before = contents(&redis);
    let once = Sending::once;
    let opened = store.campaign_open(&once(), &coupon, &Terms::new(7).unwrap()).await;
    assert_eq!(opened.unwrap(), CampaignOpen::Recovering);
    let new = Campaign::new(CampaignKind::Coupon, name("another"));
    assert_eq!(store.campaign_open(&once(), &new, &terms()).await.unwrap(), CampaignOpen::Recovering);
    let changed = store.campaign_change(&once(), &coupon, CampaignChange::Pause).await;
    assert_eq!(changed.unwrap(), CampaignChanged::Recovering);
    let status = store.campaign_read(&coupon).await.unwrap().unwrap();
    assert_eq!((status.state, status.rev), (CampaignState::Recovering, 1));
    assert!(matches!(store.campaign_read(&new).await, Err(StoreError::Recovering)));
    for coupon in [&coupon, &new] {
        let wish = IssueWish { coupon: coupon.clone(), user: user.clone(), pass: None };
        assert_eq!(
            store.coupon_issue(&once(), std::slice::from_ref(&wish)).await.unwrap(),
            [Issue::Recovering]
        );
        let two = [wish, IssueWish { coupon: coupon.clone(), user: name("bob"), pass: None }];
        assert_eq!(store.coupon_issue(&once(), &two).await.unwrap(), [Issue::Recovering; 2]);
    }
    assert_eq!(store.deal_purchase(&once(), &[bought]).await.unwrap(), [Purchase::Recovering]);
    assert_eq!(store.hold_place(&once(), &[hold(held, LONG)]).await.unwrap(), [HoldPlace::Recovering]);
    let settle = |settlement| SettleWish { campaign: deal.clone(), id: held, user: user.clone(), settlement };
    for settlement in [Settlement::Confirm, Settlement::Cancel] {
        let settled = store.hold_settle(&once(), &[settle(settlement)]).await.unwrap();
        assert_eq!(settled, [HoldSettle::Recovering]);
    }
    let revoke = RevokeWish { campaign: deal.clone(), user: user.clone(), seq: 1 };
    assert_eq!(store.grant_revoke(&once(), &[revoke]).await.unwrap(), [Revoke::Recovering]);
    let order = OrderWish::new(name("order"), user.clone(), vec![item]).unwrap();
    assert_eq!(store.order_place(&once(), &[order]).await.unwrap(), [OrderPlace::Recovering { item: 0 }]);
    let reserve = store.order_reserve(&once(), &part("new"), Some(LONG)).await.unwrap();
    assert_eq!(reserve, OrderReserve::Recovering { item: 0 });
    for settlement in [Settlement::Confirm, Settlement::Cancel] {
        let settled = store.order_settle(&once(), &reserved, settlement).await;
        assert!(matches!(settled, Err(StoreError::Recovering)), "{settled:?}");
    }
    assert!(matches!(store.share_read(&deal, &user).await, Err(StoreError::Recovering)));
    assert!(matches!(store.hold_read(&deal, &held).await, Err(StoreError::Recovering)));
    assert_eq!(contents(&redis), before, "something has changed");
    assert_eq!(store.order_doubts(0, 10).await.unwrap(), [reserved], "the doubt stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_misses_nothing_opens_by_itself_when_everybody_had_time_to_speak() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let gate = gate_on(&redis.url()).await;
    gate.coupon("c").unwrap().open(&terms()).await.unwrap();
    issue(&gate, "c", "alice").await.unwrap();
    redis.kill();
    redis.restart().unwrap();
    let restarted = gate.store().clone();
    assert_eq!(issue(&gate, "c", "bob").await.unwrap(), Issue::Recovering);
    assert!(!restarted.epoch_read(0).await.unwrap().is_settled);
    assert!(opens(&gate, "c").await);
    assert_eq!(issue(&gate, "c", "alice").await.unwrap(), Issue::AlreadyIssued { seq: 1 });
    assert_eq!(issue(&gate, "c", "bob").await.unwrap(), Issue::Issued { seq: 2, remaining: 98 });
    let settled = async || restarted.epoch_read(0).await.unwrap().is_settled;
    assert!(eventually_async(LONG, settled).await);
    assert_eq!(issue(&gate, "nobody's", "bob").await.unwrap(), Issue::Unknown);
}

/// A process that has just started, after the server and everybody else have died.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_not_there_opens_what_it_finds() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let before = gate_on(&redis.url()).await;
    before.coupon("c").unwrap().open(&terms()).await.unwrap();
    drop(before);
    redis.kill();
    redis.restart().unwrap();
    let gate = gate_on(&redis.url()).await;
    assert!(opens(&gate, "c").await);
}

/// Sells some, saves, sells more; then the server comes back with what was saved.
async fn rolled_back(redis: &Redis, gate: &Gate) {
    for coupon in ["rolled back", "whole"] {
        gate.coupon(coupon).unwrap().open(&terms()).await.unwrap();
        issue(gate, coupon, "alice").await.unwrap();
    }
    redis.command(&["SAVE"]).unwrap();
    assert_eq!(issue(gate, "rolled back", "bob").await.unwrap(), Issue::Issued { seq: 2, remaining: 98 });
    redis.kill();
    redis.restart().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rolled_back_stays_recovering_and_the_rest_opens() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = gate_on(&redis.url()).await;
    rolled_back(&redis, &gate).await;
    assert!(opens(&gate, "whole").await);
    assert_eq!(state_of(&gate, "rolled back").await, Some(CampaignState::Recovering));
    assert_eq!(issue(&gate, "rolled back", "carol").await.unwrap(), Issue::Recovering);
    let missing = gate.store().epoch_read(0).await.unwrap().missing;
    assert_eq!(missing, [(Campaign::new(CampaignKind::Coupon, name("rolled back")), 3)]);
    // Also for somebody who knows of nothing, and for good.
    let other = gate_on(&redis.url()).await;
    tokio::time::sleep(GRACE).await;
    assert_eq!(issue(&other, "rolled back", "carol").await.unwrap(), Issue::Recovering);
    assert_eq!(issue(&other, "whole", "carol").await.unwrap(), Issue::Issued { seq: 2, remaining: 98 });
}

/// The one that has seen something asks for nothing, and another one decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_idle_is_heard() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let idle = gate_on(&redis.url()).await;
    rolled_back(&redis, &idle).await;
    let busy = gate_on(&redis.url()).await;
    assert!(opens(&busy, "whole").await);
    assert_eq!(issue(&busy, "rolled back", "carol").await.unwrap(), Issue::Recovering);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_empty_is_not_taken_for_new() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = gate_on(&redis.url()).await;
    gate.coupon("lost").unwrap().open(&terms()).await.unwrap();
    issue(&gate, "lost", "alice").await.unwrap();
    redis.kill();
    redis.restart().unwrap();
    assert_eq!(gate.coupon("lost").unwrap().open(&terms()).await.unwrap(), CampaignOpen::Recovering);
    let opens = async || {
        let opened = gate.coupon("new").unwrap().open(&terms()).await;
        matches!(opened, Ok(CampaignOpen::Created(_)))
    };
    assert!(eventually_async(LONG, opens).await, "others can be opened when everybody had time to speak");
    assert_eq!(gate.coupon("lost").unwrap().open(&terms()).await.unwrap(), CampaignOpen::Recovering);
    assert_eq!(issue(&gate, "lost", "bob").await.unwrap(), Issue::Recovering);
}

/// A process that starts before the others have noticed, and opens what it takes for new.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_opened_anew_before_anybody_noticed_is_recovering_again() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let knows = gate_on(&redis.url()).await;
    knows.coupon("c").unwrap().open(&terms()).await.unwrap();
    for user in ["alice", "bob", "carol"] {
        issue(&knows, "c", user).await.unwrap();
    }
    redis.kill();
    redis.restart().unwrap();
    let hasty = gate_on(&redis.url()).await;
    hasty.coupon("c").unwrap().open(&terms()).await.unwrap();
    let is_noticed =
        async || issue(&hasty, "c", "dave").await.is_ok_and(|answer| answer == Issue::Recovering);
    assert!(eventually_async(LONG, is_noticed).await);
    let missing = hasty.store().epoch_read(0).await.unwrap().missing;
    assert_eq!(missing, [(Campaign::new(CampaignKind::Coupon, name("c")), 4)]);
}

/// A master that has lost something is not trusted under its old name either, when it is the master again.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_something_is_trusted_under_no_run() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = gate_on(&redis.url()).await;
    rolled_back(&redis, &gate).await;
    assert!(opens(&gate, "whole").await);
    let stamp = |coupon: &str| {
        redis.command(&["GETRANGE", &format!("lg:{{0}}:coupon:{coupon}"), "73", "80"]).unwrap()
    };
    assert_eq!(stamp("rolled%20back"), Reply::Text("\0".repeat(8)));
    assert_ne!(stamp("whole"), Reply::Text("\0".repeat(8)));
}

/// Nobody who knew of it is left, and there is no ledger: then a store that is empty is a new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_new_is_open_at_once() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = gate_on(&redis.url()).await;
    assert!(matches!(gate.coupon("c").unwrap().open(&terms()).await.unwrap(), CampaignOpen::Created(_)));
    assert!(matches!(issue(&gate, "c", "alice").await.unwrap(), Issue::Issued { .. }));
}

/// Nobody opens anything where the ledger decides, not even in a store that is new.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_ledger_decides_nobody_else_does() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let mut config = config(Duration::from_millis(100));
    config.ledger_decides = true;
    let store = RedisStore::connect(&redis.url(), &config).await.unwrap();
    let coupon = Campaign::new(CampaignKind::Coupon, name("c"));
    for _ in 0..3 {
        let opened = store.campaign_open(&Sending::once(), &coupon, &terms()).await.unwrap();
        assert_eq!(opened, CampaignOpen::Recovering);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // The ledger's word.
    let seen = Seen { campaign: coupon.clone(), rev: 0 };
    assert_eq!(store.campaign_reopen(&[seen], true).await.unwrap(), [Reopen::Unknown]);
    let settled = async || store.epoch_settle(0, true).await.unwrap() == EpochSettle::Settled;
    assert!(eventually_async(LONG, settled).await);
    let opened = store.campaign_open(&Sending::once(), &coupon, &terms()).await.unwrap();
    assert!(matches!(opened, CampaignOpen::Created(_)));
}

/// What was replicated is there, what was not is missed: by whoever was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_that_loses_a_write_is_noticed() {
    let sentinel = Sentinel::start().unwrap();
    let gate = gate_on(&sentinel.url()).await;
    for coupon in ["loses", "keeps"] {
        gate.coupon(coupon).unwrap().open(&terms()).await.unwrap();
        issue(&gate, coupon, "alice").await.unwrap();
    }
    let master = sentinel.master().unwrap();
    let is_replicated =
        async || master.command(&["WAIT", "2", "100"]).is_ok_and(|reply| reply == Reply::Int(2));
    assert!(eventually_async(LONG, is_replicated).await);
    // The replicas are stopped and cut off while one more is sold, and the master dies before they are back.
    let replicas: Vec<_> = sentinel.nodes().iter().filter(|node| node.port() != master.port()).collect();
    replicas.iter().for_each(|replica| replica.pause().unwrap());
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]).unwrap();
    assert_eq!(issue(&gate, "loses", "bob").await.unwrap(), Issue::Issued { seq: 2, remaining: 98 });
    let old_port = Some(master.port());
    master.kill();
    replicas.iter().for_each(|replica| replica.resume().unwrap());
    sentinel.wait_for_master_other_than(old_port).unwrap();
    assert!(opens(&gate, "keeps").await, "what lost nothing opens");
    assert_eq!(issue(&gate, "loses", "bob").await.unwrap(), Issue::Recovering);
    let known = gate.store().epoch_read(0).await.unwrap().missing;
    assert_eq!(known, [(Campaign::new(CampaignKind::Coupon, name("loses")), 3)]);
}

/// On a cluster only the server itself knows which run it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_that_comes_back_empty_is_not_taken_for_new() {
    let cluster = Cluster::start().unwrap();
    let gate = gate_on(&cluster.url()).await;
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&terms()).await.unwrap();
    assert!(matches!(coupon.issue("alice").await.unwrap(), Issue::Issued { .. }));
    for node in cluster.nodes() {
        node.kill();
    }
    for node in cluster.nodes() {
        node.restart().unwrap();
    }
    let answers = async || coupon.issue("bob").await.is_ok();
    assert!(eventually_async(LONG, answers).await);
    assert_eq!(coupon.issue("bob").await.unwrap(), Issue::Recovering);
}

/// A hold outlives a restart, and is not given back before it is known that nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_waits_until_its_campaign_is_trusted_again() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let gate = gate_on(&redis.url()).await;
    let deal = gate.deal("d").unwrap();
    deal.open(&terms()).await.unwrap();
    let Reservation::Held { hold, .. } = deal.hold("alice", 1, LONG).await.unwrap() else { panic!("denied") };
    redis.kill();
    redis.restart().unwrap();
    assert_eq!(hold.confirm().await.unwrap(), HoldSettle::Recovering);
    let confirmed =
        async || hold.confirm().await.is_ok_and(|settled| settled == HoldSettle::Confirmed { seq: 1 });
    assert!(eventually_async(LONG, confirmed).await);
    let journal = gate.store().journal_read(0, JournalPosition::START, 10).await.unwrap();
    assert_eq!(journal.len(), 3, "opened, held, confirmed: the check itself changes nothing");
}
