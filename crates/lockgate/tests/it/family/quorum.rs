//! A majority of independent servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::config::Config;
use lockgate::lock::{LockError, Quorum, QuorumMutex, Released};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{Attempt, Lease, Store, Token};
use lockgate::testing::breakable::{Break, BreakableStore};
use lockgate::testing::eventually_async;
use lockgate::testing::proxy::{Direction, FaultProxy};
use lockgate::testing::services::{Persistence, Redis};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{SHORT, SOON};

/// Five stores that can be broken one by one.
struct Five {
    stores: Vec<Arc<BreakableStore>>,
}

impl Five {
    fn new() -> Self {
        let store = || Arc::new(BreakableStore::new(Arc::new(MemoryStore::with(&Config::default()))));
        Self { stores: (0..5).map(|_| store()).collect() }
    }

    fn quorum(&self) -> Quorum {
        let stores = self.stores.iter().map(|store| Arc::clone(store) as Arc<dyn Store>).collect();
        Quorum::on(stores, &Config::default()).unwrap()
    }

    fn mutex(&self) -> QuorumMutex {
        self.quorum().mutex("m").unwrap()
    }

    fn break_some(&self, which: &[usize], how: Break) {
        which.iter().for_each(|place| self.stores[*place].break_all(how));
    }

    fn heal(&self) {
        self.stores.iter().for_each(|store| store.heal());
    }
}

async fn held_on(mutex: &QuorumMutex) -> usize {
    let status = mutex.status().await;
    status.iter().filter(|status| status.as_ref().is_ok_and(|status| status.holder.is_some())).count()
}

#[tokio::test]
async fn one_has_it_at_a_time_with_rising_fences() {
    let five = Five::new();
    let (ours, theirs) = (five.mutex(), five.mutex());
    let first = ours.lock().await.unwrap();
    assert!(theirs.try_lock().await.unwrap().is_none());
    assert!(eventually_async(SOON, async || held_on(&theirs).await == 5).await);
    let fence = first.fence();
    assert_eq!(first.release().await.unwrap(), Released::Released);
    let second = timeout(SOON, theirs.lock()).await.expect("it is not free").unwrap();
    assert!(second.fence() > fence);
    assert!(matches!(
        ours.clone().wait(Duration::from_millis(50)).lock().await,
        Err(LockError::TimedOut { .. })
    ));
    drop(second);
    assert!(
        eventually_async(SOON, async || held_on(&ours).await == 0).await,
        "a dropped guard is given back"
    );
}

#[tokio::test]
async fn with_a_minority_of_the_servers_away_all_goes_on() {
    for how in [Break::Refuse, Break::Hang, Break::LoseAnswer] {
        for broken in [&[0][..], &[1, 3][..]] {
            let five = Five::new();
            five.break_some(broken, how);
            let mutex = five.mutex().watchdog(SHORT).unwrap();
            let guard = timeout(SOON, mutex.lock()).await.expect("it waits for the dead").unwrap();
            sleep(SHORT * 2).await;
            guard.check().unwrap_or_else(|why| panic!("{how:?} {broken:?}: {why}"));
            let released = timeout(SOON, guard.release()).await.expect("it waits for the dead");
            assert_eq!(released.unwrap(), Released::Released, "{how:?} {broken:?}");
            let again = timeout(SOON, mutex.lock()).await.expect("it waits for the dead").unwrap();
            drop(again);
            five.heal();
        }
    }
}

#[tokio::test]
async fn without_a_majority_nobody_gets_it_and_nothing_stays_held() {
    let five = Five::new();
    five.break_some(&[0, 2, 4], Break::Refuse);
    let mutex = five.mutex();
    let refused = mutex.lock().await.unwrap_err();
    assert!(matches!(refused, LockError::NoQuorum { answered: 2, .. }), "{refused:?}");
    assert!(refused.to_string().contains("try again when more are back"), "{refused}");
    five.heal();
    assert!(eventually_async(SOON, async || held_on(&mutex).await == 0).await, "held by nobody");
    // Who waits already sees it through.
    let held = mutex.lock().await.unwrap();
    let waiter = tokio::spawn({
        let mutex = five.mutex();
        async move { mutex.lock().await }
    });
    sleep(Duration::from_millis(50)).await;
    five.break_some(&[0, 2, 4], Break::Refuse);
    sleep(Duration::from_millis(200)).await;
    five.heal();
    drop(held);
    drop(timeout(SOON, waiter).await.expect("it gave up, or waits for ever").unwrap().unwrap());
}

