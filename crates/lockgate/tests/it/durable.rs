//! The embedded store with its journal on disk: what was answered is there again, whatever happens to the process or the disk.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::error::{OpenError, StoreError};
use lockgate::stock::{HoldId, HoldSettle, Issue, OrderPlace, Purchase, Reservation, Revoke, Terms};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{JournalPosition, Store};
use lockgate::testing::history::{Bounds, History, check};
use lockgate::testing::{eventually, eventually_async};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::shop::Shop;

const SOON: Duration = Duration::from_secs(20);
/// Long enough that an answer that does not wait would have come.
const A_WHILE: Duration = Duration::from_millis(50);
const AN_HOUR: Duration = Duration::from_secs(3_600);

struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    /// Opens the journal; whoever had it before may take a moment to let go.
    async fn open(&self) -> (Arc<MemoryStore>, Gate) {
        self.open_with(&Config::default()).await
    }

    async fn open_with(&self, config: &Config) -> (Arc<MemoryStore>, Gate) {
        let mut opened = Err(OpenError::Config("not tried".into()));
        let is_open = eventually_async(SOON, async || {
            opened = MemoryStore::open(self.path(), config);
            opened.is_ok()
        });
        assert!(is_open.await, "{opened:?}");
        let store = Arc::new(opened.unwrap());
        (Arc::clone(&store), Gate::on_with(store, config))
    }
}

fn by_a_fake_clock() -> Config {
    let mut config = Config::default();
    config.clock = Clock::fake();
    config
}

async fn journal_of(store: &MemoryStore) -> Vec<(u64, String)> {
    let entries = store.journal_read(0, JournalPosition::START, 10_000).await.unwrap();
    entries.iter().map(|entry| (entry.rev, format!("{:?} {:?}", entry.campaign, entry.change))).collect()
}

async fn is_kept_waiting<T>(answer: impl Future<Output = T>) -> bool {
    tokio::time::timeout(A_WHILE, answer).await.is_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_before_what_it_depends_on_is_on_disk() {
    let disk = Disk::new();
    let (store, gate) = disk.open().await;
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&Terms::new(1).unwrap()).await.unwrap();
    store.stall_journal(true);
    let asking = |user: &'static str| {
        let coupon = coupon.clone();
        tokio::spawn(async move { coupon.issue(user).await })
    };
    let mut grant = asking("alice");
    assert!(is_kept_waiting(&mut grant).await, "a grant");
    // Two calls wait for the disk; what follows asks the store itself, so that it does not only queue behind them.
    let campaign = lockgate::store::Campaign::new(
        lockgate::store::CampaignKind::Coupon,
        lockgate::key::Name::new("coupon", "c").unwrap(),
    );
    let user = |user: &str| lockgate::key::Name::new("user", user).unwrap();
    let wish =
        |name: &str| [lockgate::store::IssueWish { coupon: campaign.clone(), user: user(name), pass: None }];
    let (replay, denial) = (wish("alice"), wish("bob"));
    let (one, two) = (lockgate::store::Sending::once(), lockgate::store::Sending::once());
    assert!(is_kept_waiting(store.coupon_issue(&one, &replay)).await, "a replay");
    assert!(is_kept_waiting(store.coupon_issue(&two, &denial)).await, "a denial");
    assert!(is_kept_waiting(coupon.status()).await, "a status");
    assert!(is_kept_waiting(coupon.share_of("alice")).await, "what a user has");
    assert!(is_kept_waiting(coupon.share_of("bob")).await, "what a user has not");
    store.stall_journal(false);
    assert_eq!(grant.await.unwrap().unwrap(), Issue::Issued { seq: 1, remaining: 0 });
    assert_eq!(asking("bob").await.unwrap().unwrap(), Issue::SoldOut);
}

