//! A crowd for too few coupons, on every store, from several processes, with processes and servers that die, over networks
//! that lose answers. Each time the judge reads what everybody was told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::stock::{CampaignState, HoldId, HoldPlace, HoldSettle, HoldState, Issue, Purchase, Terms};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{Campaign, CampaignKind, HoldWish, MAX_BATCH, Sending};
use lockgate::testing::eventually_async;
use lockgate::testing::history::{Bounds, History, Judged, Verdict, check};
use lockgate::testing::proxy::FaultProxy;
use lockgate::testing::services::{Cluster, Persistence, Redis, Sentinel};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::shop::Shop;

const COUPONS: u64 = 300;
const USERS: u64 = 1_000;
/// How often each of them comes.
const TRIES: usize = 3;

fn verdict(folder: &Path) -> Verdict {
    check(&History::read_folder(folder).unwrap(), &Bounds::default())
}

#[track_caller]
fn expect_truth(folder: &Path) -> Judged {
    verdict(folder).into_result().unwrap_or_else(|why| panic!("{why}"))
}

/// 3,000 callers: every user comes three times, all at once.
async fn rush(shop: &Shop, users: std::ops::Range<u64>) -> Vec<(u64, Issue)> {
    let mut callers = JoinSet::new();
    for user in std::iter::repeat_n(users, TRIES).flatten() {
        let shop = shop.clone();
        callers.spawn(async move { Some((user, shop.want(&format!("user-{user}")).await.ok()?)) });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

/// Exactly 300, seq 1..300, rev without a gap, each user at most once.
async fn sells_exactly_what_there_is(gate: Gate) {
    let folder = TempDir::new().unwrap();
    let shop = Shop::new(gate, folder.path());
    shop.open(COUPONS).await;
    let answers = rush(&shop, 0..USERS).await;
    let seqs: BTreeMap<u64, u64> = answers
        .iter()
        .filter_map(|(user, answer)| match answer {
            Issue::Issued { seq, .. } => Some((*seq, *user)),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len() as u64, USERS * TRIES as u64, "somebody got no answer");
    assert!(seqs.keys().copied().eq(1..=COUPONS), "{seqs:?}");
    let status = shop.coupon.status().await.unwrap().unwrap();
    assert_eq!((status.granted, status.seq, status.rev), (COUPONS, COUPONS, COUPONS + 1));
    shop.take_stock().await;
    let judged = expect_truth(folder.path());
    assert_eq!((judged.stock_grants, judged.unknown), (COUPONS, 0), "{judged:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_sells_exactly_what_there_is() {
    sells_exactly_what_there_is(Gate::open("memory").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_on_disk_sells_exactly_what_there_is() {
    let folder = TempDir::new().unwrap();
    let store = MemoryStore::open(folder.path().join("journal.db"), &Config::default()).unwrap();
    sells_exactly_what_there_is(Gate::on(Arc::new(store))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_sells_exactly_what_there_is() {
    let redis = Redis::start(Persistence::Off).unwrap();
    sells_exactly_what_there_is(Gate::open(&redis.url()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_sells_exactly_what_there_is() {
    let sentinel = Sentinel::start().unwrap();
    sells_exactly_what_there_is(Gate::open(&sentinel.url()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_sells_exactly_what_there_is() {
    let cluster = Cluster::start().unwrap();
    let mut config = Config::default();
    // So that the journal of the coupon is in the partition that the shop reads.
    config.redis.cluster_partitions = 1;
    sells_exactly_what_there_is(Gate::open_with(&cluster.url(), &config).await.unwrap()).await;
}

/// Answers get lost after their scripts have run, connections end, and the server forgets its scripts.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_neither_oversells_nor_loses_nor_doubles() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let proxy = FaultProxy::start(([127, 0, 0, 1], redis.port()).into()).await.unwrap();
    let mut config = Config::default();
    // The network is bad all the time, so a call needs more than the usual few tries.
    (config.redis.retry_interval, config.redis.retry_attempts) = (Duration::from_millis(2), 50);
    let gate = Gate::open_with(&format!("redis://{}", proxy.addr()), &config).await.unwrap();
    let folder = TempDir::new().unwrap();
    let shop = Shop::new(gate.clone(), folder.path());
    shop.open(COUPONS).await;
    let running = {
        let shop = shop.clone();
        tokio::spawn(async move {
            for wave in 0..10 {
                rush(&shop, wave * 40..wave * 40 + 100).await;
            }
        })
    };
    let (mut faults, mut pace) = (0_u64, tokio::time::interval(Duration::from_millis(5)));
    while !running.is_finished() {
        pace.tick().await;
        match faults % 4 {
            0 => proxy.reset(),
            3 => drop(redis.command(&["SCRIPT", "FLUSH"])),
            _ => proxy.lose_next_reply(),
        }
        faults += 1;
    }
    running.await.unwrap();
    let quiet = Gate::open(&redis.url()).await.unwrap();
    Shop::new(quiet, folder.path()).take_stock().await;
    let judged = expect_truth(folder.path());
    assert!(proxy.replies_lost() >= 3 && faults >= 10, "{faults} faults, {} lost", proxy.replies_lost());
    assert!(judged.stock_grants >= COUPONS / 2, "{judged:?}");
}

/// A purchase without a name for its request: only the batch itself can tell that it was sent twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_whose_answer_was_lost_is_not_made_twice() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let proxy = FaultProxy::start(([127, 0, 0, 1], redis.port()).into()).await.unwrap();
    let mut config = Config::default();
    config.redis.retry_interval = Duration::from_millis(2);
    let gate = Gate::open_with(&format!("redis://{}", proxy.addr()), &config).await.unwrap();
    let deal = gate.deal("d").unwrap();
    deal.open(&Terms::new(1_000).unwrap()).await.unwrap();
    let mut bought = 0;
    for user in 0..40 {
        if user % 2 == 0 {
            proxy.lose_next_reply();
        }
        match deal.purchase(format!("user-{user}"), 1).await.unwrap() {
            Purchase::Bought { .. } => bought += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(proxy.replies_lost() >= 10, "{}", proxy.replies_lost());
    assert_eq!((bought, deal.status().await.unwrap().unwrap().granted), (40, 40));
}

/// More holds fall due at once than one step gives back.
async fn a_late_confirmation_is_refused_in_a_backlog(gate: Gate, let_pass: impl AsyncFnOnce(Duration)) {
    let store = Arc::clone(gate.store());
    let deal = gate.deal("backlog").unwrap();
    deal.open(&Terms::new(20_000).unwrap()).await.unwrap();
    let campaign = Campaign::new(CampaignKind::Deal, Name::new("deal", "backlog").unwrap());
    let user = Name::new("user", "alice").unwrap();
    let (ttl, mut last) = (Duration::from_millis(1_500), HoldId::random());
    for _ in 0..11 {
        let wishes: Vec<_> = (0..MAX_BATCH)
            .map(|_| HoldWish {
                campaign: campaign.clone(),
                id: HoldId::random(),
                user: user.clone(),
                quantity: 1,
                ttl,
                pass: None,
            })
            .collect();
        let held = store.hold_place(&Sending::once(), &wishes).await.unwrap();
        assert!(held.iter().all(|answer| matches!(answer, HoldPlace::Held { .. })));
        last = wishes[MAX_BATCH - 1].id;
    }
    let_pass(ttl + Duration::from_millis(5)).await;
    let hold = deal.held(last, "alice").unwrap();
    assert_eq!(hold.confirm().await.unwrap(), HoldSettle::Expired);
    assert_eq!(hold.status().await.unwrap().unwrap().state, HoldState::Expired);
    let status = deal.status().await.unwrap().unwrap();
    assert_eq!((status.granted, status.held, status.rev), (0, 0, 1 + 22_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_whose_time_is_over_is_not_confirmed_however_many_others_are_due() {
    let clock = Clock::fake();
    let memory = Gate::on(Arc::new(MemoryStore::new(clock.clone())));
    a_late_confirmation_is_refused_in_a_backlog(memory, async |time| clock.advance(time)).await;
    let redis = Redis::start(Persistence::Off).unwrap();
    let on_redis = Gate::open(&redis.url()).await.unwrap();
    // The holds are Redis' own, and its clock cannot be moved.
    a_late_confirmation_is_refused_in_a_backlog(on_redis, tokio::time::sleep).await;
}

/// Tells a child process what it is: the store's URL, the folder, its first user and how many.
const SHOPPER: &str = "LOCKGATE_TEST_SHOPPER";

/// Not a test by itself: one of several processes that sell the same coupon.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_the_crowd() {
    let Ok(orders) = std::env::var(SHOPPER) else { return };
    let [url, folder, first] = orders.split('\n').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let first: u64 = first.parse().unwrap();
    let shop = Shop::new(Gate::open(url).await.unwrap(), Path::new(folder));
    println!("ready");
    for wave in 0..10 {
        rush(&shop, first + wave * 50..first + wave * 50 + 75).await;
    }
}

fn start_shopper(url: &str, folder: &Path, first: u64) -> Child {
    let orders = [url, folder.to_str().unwrap(), &first.to_string()].join("\n");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["stock_crowd::a_process_of_the_crowd", "--exact", "--nocapture"])
        .env(SHOPPER, orders)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"), "the process did not start");
    // What else it says is of no interest, but somebody must read it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_of_which_one_is_killed_sell_exactly_what_there_is() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let folder = TempDir::new().unwrap();
    let shop = Shop::new(Gate::open(&redis.url()).await.unwrap(), folder.path());
    shop.open(COUPONS).await;
    let mut children: Vec<_> =
        (0..4).map(|process| start_shopper(&redis.url(), folder.path(), process * 200)).collect();
    // In the middle of it.
    let half_is_sold = async || shop.coupon.status().await.unwrap().unwrap().granted > 20;
    assert!(eventually_async(Duration::from_secs(20), half_is_sold).await);
    children[0].kill().unwrap();
    for child in &mut children {
        child.wait().unwrap();
    }
    let status = shop.coupon.status().await.unwrap().unwrap();
    assert_eq!((status.granted, status.seq, status.rev), (COUPONS, COUPONS, COUPONS + 1));
    shop.take_stock().await;
    let judged = expect_truth(folder.path());
    assert!(judged.stock_grants >= COUPONS - 100, "{judged:?}");
}

/// Kills Redis in the middle of a sale; what it still knows afterwards is judged by what its persistence promises.
async fn kill_redis(persistence: Persistence) -> (Verdict, u64) {
    let redis = Redis::start(persistence).unwrap();
    let folder = TempDir::new().unwrap();
    let shop = Shop::new(Gate::open(&redis.url()).await.unwrap(), folder.path());
    shop.open(100_000).await;
    let selling = {
        let shop = shop.clone();
        tokio::spawn(async move {
            for wave in 0..60 {
                rush(&shop, wave * 50..wave * 50 + 50).await;
            }
        })
    };
    let some_are_sold = async || shop.coupon.status().await.is_ok_and(|status| status.unwrap().granted > 500);
    assert!(eventually_async(Duration::from_secs(20), some_are_sold).await);
    redis.kill();
    redis.restart().unwrap();
    // Also what goes on without its callers must have ended before stock is taken.
    selling.await.unwrap();
    let back = Shop::new(Gate::open(&redis.url()).await.unwrap(), folder.path());
    // It is another server, so it is looked at first whether something is missing. The other gate knows.
    let is_open = async || {
        let status = back.coupon.status().await;
        status.is_ok_and(|status| status.unwrap().state == CampaignState::Open)
    };
    if !eventually_async(Duration::from_secs(10), is_open).await {
        assert!(matches!(back.coupon.status().await, Err(StoreError::Recovering)));
        assert!(matches!(back.coupon.issue("late").await, Ok(Issue::Recovering)));
        return (verdict(folder.path()), 0);
    }
    back.take_stock().await;
    (verdict(folder.path()), back.coupon.status().await.unwrap().unwrap().granted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_that_syncs_always_has_lost_nothing() {
    let (verdict, known) = kill_redis(Persistence::AofAlways).await;
    verdict.into_result().unwrap_or_else(|why| panic!("{why}"));
    assert!(known >= 500, "{known}");
}

/// The process dies, not the machine: what it has written is the operating system's by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_that_syncs_every_second_has_lost_nothing_while_its_machine_lives() {
    let (verdict, known) = kill_redis(Persistence::AofEverysec).await;
    verdict.into_result().unwrap_or_else(|why| panic!("{why}"));
    assert!(known >= 500, "{known}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_without_persistence_has_lost_all_of_it_and_says_so() {
    let (_, known) = kill_redis(Persistence::Off).await;
    assert_eq!(known, 0);
}