#[tokio::test]
async fn a_holder_that_loses_the_majority_is_told_before_anybody_else_can_have_it() {
    let five = Five::new();
    let guard = five.mutex().watchdog(SHORT).unwrap().lock().await.unwrap();
    five.break_some(&[0, 1, 2], Break::Refuse);
    timeout(SOON, guard.lost()).await.expect("it was not told");
    assert!(guard.check().is_err() && guard.lease_left().is_zero());
    five.heal();
    assert!(guard.check().is_err(), "once lost, always lost");
    drop(timeout(SOON, five.mutex().lock()).await.expect("it is never free again").unwrap());
}

#[tokio::test]
async fn a_lease_is_trusted_for_less_than_its_length() {
    let five = Five::new();
    let lease = Duration::from_secs(10);
    let guard = five.mutex().lease(lease).unwrap().lock().await.unwrap();
    // A hundredth and two milliseconds for the drift of clocks.
    assert!(guard.lease_left() <= lease - Duration::from_millis(102), "{:?}", guard.lease_left());
    for too_short in [Duration::from_millis(9), Duration::ZERO] {
        assert!(five.mutex().lease(too_short).unwrap_err().to_string().starts_with("lease: "));
    }
}

/// One server has given out a far higher fence; whoever counts on another majority must still be above it.
#[tokio::test]
async fn the_fence_is_known_to_a_majority_before_the_grant_counts() {
    let five = Five::new();
    let ahead = 3_600_000_000;
    let raise_one = async |place: usize| {
        let name = lockgate::key::Name::new("mutex", "m").unwrap();
        let (token, lease) = (Token::random(), Lease::new(SHORT).unwrap());
        let now = lockgate::clock::Clock::system().wall().as_micros();
        let fence_seen = lockgate::store::Fence::new(now + ahead);
        let attempt = Attempt { fence_seen, ..Attempt::new(token, lease) };
        five.stores[place].mutex_acquire(&name, &attempt).await.unwrap();
        five.stores[place].mutex_release(&name, &token).await.unwrap();
    };
    raise_one(0).await;
    // The first grant counts on the server that is ahead …
    five.break_some(&[3, 4], Break::Refuse);
    let first = five.mutex().lock().await.unwrap();
    let fence = first.fence();
    assert!(fence.get() > ahead);
    first.release().await.unwrap();
    five.heal();
    // … and the next one on a majority without it.
    five.break_some(&[0, 1], Break::Refuse);
    let second = timeout(SOON, five.mutex().lock()).await.unwrap().unwrap();
    assert!(second.fence() > fence, "{} after {fence}", second.fence());
}

#[tokio::test]
async fn a_crowd_takes_turns_while_servers_come_and_go() {
    let five = Arc::new(Five::new());
    let (counter, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut crowd = JoinSet::new();
    for _ in 0..8 {
        let (mutex, counter, last) = (five.mutex(), Arc::clone(&counter), Arc::clone(&last));
        crowd.spawn(async move {
            for round in 0..12 {
                let guard = mutex.lock().await.unwrap();
                let seen = counter.load(Ordering::SeqCst);
                assert!(last.swap(guard.fence().get(), Ordering::SeqCst) < guard.fence().get());
                tokio::task::yield_now().await;
                counter.store(seen + 1, Ordering::SeqCst);
                if round % 2 == 0 {
                    drop(guard);
                } else {
                    guard.release().await.unwrap();
                }
                let _ = timeout(Duration::from_micros(200), mutex.lock()).await;
            }
        });
    }
    let breaking = tokio::spawn({
        let five = Arc::clone(&five);
        async move {
            for round in 0_usize.. {
                five.break_some(&[round % 5, (round + 2) % 5], [Break::Refuse, Break::LoseAnswer][round % 2]);
                sleep(Duration::from_millis(20)).await;
                five.heal();
                sleep(Duration::from_millis(5)).await;
            }
        }
    });
    timeout(Duration::from_secs(90), crowd.join_all()).await.expect("somebody waits for ever");
    breaking.abort();
    assert_eq!(counter.load(Ordering::SeqCst), 96);
}

#[tokio::test]
async fn nonsense_is_refused_with_a_remedy() {
    let refused = async |urls: &[&str]| Quorum::open(urls).await.unwrap_err().to_string();
    for even in
        [&["redis://127.0.0.1:1", "redis://127.0.0.1:2"][..], &["redis://127.0.0.1:1"; 4][..], &[][..]]
    {
        assert!(refused(even).await.contains("give 3, 5 or another odd number"), "{even:?}");
    }
    let twice = ["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:1"];
    assert!(refused(&twice).await.contains("the same server twice"));
    let away = ["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"];
    assert!(refused(&away).await.contains("only 0 of 3 servers answer, and a quorum needs 2"));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with(&Config::default()));
    let same = Quorum::on(vec![Arc::clone(&store), Arc::clone(&store), store], &Config::default());
    assert!(same.unwrap_err().to_string().contains("the same store twice"));
}