/// Something of every kind.
async fn trade(gate: &Gate) {
    let (coupon, deal) = (gate.coupon("c").unwrap(), gate.deal("d {nasty}\n").unwrap());
    let (shirt, socks) = (gate.sku_of("shop", "shirt").unwrap(), gate.sku_of("shop", "socks").unwrap());
    coupon.open(&Terms::new(5).unwrap()).await.unwrap();
    deal.open(&Terms::new(50).unwrap().per_user(10).unwrap()).await.unwrap();
    shirt.open(&Terms::new(10).unwrap()).await.unwrap();
    socks.open(&Terms::new(10).unwrap()).await.unwrap();
    assert!(matches!(coupon.issue("alice").await.unwrap(), Issue::Issued { seq: 1, .. }));
    assert!(matches!(coupon.issue("bob \0 🎟").await.unwrap(), Issue::Issued { seq: 2, .. }));
    assert!(matches!(coupon.revoke("alice", 1).await.unwrap(), Revoke::Revoked { .. }));
    let Reservation::Held { hold, .. } = coupon.hold("carol", AN_HOUR).await.unwrap() else {
        panic!("not held")
    };
    assert_eq!(hold.confirm().await.unwrap(), HoldSettle::Confirmed { seq: 3 });
    assert!(matches!(coupon.hold("dave", AN_HOUR).await.unwrap(), Reservation::Held { .. }));
    assert!(matches!(deal.purchase_as("r1", "alice", 3).await.unwrap(), Purchase::Bought { .. }));
    let Reservation::Held { hold, .. } = deal.hold("alice", 2, AN_HOUR).await.unwrap() else {
        panic!("not held")
    };
    assert_eq!(hold.cancel().await.unwrap(), HoldSettle::Cancelled);
    deal.restock(7).await.unwrap();
    deal.pause().await.unwrap();
    let order = gate.order("alice").unwrap().item(&shirt, 2).item(&socks, 1).named("o1").unwrap();
    assert_eq!(order.place().await.unwrap(), OrderPlace::Placed { seqs: vec![1, 1] });
    socks.close().await.unwrap();
}

/// What can be seen of it.
async fn seen(gate: &Gate) -> String {
    let (coupon, deal) = (gate.coupon("c").unwrap(), gate.deal("d {nasty}\n").unwrap());
    let (shirt, socks) = (gate.sku_of("shop", "shirt").unwrap(), gate.sku_of("shop", "socks").unwrap());
    let mut seen = format!("{:?}\n{:?}\n", coupon.status().await.unwrap(), deal.status().await.unwrap());
    seen += &format!("{:?}\n{:?}\n", shirt.status().await.unwrap(), socks.status().await.unwrap());
    for user in ["alice", "bob \0 🎟", "carol", "dave", "nobody"] {
        for share in [coupon.share_of(user).await.unwrap(), deal.share_of(user).await.unwrap()] {
            seen += &format!("{user:?} {share:?}\n");
        }
    }
    seen += &format!("{:?}\n", shirt.order_status("o1").await.unwrap());
    seen += &format!("{:?}\n", coupon.issue("dave").await.unwrap());
    seen += &format!("{:?}\n", deal.purchase_as("r1", "alice", 3).await.unwrap());
    seen
}

#[tokio::test]
async fn a_journal_that_is_opened_again_is_the_same_stock() {
    let disk = Disk::new();
    let (store, gate) = disk.open().await;
    trade(&gate).await;
    let before = (seen(&gate).await, journal_of(&store).await);
    drop((store, gate));
    let (store, gate) = disk.open().await;
    assert_eq!((seen(&gate).await, journal_of(&store).await), before);
    assert_eq!(before.1.len(), 18, "{:?}", before.1);
    // It goes on where it was.
    assert_eq!(
        gate.coupon("c").unwrap().issue("erin").await.unwrap(),
        Issue::Issued { seq: 4, remaining: 1 }
    );
}

