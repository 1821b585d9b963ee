//! A master that is replaced by one that knows less, or comes back as another one: locks that wait for replicas before they
//! count, and locks that nobody is given until the old ones have ended. What happens in real failovers is counted in the lab.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::{Clock, Moment};
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::lock::{LockError, Mutex, MutexGuard, Traces, Waiting};
use lockgate::store::{
    Acquire, Attempt, EarId, IfTaken, Lease, Listener, Lock, News, Pool, PoolKind, Release, Renew, Renewal,
    Share, Store, Token,
};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Cluster, Persistence, Redis, Sentinel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_secs(20);
/// Long enough to see that something does not happen.
const A_WHILE: Duration = Duration::from_millis(300);
const QUARANTINE: Duration = Duration::from_millis(1_500);

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn lease(length: Duration) -> Lease {
    Lease::new(length).unwrap()
}

fn now() -> Moment {
    Clock::system().monotonic()
}

/// A master and its replica, in step.
fn pair() -> (Redis, Redis) {
    let node =
        Redis::builder().config("repl-diskless-sync-delay", "0").config("repl-ping-replica-period", "1");
    let master = node.start().unwrap();
    let replica = node.config("replicaof", &format!("127.0.0.1 {}", master.port())).start().unwrap();
    // A replica that has the first copy is sent what comes after it up to a second later.
    let is_up = || replica.info("replication", "master_link_status").as_deref() == Some("up");
    assert!(lockgate::testing::eventually(LONG, is_up));
    master.command(&["SET", "ready", "yes"]).unwrap();
    let has_it = || replica.command(&["GET", "ready"]).is_ok_and(|value| value.as_str() == Some("yes"));
    assert!(lockgate::testing::eventually(LONG, has_it));
    (master, replica)
}

/// A gate whose locks count when one replica has them.
async fn waiting_for_a_replica(url: &str, for_up_to: Duration) -> Gate {
    let mut config = Config::default();
    config.redis.wait_replicas = 1;
    config.redis.wait_replicas_for = for_up_to;
    Gate::open_with(url, &config).await.unwrap()
}

async fn in_quarantine(url: &str) -> Gate {
    let mut config = Config::default();
    config.quarantine = Some(QUARANTINE);
    Gate::open_with(url, &config).await.unwrap()
}

/// Takes a lock beside the test.
fn begin(mutex: &Mutex) -> JoinHandle<Result<MutexGuard, LockError>> {
    let mutex = mutex.clone();
    tokio::spawn(async move { mutex.lock().await })
}

async fn ended<T>(task: JoinHandle<T>) -> T {
    timeout(LONG, task).await.unwrap().unwrap()
}

/// The fence that a server has noted for the mutex `m`, if somebody holds it there.
fn held_with(server: &Redis) -> Option<String> {
    let value = server.command(&["GET", "lg:{0}:mutex:m"]).unwrap().as_str()?.to_owned();
    (!value.starts_with('r')).then(|| value[65..].to_owned())
}