#[tokio::test]
async fn one_server_under_two_names_is_noticed() {
    let (one, other) = (Redis::start(Persistence::Off).unwrap(), Redis::start(Persistence::Off).unwrap());
    let again = FaultProxy::start(address(&one)).await.unwrap();
    let urls = [one.url(), other.url(), format!("redis://127.0.0.1:{}", again.port())];
    let refused = Quorum::open(&urls).await.unwrap_err();
    assert!(refused.to_string().contains("the same server twice"), "{refused}");
}

fn address(redis: &Redis) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, redis.port()))
}

/// Five servers, each behind a network of its own.
struct Servers {
    servers: Vec<Redis>,
    networks: Vec<FaultProxy>,
}

impl Servers {
    async fn start() -> Self {
        let servers: Vec<_> = (0..5).map(|_| Redis::start(Persistence::AofAlways).unwrap()).collect();
        let mut networks = Vec::new();
        for server in &servers {
            networks.push(FaultProxy::start(address(server)).await.unwrap());
        }
        Self { servers, networks }
    }

    async fn quorum(&self) -> Quorum {
        Quorum::open(self.networks.iter().map(|network| format!("redis://127.0.0.1:{}", network.port())))
            .await
            .unwrap()
    }
}

/// Takes the lock, keeps it for twice its lease, and gives it back.
async fn works(quorum: &Quorum, what: &str) {
    let mutex = quorum.mutex("m").unwrap().watchdog(Duration::from_millis(800)).unwrap();
    let guard =
        timeout(SOON, mutex.lock()).await.unwrap_or_else(|_| panic!("{what}: nobody gets it")).unwrap();
    sleep(Duration::from_millis(1_600)).await;
    guard.check().unwrap_or_else(|why| panic!("{what}: {why}"));
    timeout(SOON, guard.release()).await.unwrap_or_else(|_| panic!("{what}: it cannot be released")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_and_two_of_five_servers_dead_paused_or_cut_off() {
    let five = Servers::start().await;
    let quorum = five.quorum().await;
    for count in [1, 2] {
        let some = &five.servers[..count];
        some.iter().for_each(|server| server.kill());
        works(&quorum, &format!("{count} dead")).await;
        // A process that has just started does not need them either.
        works(&five.quorum().await, &format!("{count} dead from the start")).await;
        some.iter().for_each(|server| server.restart().unwrap());
        some.iter().for_each(|server| server.pause().unwrap());
        works(&quorum, &format!("{count} paused")).await;
        some.iter().for_each(|server| server.resume().unwrap());
        for network in &five.networks[..count] {
            network.black_hole(Direction::ToClient);
        }
        works(&quorum, &format!("{count} cut off")).await;
        five.networks.iter().for_each(FaultProxy::heal);
    }
    // All of them are back, and take part.
    let mutex = quorum.mutex("again").unwrap();
    let guard = mutex.lock().await.unwrap();
    assert!(eventually_async(SOON, async || held_on(&mutex).await >= 3).await);
    drop(guard);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_at_the_start_joins_when_it_is_back() {
    let five = Servers::start().await;
    five.servers[4].kill();
    let quorum = five.quorum().await;
    five.servers[4].restart().unwrap();
    let mutex = quorum.mutex("m").unwrap();
    let all = async || {
        let guard = mutex.lock().await.unwrap();
        let everywhere =
            eventually_async(Duration::from_millis(500), async || held_on(&mutex).await == 5).await;
        guard.release().await.unwrap();
        everywhere
    };
    assert!(eventually_async(SOON, all).await, "it never joins");
}