#[tokio::test]
async fn a_hold_whose_time_was_over_while_nobody_looked_has_gone_back_once() {
    let (disk, config) = (Disk::new(), by_a_fake_clock());
    let (store, gate) = disk.open_with(&config).await;
    let deal = gate.deal("d").unwrap();
    deal.open(&Terms::new(5).unwrap()).await.unwrap();
    let Reservation::Held { hold, .. } = deal.hold("alice", 2, Duration::from_millis(100)).await.unwrap()
    else {
        panic!("not held")
    };
    let id = hold.id();
    drop((store, gate, deal, hold));
    config.clock.advance(Duration::from_millis(100));
    let (store, gate) = disk.open_with(&config).await;
    let deal = gate.deal("d").unwrap();
    assert_eq!(deal.status().await.unwrap().unwrap().remaining(), 5);
    assert_eq!(deal.held(id, "alice").unwrap().confirm().await.unwrap(), HoldSettle::Expired);
    let expired = journal_of(&store).await.iter().filter(|(_, change)| change.contains("Expired")).count();
    assert_eq!(expired, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_fails_leaves_the_outcome_unknown_and_the_store_goes_on_with_what_the_disk_has() {
    let disk = Disk::new();
    let (store, gate) = disk.open().await;
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&Terms::new(3).unwrap()).await.unwrap();
    coupon.issue("alice").await.unwrap();
    store.fail_next_sync();
    let failed = coupon.issue("bob").await;
    assert!(matches!(failed, Err(StoreError::UnknownOutcome(_))), "{failed:?}");
    // Until the journal has been read anew, nothing is answered.
    let mut answer = None;
    assert!(
        eventually_async(SOON, async || {
            answer = match coupon.issue("bob").await {
                Err(StoreError::Unavailable(_)) => None,
                other => Some(other.unwrap()),
            };
            answer.is_some()
        })
        .await
    );
    // The commit was written before its sync failed, so bob has it.
    assert_eq!(answer, Some(Issue::AlreadyIssued { seq: 2 }));
    assert_eq!(coupon.issue("carol").await.unwrap(), Issue::Issued { seq: 3, remaining: 0 });
    let revs: Vec<_> = journal_of(&store).await.into_iter().map(|(rev, _)| rev).collect();
    assert_eq!(revs, [1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_calls_cleanly_and_nothing_is_lost_or_doubled() {
    let disk = Disk::new();
    let (store, gate) = disk.open().await;
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&Terms::new(1_000_000).unwrap()).await.unwrap();
    let mut granted = Vec::new();
    store.limit_journal_pages(Some(8));
    let mut failures = 0;
    for user in 0..2_000 {
        // Long names fill pages.
        let user = format!("{user}-{}", "x".repeat(500));
        match coupon.issue(&user).await {
            Ok(Issue::Issued { seq, .. }) => granted.push((user, seq)),
            Ok(other) => panic!("{other:?}"),
            Err(StoreError::UnknownOutcome(_) | StoreError::Unavailable(_)) => failures += 1,
            Err(other) => panic!("{other:?}"),
        }
        if failures > 3 {
            break;
        }
    }
    assert!(!granted.is_empty() && failures > 3, "{} granted, {failures} failures", granted.len());
    // Room again: the limit ends with the connection that had it, and each failure opens a new one.
    store.limit_journal_pages(None);
    assert!(eventually_async(SOON, async || coupon.issue("after").await.is_ok()).await);
    for (user, seq) in &granted {
        assert_eq!(coupon.issue(user).await.unwrap(), Issue::AlreadyIssued { seq: *seq });
    }
    drop((store, gate, coupon));
    let (_, gate) = disk.open().await;
    let coupon = gate.coupon("c").unwrap();
    for (user, seq) in &granted {
        assert_eq!(coupon.issue(user).await.unwrap(), Issue::AlreadyIssued { seq: *seq });
    }
}

#[tokio::test]
async fn a_file_that_is_in_use_or_is_no_journal_is_refused_with_a_remedy() {
    let disk = Disk::new();
    let (_store, _gate) = disk.open().await;
    let refused = MemoryStore::open(disk.path(), &Config::default()).unwrap_err();
    assert!(matches!(&refused, OpenError::Config(why) if why.contains("another process uses")), "{refused}");

    let text = disk.folder.path().join("text");
    std::fs::write(&text, "not a database, and long enough to be sure of that".repeat(50)).unwrap();
    let refused = MemoryStore::open(&text, &Config::default()).unwrap_err();
    assert!(matches!(&refused, OpenError::Unfit(why) if why.contains("not a journal")), "{refused}");

    let nowhere = disk.folder.path().join("no/such/folder/journal.db");
    let refused = MemoryStore::open(nowhere, &Config::default()).unwrap_err();
    assert!(matches!(&refused, OpenError::Config(why) if why.contains("writable")), "{refused}");
    assert!(Gate::open("sqlite:").await.is_err());
}

#[tokio::test]
async fn a_journal_that_is_damaged_or_of_another_format_is_refused_with_a_remedy() {
    for (damage, complaint) in [
        ("DELETE FROM journal WHERE position = 3", "damaged"),
        ("UPDATE journal SET rev = rev + 1 WHERE position = 4", "damaged"),
        ("UPDATE journal SET change = '{}' WHERE position = 2", "damaged"),
        // Nothing of it is left that could have a gap.
        ("DELETE FROM journal WHERE name = 'shirt'", "damaged"),
        ("PRAGMA user_version = 99", "use the version that wrote it"),
        ("PRAGMA application_id = 99", "not a journal"),
    ] {
        let disk = Disk::new();
        let (store, gate) = disk.open().await;
        trade(&gate).await;
        drop((store, gate));
        assert!(
            eventually(SOON, || {
                let journal = rusqlite::Connection::open(disk.path()).unwrap();
                journal.execute_batch(damage).is_ok()
            }),
            "{damage}"
        );
        let refused = MemoryStore::open(disk.path(), &Config::default()).unwrap_err();
        assert!(matches!(&refused, OpenError::Unfit(why) if why.contains(complaint)), "{damage}: {refused}");
    }
}

/// A request, an order and a hold may be used again when they are forgotten, and their second life survives a restart.
#[tokio::test]
async fn an_id_that_is_used_again_after_a_day_is_remembered_from_then_on() {
    let (disk, config) = (Disk::new(), by_a_fake_clock());
    let id = HoldId::from_bits(7);
    let use_all = async |gate: &Gate| {
        let (deal, sku) = (gate.deal("d").unwrap(), gate.sku("s").unwrap());
        let bought = deal.purchase_as("r", "alice", 1).await.unwrap();
        let ordered = gate.order("alice").unwrap().item(&sku, 1).named("o").unwrap().place().await.unwrap();
        let held = deal.hold_as(id, "alice", 1, Duration::from_secs(60)).await.unwrap();
        assert!(matches!(held, Reservation::Held { .. }), "{held:?}");
        (bought, ordered)
    };
    let (_, gate) = disk.open_with(&config).await;
    gate.deal("d").unwrap().open(&Terms::new(100).unwrap()).await.unwrap();
    gate.sku("s").unwrap().open(&Terms::new(100).unwrap()).await.unwrap();
    for day in 1..=2 {
        let (bought, ordered) = use_all(&gate).await;
        assert!(matches!(bought, Purchase::Bought { .. }), "day {day}: {bought:?}");
        assert!(matches!(ordered, OrderPlace::Placed { .. }), "day {day}: {ordered:?}");
        if day == 1 {
            let cancelled = gate.deal("d").unwrap().held(id, "alice").unwrap().cancel().await.unwrap();
            assert_eq!(cancelled, HoldSettle::Cancelled);
            config.clock.advance(Duration::from_secs(25 * 3_600));
        }
    }
    drop(gate);
    let (_, gate) = disk.open_with(&config).await;
    let (bought, ordered) = use_all(&gate).await;
    assert!(matches!(bought, Purchase::AlreadyBought { seq: 2, .. }), "{bought:?}");
    assert_eq!(ordered, OrderPlace::AlreadyPlaced { seqs: vec![2] });
    let deal = gate.deal("d").unwrap();
    assert_eq!(deal.status().await.unwrap().unwrap().held, 1);
    config.clock.advance(Duration::from_secs(61));
    assert_eq!(deal.held(id, "alice").unwrap().confirm().await.unwrap(), HoldSettle::Expired);
    let status = deal.status().await.unwrap().unwrap();
    assert_eq!((status.granted, status.held), (2, 0));
}

/// Tells a child process what it is.
const SHOP_OF: &str = "LOCKGATE_TEST_SHOP_OF";

/// Not a test by itself: a process that sells until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_sells_until_it_is_killed() {
    let Ok(folder) = std::env::var(SHOP_OF) else { return };
    let folder = Path::new(&folder);
    let gate = Gate::open(&format!("sqlite:{}", folder.join("journal.db").display())).await.unwrap();
    let shop = Shop::new(gate, folder);
    shop.open(100_000).await;
    let mut sellers = JoinSet::new();
    for seller in 0..32 {
        let shop = shop.clone();
        sellers.spawn(async move {
            for turn in 0_u64.. {
                // Some users come again, also to another process.
                let user = format!("user-{}", (seller * 7_919 + turn * 31) % 40_000);
                if shop.want(&user).await.is_ok() && turn == 3 {
                    println!("sells");
                }
            }
        });
    }
    sellers.join_all().await;
}

fn start_selling(folder: &Path) -> Child {
    let name = "durable::a_process_that_sells_until_it_is_killed";
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(SHOP_OF, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_has_lost_nothing_that_it_was_told() {
    let disk = Disk::new();
    for round in 0..6 {
        let mut child = start_selling(disk.folder.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // At another moment each time: when the first of its sellers has sold, the tenth, all but one.
        let sellers = [1, 10, 31][round % 3];
        let selling = lines.by_ref().filter(|line| line.as_ref().unwrap() == "sells").take(sellers).count();
        assert_eq!(selling, sellers, "the process did not sell");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (store, gate) = disk.open().await;
    let shop = Shop::new(gate, disk.folder.path());
    shop.open(100_000).await;
    shop.take_stock().await;
    drop(store);
    let history = History::read_folder(disk.folder.path()).unwrap();
    let judged = check(&history, &Bounds::default()).into_result().unwrap_or_else(|why| panic!("{why}"));
    assert!(judged.stock_grants > 100, "{judged:?}");
    assert!(eventually(SOON, || std::fs::metadata(disk.path()).is_ok()));
}