async fn is_free(mutex: &Mutex) -> bool {
    let free = async || mutex.status().await.is_ok_and(|status| status.holder.is_none());
    eventually_async(LONG, free).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_replica_nobody_is_given_a_lock_and_nothing_stays_held() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = waiting_for_a_replica(&redis.url(), Duration::from_millis(50)).await;
    let mutex = gate.mutex("m").unwrap();
    let ways = [
        mutex.clone(),
        mutex.clone().cohort(None),
        mutex.clone().waiting(Waiting::Notify),
        mutex.clone().waiting(Waiting::spin()),
    ];
    for way in ways {
        let refused = way.lock().await.unwrap_err();
        let LockError::Store(StoreError::Unavailable(why)) = &refused else { panic!("{refused:?}") };
        assert!(why.contains("0 of the 1 replicas") && why.contains("`wait_replicas`"), "{why}");
        assert!(is_free(&mutex).await, "it was not given back");
    }
    assert!(mutex.try_lock().await.is_err());
    assert!(is_free(&mutex).await);
    let nothing = async || gate.lock_traces() == Traces::default();
    assert!(eventually_async(LONG, nothing).await, "{:?}", gate.lock_traces());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_given_is_on_the_replica() {
    let (master, replica) = pair();
    let gate = waiting_for_a_replica(&master.url(), LONG).await;
    for mutex in [gate.mutex("m").unwrap(), gate.mutex("m").unwrap().waiting(Waiting::spin())] {
        replica.pause().unwrap();
        let lock = begin(&mutex);
        sleep(A_WHILE).await;
        assert!(held_with(&master).is_some() && !lock.is_finished(), "the replica has not heard of it");
        replica.resume().unwrap();
        let guard = ended(lock).await.unwrap();
        assert_eq!(held_with(&replica), held_with(&master));
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_handed_over_is_on_the_replica_too() {
    let (master, replica) = pair();
    let [holding, waiting] =
        [waiting_for_a_replica(&master.url(), LONG).await, waiting_for_a_replica(&master.url(), LONG).await];
    let guard = holding.mutex("m").unwrap().lock().await.unwrap();
    let before = held_with(&master);
    let next = begin(&waiting.mutex("m").unwrap());
    let queued = async || holding.mutex("m").unwrap().status().await.unwrap().waiting == 1;
    assert!(eventually_async(LONG, queued).await);
    replica.pause().unwrap();
    guard.release().await.unwrap();
    sleep(A_WHILE).await;
    assert_ne!(held_with(&master), before, "it was handed over");
    assert!(!next.is_finished(), "the replica has not heard of it");
    replica.resume().unwrap();
    let _guard = ended(next).await.unwrap();
    assert_eq!(held_with(&replica), held_with(&master));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_already_sees_the_absence_of_replicas_through() {
    let (master, replica) = pair();
    let for_up_to = Duration::from_millis(200);
    let [holding, waiting] = [
        waiting_for_a_replica(&master.url(), for_up_to).await,
        waiting_for_a_replica(&master.url(), for_up_to).await,
    ];
    let mutex = holding.mutex("m").unwrap();
    let guard = mutex.lock().await.unwrap();
    let next = begin(&waiting.mutex("m").unwrap());
    assert!(eventually_async(LONG, async || mutex.status().await.unwrap().waiting == 1).await);
    replica.kill();
    guard.release().await.unwrap();
    sleep(Duration::from_millis(800)).await;
    assert!(!next.is_finished(), "it was told, or given what cannot be relied on");
    assert!(is_free(&mutex).await, "what cannot be relied on is kept from others");
    replica.restart().unwrap();
    ended(next).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_no_replica_has_is_none() {
    let (master, replica) = pair();
    let gate = waiting_for_a_replica(&master.url(), A_WHILE).await;
    let guard = gate.mutex("m").unwrap().watchdog(Duration::from_millis(900)).unwrap().lock().await.unwrap();
    sleep(Duration::from_millis(1_800)).await;
    guard.check().expect("it is renewed");
    replica.pause().unwrap();
    timeout(Duration::from_millis(1_500), guard.lost()).await.expect("the master alone does not count");
    replica.resume().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_of_which_the_master_has_not_heard_is_none_however_many_replicas_there_are() {
    let (master, _replica) = pair();
    let gate = waiting_for_a_replica(&master.url(), LONG).await;
    let (store, mutex, token) = (gate.store(), name("m"), Token::random());
    let lock = Lock::Mutex(mutex.clone());
    assert!(!store.replicated(&lock, &token).await.unwrap());
    store.mutex_acquire(&mutex, &Attempt::new(token, lease(LONG))).await.unwrap();
    assert!(store.replicated(&lock, &token).await.unwrap());
    assert!(!store.replicated(&lock, &Token::random()).await.unwrap());
    store.mutex_release(&mutex, &token).await.unwrap();
    assert!(!store.replicated(&lock, &token).await.unwrap());

    let pool = Pool { kind: PoolKind::Semaphore, name: name("s") };
    let lock = Lock::Pool(pool.clone());
    let [holds, waits] = [Token::random(), Token::for_ear(EarId::random())];
    let share = Share { permits: 1, of: 1 };
    assert!(!store.replicated(&lock, &holds).await.unwrap());
    store.permit_acquire(&pool, &Attempt::new(holds, lease(A_WHILE)), share).await.unwrap();
    store.permit_acquire(&pool, &asks(waits, IfTaken::Queue), share).await.unwrap();
    assert!(store.replicated(&lock, &holds).await.unwrap());
    assert!(!store.replicated(&lock, &waits).await.unwrap(), "it only waits");
    sleep(A_WHILE).await;
    assert!(!store.replicated(&lock, &holds).await.unwrap(), "its lease is over");
}

/// The same for permits and for several mutexes at once: what is given is on the replica, and without one nothing is.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_lock_waits_for_the_replica() {
    let (master, replica) = pair();
    let gate = waiting_for_a_replica(&master.url(), Duration::from_millis(200)).await;
    let (rw, permits) = (gate.rw_lock("rw").unwrap(), gate.semaphore("s", 2).unwrap());
    let several = gate.multi_lock(["a", "b"]).unwrap();
    let reader = rw.watchdog(Duration::from_millis(1_500)).unwrap().read().await.unwrap();
    let permit = permits.acquire().await.unwrap();
    drop(several.lock().await.unwrap());
    sleep(Duration::from_millis(2_000)).await;
    reader.check().expect("it is renewed");
    replica.pause().unwrap();
    let refused = [
        gate.rw_lock("other").unwrap().write().await.map(drop).unwrap_err(),
        gate.rw_lock("another").unwrap().try_read().await.map(drop).unwrap_err(),
        permits.acquire().await.map(drop).unwrap_err(),
        several.lock().await.map(drop).unwrap_err(),
    ];
    for why in refused {
        assert!(why.to_string().contains("`wait_replicas`"), "{why}");
    }
    timeout(Duration::from_secs(5), reader.lost()).await.expect("the master alone does not count");
    replica.resume().unwrap();
    drop((reader, permit));
    let all = async || several.try_lock().await.is_ok_and(|all| all.is_some());
    assert!(eventually_async(LONG, all).await, "what cannot be relied on is kept from others");
    let both = async || permits.try_acquire_many(2).await.is_ok_and(|both| both.is_some());
    assert!(eventually_async(LONG, both).await, "what cannot be relied on is kept from others");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_come_together_wait_for_the_replicas_together() {
    let (master, _replica) = pair();
    let gate = waiting_for_a_replica(&master.url(), LONG).await;
    let locks: Vec<_> = (0..200).map(|lock| begin(&gate.mutex(format!("m{lock}")).unwrap())).collect();
    for lock in locks {
        drop(ended(lock).await.unwrap());
    }
    let waits = calls(&master, "wait");
    assert!((1..150).contains(&waits), "{waits} times");
}

/// How often a command was run.
fn calls(redis: &Redis, command: &str) -> u64 {
    let Some(stats) = redis.info("commandstats", &format!("cmdstat_{command}")) else { return 0 };
    stats.strip_prefix("calls=").unwrap().split(',').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_waits_for_the_replica_of_the_right_master() {
    let cluster = Cluster::start().unwrap();
    let gate = waiting_for_a_replica(&cluster.url(), LONG).await;
    for number in 0..40 {
        let guard = gate.mutex(format!("m{number}")).unwrap().lock().await.unwrap();
        guard.release().await.unwrap();
    }
    // The replicas of all masters but one are stopped: only that one's locks are given.
    let nodes = cluster.nodes();
    nodes[4..].iter().for_each(|replica| replica.pause().unwrap());
    let locks: Vec<_> = (0..40).map(|number| begin(&gate.mutex(format!("n{number}")).unwrap())).collect();
    let given = || locks.iter().filter(|lock| lock.is_finished()).count();
    assert!(eventually_async(LONG, async || given() > 0).await);
    sleep(A_WHILE).await;
    assert!((1..40).contains(&given()), "{}", given());
    nodes[4..].iter().for_each(|replica| replica.resume().unwrap());
    for lock in locks {
        drop(ended(lock).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_asked_for_costs_nothing() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let mutex = gate.mutex("m").unwrap();
    mutex.lock().await.unwrap().release().await.unwrap();
    let commands = ["evalsha", "get", "set", "time"];
    let before = commands.map(|command| calls(&redis, command));
    for _ in 0..10 {
        mutex.lock().await.unwrap().release().await.unwrap();
    }
    let after = commands.map(|command| calls(&redis, command));
    let spent: Vec<_> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    assert_eq!(spent, [20, 20, 20, 10], "{commands:?}");
    for key in ["lg:{0}:quarantine", "lg:{0}:replicated"] {
        assert_eq!(redis.command(&["EXISTS", key]).unwrap().as_int(), Some(0), "{key}");
    }
}

/// Whether it took from one time to another as long as the quarantine, and not much longer.
fn lasted_for_the_quarantine(from: Moment, to: Moment) {
    let took = to.since(from);
    assert!(took >= QUARANTINE - Duration::from_millis(5), "granted after {took:?}");
    assert!(took < QUARANTINE + Duration::from_millis(600), "granted after {took:?}");
}

async fn take_and_give_back(gate: &Gate) {
    gate.mutex("m").unwrap().wait(LONG / 4).lock().await.unwrap().release().await.unwrap();
}

/// A Redis that all have got used to.
async fn in_use(persistence: Persistence) -> (Redis, Gate) {
    let redis = Redis::start(persistence).unwrap();
    let gate = in_quarantine(&redis.url()).await;
    let asked = now();
    take_and_give_back(&gate).await;
    // A new one looks like one that was emptied.
    lasted_for_the_quarantine(asked, now());
    let again = now();
    take_and_give_back(&gate).await;
    assert!(now().since(again) < QUARANTINE / 2, "the server is the same");
    (redis, gate)
}

fn come_back(redis: &Redis) -> Moment {
    redis.kill();
    redis.restart().unwrap();
    now()
}

/// After a restart nobody gets the lock before the time is over, whatever the way of waiting, and whoever it is.
async fn nobody_gets_it_early(persistence: Persistence) {
    let (redis, gate) = in_use(persistence).await;
    let mutex = gate.mutex("m").unwrap();
    let back = come_back(&redis);
    let waiter = begin(&mutex);
    assert!(mutex.clone().cohort(None).wait(QUARANTINE / 3).lock().await.is_err());
    assert!(mutex.clone().waiting(Waiting::Notify).wait(Duration::from_millis(50)).lock().await.is_err());
    // A process that has just started goes by the same time, neither an earlier one nor one of its own.
    let newcomer = in_quarantine(&redis.url()).await;
    assert!(newcomer.mutex("m").unwrap().try_lock().await.unwrap().is_none());
    assert!(newcomer.mutex("never seen").unwrap().try_lock().await.unwrap().is_none());
    let theirs = begin(&newcomer.mutex("never seen").unwrap());
    assert!(!waiter.is_finished());
    let guard = ended(waiter).await.unwrap();
    lasted_for_the_quarantine(back, now());
    drop(ended(theirs).await.unwrap());
    lasted_for_the_quarantine(back, now());
    guard.release().await.unwrap();
    take_and_give_back(&newcomer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_nobody_is_given_a_lock_until_the_quarantine_is_over() {
    nobody_gets_it_early(Persistence::AofAlways).await;
}

/// The same for permits and for several mutexes at once. Who held some and is known to the server keeps them.
#[tokio::test(flavor = "multi_thread")]
async fn the_quarantine_is_for_every_kind_of_lock() {
    let (redis, gate) = in_use(Persistence::AofAlways).await;
    let (rw, permits) = (gate.rw_lock("rw").unwrap(), gate.semaphore("s", 2).unwrap());
    let several = gate.multi_lock(["a", "b"]).unwrap();
    let reader = rw.clone().watchdog(Duration::from_millis(900)).unwrap().read().await.unwrap();
    let permit = permits.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let other = in_quarantine(&redis.url()).await.semaphore("s", 2).unwrap();
        async move { other.acquire_many(2).await }
    });
    assert!(eventually_async(LONG, async || permits.status().await.unwrap().waiting == 1).await);
    let back = come_back(&redis);
    let newcomer = in_quarantine(&redis.url()).await;
    assert!(newcomer.rw_lock("rw").unwrap().try_read().await.unwrap().is_none());
    assert!(newcomer.rw_lock("never seen").unwrap().try_write().await.unwrap().is_none());
    assert!(newcomer.semaphore("s", 2).unwrap().try_acquire().await.unwrap().is_none());
    assert!(newcomer.multi_lock(["a", "b"]).unwrap().try_lock().await.unwrap().is_none());
    // Given back, it does not go to the next: the call may be a late copy.
    permit.release().await.unwrap();
    let all = tokio::spawn(async move { several.lock().await });
    let written = tokio::spawn(async move { newcomer.rw_lock("never seen").unwrap().write().await });
    sleep(A_WHILE).await;
    assert!(!waiting.is_finished() && !all.is_finished() && !written.is_finished());
    drop(ended(waiting).await.unwrap());
    lasted_for_the_quarantine(back, now());
    drop((ended(all).await.unwrap(), ended(written).await.unwrap()));
    lasted_for_the_quarantine(back, now());
    reader.check().expect("it was renewed all the time");
    assert!(rw.try_write().await.unwrap().is_none());
    drop(reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_without_data_nobody_is_given_a_lock_until_the_quarantine_is_over() {
    nobody_gets_it_early(Persistence::Off).await;
}

/// The store of a Redis with data, and tokens to ask it with.
async fn at_the_store() -> (Redis, Arc<dyn Store>, Name) {
    let (redis, gate) = in_use(Persistence::AofAlways).await;
    (redis, Arc::clone(gate.store()), name("n"))
}

fn asks(token: Token, if_taken: IfTaken) -> Attempt {
    Attempt { if_taken, ..Attempt::new(token, lease(LONG)) }
}

async fn asked(store: &dyn Store, mutex: &Name, token: Token, if_taken: IfTaken) -> Acquire {
    store.mutex_acquire(mutex, &asks(token, if_taken)).await.unwrap()
}

/// Whether somebody is to wait for the quarantine, behind so many.
fn waits_behind(many: u64, answer: Acquire) -> bool {
    matches!(answer, Acquire::Queued { ahead, lease_left, .. }
        if ahead == many && lease_left > Duration::ZERO && lease_left <= QUARANTINE)
}

async fn nobody_holds(store: &dyn Store, mutex: &Name) -> bool {
    store.mutex_read(mutex).await.unwrap().holder.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_runs_out_in_quarantine_is_inherited_afterwards_in_the_old_order() {
    let (redis, store, mutex) = at_the_store().await;
    let store = &*store;
    let [holder, first, second, third] = [(); 4].map(|()| Token::random());
    let short = Attempt::new(holder, lease(Duration::from_millis(200)));
    assert!(matches!(store.mutex_acquire(&mutex, &short).await.unwrap(), Acquire::Granted { .. }));
    asked(store, &mutex, first, IfTaken::Queue).await;
    asked(store, &mutex, second, IfTaken::Queue).await;
    come_back(&redis);
    assert!(eventually_async(LONG, async || nobody_holds(store, &mutex).await).await);
    assert!(waits_behind(0, asked(store, &mutex, first, IfTaken::QueueAgain).await));
    let noticed = now();
    assert!(waits_behind(2, asked(store, &mutex, third, IfTaken::Queue).await));
    // Nor does anything else that looks at the mutex give it away.
    assert_eq!(store.mutex_release(&mutex, &third).await.unwrap(), Release::Left);
    assert_eq!(store.mutex_release(&mutex, &holder).await.unwrap(), Release::NotHeld);
    store.mutex_break(&mutex).await.unwrap();
    assert!(waits_behind(2, store.mutex_yield(&mutex, &holder, &asks(third, IfTaken::Queue)).await.unwrap()));
    assert!(nobody_holds(store, &mutex).await);

    sleep((noticed + QUARANTINE).since(now())).await;
    assert!(matches!(
        asked(store, &mutex, third, IfTaken::QueueAgain).await,
        Acquire::Queued { ahead: 1, .. }
    ));
    assert!(matches!(asked(store, &mutex, first, IfTaken::QueueAgain).await, Acquire::Granted { .. }));
    store.mutex_release(&mutex, &first).await.unwrap();
    assert!(matches!(asked(store, &mutex, second, IfTaken::QueueAgain).await, Acquire::Granted { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_known_to_hold_it_keeps_it_and_gives_it_back_to_nobody_until_the_quarantine_is_over() {
    let (redis, store, mutex) = at_the_store().await;
    let store = &*store;
    let [holder, waiter, stranger, next] = [(); 4].map(|()| Token::random());
    let granted = asked(store, &mutex, holder, IfTaken::Queue).await;
    let Acquire::Granted { fences, .. } = granted else { panic!("{granted:?}") };
    come_back(&redis);
    let renewal = [Renewal { mutex: mutex.clone(), token: holder, lease: lease(LONG), fences: 0 }];
    assert!(matches!(store.mutex_renew(&renewal).await.unwrap()[..], [Renew::Renewed { .. }]));
    // What is left of its lease, and not of the quarantine.
    let again = asked(store, &mutex, holder, IfTaken::Queue).await;
    let noticed = now();
    assert!(
        matches!(again, Acquire::Granted { fences: same, lease_left } if same == fences && lease_left > LONG / 2)
    );
    assert!(waits_behind(0, asked(store, &mutex, waiter, IfTaken::Queue).await));
    // It may be a copy, of one that the old master did before it gave the mutex to somebody else.
    assert_eq!(store.mutex_release(&mutex, &holder).await.unwrap(), Release::Released);
    assert!(nobody_holds(store, &mutex).await);
    assert!(matches!(asked(store, &mutex, stranger, IfTaken::Leave).await, Acquire::Taken { .. }));
    assert!(matches!(asked(store, &mutex, stranger, IfTaken::Watch).await, Acquire::Taken { .. }));
    assert!(nobody_holds(store, &mutex).await, "a watcher has turned what is free into something else");

    sleep((noticed + QUARANTINE).since(now())).await;
    let late = asked(store, &mutex, stranger, IfTaken::Leave).await;
    assert!(matches!(late, Acquire::Taken { .. }), "the queue comes first: {late:?}");
    let inherited = asked(store, &mutex, waiter, IfTaken::QueueAgain).await;
    assert!(
        matches!(inherited, Acquire::Granted { fences: theirs, .. } if theirs.first > fences.last),
        "{inherited:?}"
    );

    // Handing over to oneself is being given it, too.
    come_back(&redis);
    assert!(waits_behind(0, store.mutex_yield(&mutex, &waiter, &asks(next, IfTaken::Queue)).await.unwrap()));
    assert!(nobody_holds(store, &mutex).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_a_quarantine_for_each_partition() {
    let cluster = Cluster::start().unwrap();
    let gate = in_quarantine(&cluster.url()).await;
    let asked = now();
    take_and_give_back(&gate).await;
    lasted_for_the_quarantine(asked, now());
    let again = now();
    take_and_give_back(&gate).await;
    assert!(now().since(again) < QUARANTINE / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_old_master_says_does_not_count_once_a_sentinel_has_named_another() {
    let sentinel = Sentinel::start().unwrap();
    let mut config = Config::default();
    // Nobody gives up because it takes so long.
    (config.redis.response_timeout, config.redis.call_timeout) = (LONG, LONG);
    let gate = Gate::open_with(&sentinel.url(), &config).await.unwrap();
    let store = Arc::clone(gate.store());
    asked(&*store, &name("before"), Token::random(), IfTaken::Leave).await;
    let old = sentinel.master().unwrap();
    old.pause().unwrap();
    let (asking, token) = (Arc::clone(&store), Token::random());
    let call = tokio::spawn(async move { asked(&*asking, &name("during"), token, IfTaken::Leave).await });
    sentinel.replace_master().unwrap();
    let new = sentinel.wait_for_master_other_than(Some(old.port())).unwrap();
    // It goes on as if nothing had been, and does what was sent to it; but nobody listens to it any more.
    old.resume().unwrap();
    asked(&*store, &name("after"), Token::random(), IfTaken::Leave).await;
    assert!(matches!(call.await.unwrap(), Acquire::Granted { .. }));
    for key in ["lg:{0}:mutex:during", "lg:{0}:mutex:after"] {
        assert_eq!(new.command(&["EXISTS", key]).unwrap().as_int(), Some(1), "{key}");
    }
}

/// Counts how often it is told that it hears.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Listener for Counting {
    fn hear(&self, news: News) {
        self.0.fetch_add(usize::from(news == News::Listening), Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_heard_at_its_replicas_too() {
    let cluster = Cluster::start().unwrap();
    let (seeds, replicas) = cluster.nodes().split_at(3);
    for replica in replicas {
        replica.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]).unwrap();
    }
    let is_replica = |node: &Redis| node.info("replication", "role").as_deref() == Some("slave");
    assert!(eventually_async(LONG, async || seeds.iter().all(is_replica)).await);
    let gate = Gate::open(&cluster.url()).await.unwrap();
    let counting = Arc::new(Counting::default());
    let hearing = gate.store().listen(EarId::random(), Arc::clone(&counting) as Arc<dyn Listener>);
    hearing.listening().await;
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(counting.0.load(Ordering::SeqCst), 1, "the subscription ended although nothing was wrong");
}
