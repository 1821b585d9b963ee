//! The Redis store on bad days: replies that get lost, connections that end, servers that go away and come back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::stock::{Issue, Terms};
use lockgate::store::{
    Acquire, Attempt, Campaign, CampaignKind, CampaignOpen, Fence, Fences, IssueWish, Lease, Release, Renew,
    Renewal, Sending, Store, Token,
};
use lockgate::testing::eventually_async;
use lockgate::testing::proxy::{Direction, FaultProxy};
use lockgate::testing::services::{Cluster, Persistence, Redis, Reply, Sentinel};

/// How long a switch-over of masters may take here: detection, vote, and a busy machine.
const SWITCH_OVER: Duration = Duration::from_secs(30);

struct Behind {
    redis: Redis,
    proxy: FaultProxy,
    store: Arc<dyn Store>,
}

/// A Redis, a proxy in front of it, and a store that knows only the proxy.
async fn behind_a_proxy(adjust: impl FnOnce(&mut Config)) -> Behind {
    let redis = Redis::start(Persistence::Off).unwrap();
    let proxy = FaultProxy::start(SocketAddr::from(([127, 0, 0, 1], redis.port()))).await.unwrap();
    let mut config = Config::default();
    config.redis.retry_interval = Duration::from_millis(10);
    adjust(&mut config);
    let gate = Gate::open_with(&format!("redis://{}", proxy.addr()), &config).await.unwrap();
    Behind { redis, proxy, store: Arc::clone(gate.store()) }
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn coupon(text: &str) -> Campaign {
    Campaign::new(CampaignKind::Coupon, name(text))
}

fn a_minute() -> Lease {
    Lease::new(Duration::from_secs(60)).unwrap()
}

/// A coupon whose scripts the server knows, so that the next reply is the one to an issue and not a `NOSCRIPT`.
async fn open_coupon(store: &dyn Store, quantity: u64) -> Campaign {
    let (coupon, sold_out) = (coupon("coupon"), coupon("sold out"));
    for (coupon, quantity) in [(&coupon, quantity), (&sold_out, 0)] {
        store.campaign_open(&Sending::once(), coupon, &Terms::new(quantity).unwrap()).await.unwrap();
    }
    assert_eq!(issue(store, &sold_out, "nobody").await.unwrap(), Issue::SoldOut);
    coupon
}

/// One wish, as a sending of its own: asked again, it is another batch.
async fn issue(store: &dyn Store, coupon: &Campaign, user: &str) -> Result<Issue, StoreError> {
    let wish = IssueWish { coupon: coupon.clone(), user: name(user), pass: None };
    store.coupon_issue(&Sending::once(), &[wish]).await.map(|answers| answers[0])
}

async fn granted(store: &dyn Store, coupon: &Campaign) -> u64 {
    store.campaign_read(coupon).await.unwrap().unwrap().granted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_whose_reply_is_lost_is_found_again_and_not_repeated() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    proxy.lose_next_reply();
    // The library sent the same batch again, so the answer is the one that got lost.
    assert_eq!(issue(&*store, &coupon, "alice").await.unwrap(), Issue::Issued { seq: 1, remaining: 9 });
    assert_eq!(proxy.replies_lost(), 1);
    assert_eq!(granted(&*store, &coupon).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_whose_replies_are_lost_is_held_once_and_released_once() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|_| {}).await;
    let (mutex, token) = (name("mutex"), Token::random());
    let renewal = [Renewal { mutex: mutex.clone(), token, lease: a_minute(), fences: 0 }];
    proxy.lose_next_reply();
    let acquired = store.mutex_acquire(&mutex, &Attempt::new(token, a_minute())).await.unwrap();
    let Acquire::Granted { fences: Fences { first: fence, .. }, .. } = acquired else {
        panic!("the token met itself as a stranger")
    };
    proxy.lose_next_reply();
    assert!(matches!(store.mutex_renew(&renewal).await.unwrap()[..], [Renew::Renewed { .. }]));
    proxy.lose_next_reply();
    assert_eq!(store.mutex_release(&mutex, &token).await.unwrap(), Release::Released);
    assert_eq!(proxy.replies_lost(), 3);

    let next = store.mutex_acquire(&mutex, &Attempt::new(Token::random(), a_minute())).await.unwrap();
    assert!(matches!(next, Acquire::Granted { fences, .. } if fences.first > fence));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_re_sending_a_lost_reply_is_an_unknown_outcome() {
    let Behind { redis: _alive, proxy, store } =
        behind_a_proxy(|config| config.redis.retry_attempts = 0).await;
    let coupon = open_coupon(&*store, 10).await;
    proxy.lose_next_reply();
    let lost = issue(&*store, &coupon, "alice").await;
    assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
    assert_eq!(issue(&*store, &coupon, "alice").await.unwrap(), Issue::AlreadyIssued { seq: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_is_replaced_within_the_call() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    proxy.reset();
    issue(&*store, &coupon, "alice").await.unwrap();
    proxy.cut_after(Direction::ToServer, 20);
    issue(&*store, &coupon, "bob").await.unwrap();
    proxy.cut_after(Direction::ToClient, 3);
    issue(&*store, &coupon, "carol").await.unwrap();
    assert_eq!(granted(&*store, &coupon).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_within_the_call_timeout_and_says_what_is_known() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|config| {
        config.redis.response_timeout = Duration::from_millis(300);
        config.redis.call_timeout = Duration::from_secs(1);
    })
    .await;
    let coupon = open_coupon(&*store, 10).await;
    let clock = Clock::system();

    proxy.black_hole(Direction::ToClient);
    let asked = clock.monotonic();
    let silent = issue(&*store, &coupon, "alice").await;
    assert!(matches!(silent, Err(StoreError::UnknownOutcome(_))), "{silent:?}");
    let took = clock.monotonic().since(asked);
    assert!(took < Duration::from_secs(4), "{took:?}");

    proxy.heal();
    let found_again =
        async || issue(&*store, &coupon, "alice").await.ok() == Some(Issue::AlreadyIssued { seq: 1 });
    assert!(eventually_async(SWITCH_OVER, found_again).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_has_changed_nothing() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    proxy.refuse(true);
    proxy.reset();
    // The first call may have met the old connection; from the second on there is none.
    let _ = issue(&*store, &coupon, "alice").await;
    let refused = issue(&*store, &coupon, "bob").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    proxy.heal();
    assert!(matches!(issue(&*store, &coupon, "bob").await.unwrap(), Issue::Issued { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_in_its_time_however_long_one_sending_may_take() {
    let Behind { redis, proxy: _alive, store } = behind_a_proxy(|config| {
        config.redis.response_timeout = Duration::from_secs(3_600);
        config.redis.call_timeout = Duration::from_millis(300);
    })
    .await;
    let coupon = open_coupon(&*store, 10).await;
    redis.pause().unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(20), issue(&*store, &coupon, "alice")).await;
    assert!(matches!(answer, Ok(Err(StoreError::UnknownOutcome(_)))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_callers_of_a_dead_server_share_the_dials() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let coupon = open_coupon(&*store, 10).await;
    redis.kill();
    // In the place of the dead server: somebody who counts who knocks, and turns everybody away.
    let door = tokio::net::TcpListener::bind(("127.0.0.1", redis.port())).await.unwrap();
    let dials = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dials);
    let doorman = tokio::spawn(async move {
        while let Ok((visitor, _)) = door.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(visitor);
        }
    });
    let mut calls = tokio::task::JoinSet::new();
    for user in 0..1_000 {
        let (store, coupon) = (Arc::clone(&store), coupon.clone());
        calls.spawn(async move { issue(&*store, &coupon, &user.to_string()).await });
    }
    assert!(calls.join_all().await.iter().all(Result::is_err));
    doorman.abort();
    let dials = dials.load(Ordering::SeqCst);
    // Without sharing there would be four thousand.
    assert!((1..1_000).contains(&dials), "{dials} dials for 1,000 callers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_has_become_a_replica_is_left() {
    let Behind { redis, proxy, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    let (before, other) = (proxy.connections(), Redis::start(Persistence::Off).unwrap());
    redis.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).unwrap();
    let demoted = issue(&*store, &coupon, "alice").await;
    assert!(matches!(&demoted, Err(StoreError::Unavailable(why)) if why.contains("ReadOnly")), "{demoted:?}");
    assert!(proxy.connections() > before, "it did not look for the master anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_its_scripts_gets_them_again() {
    let Behind { redis, proxy: _alive, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    redis.command(&["SCRIPT", "FLUSH"]).unwrap();
    assert_eq!(issue(&*store, &coupon, "a:b {c}\0").await.unwrap(), Issue::Issued { seq: 1, remaining: 9 });
    assert_eq!(issue(&*store, &coupon, "a:b {c}\0").await.unwrap(), Issue::AlreadyIssued { seq: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_somebody_else_is_refused_and_left_alone() {
    let Behind { redis, proxy: _alive, store } = behind_a_proxy(|_| {}).await;
    redis.command(&["SET", "lg:{0}:coupon:coupon", "mine"]).unwrap();
    let refused = issue(&*store, &coupon("coupon"), "alice").await;
    assert!(matches!(&refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert_eq!(redis.command(&["GET", "lg:{0}:coupon:coupon"]).unwrap().as_str(), Some("mine"));
    redis.command(&["SET", "lg:{0}:coupon-members:other", "mine"]).unwrap();
    let refused = store.campaign_open(&Sending::once(), &coupon("other"), &Terms::new(1).unwrap()).await;
    assert!(matches!(&refused, Err(StoreError::Refused(why)) if why.contains("WRONGTYPE")), "{refused:?}");
    assert_eq!(store.campaign_read(&coupon("other")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_unavailable_and_nothing_has_changed() {
    let Behind { redis, proxy: _alive, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let full = issue(&*store, &coupon, "alice").await;
    assert!(matches!(&full, Err(StoreError::Unavailable(why)) if why.contains("OOM")), "{full:?}");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert_eq!(issue(&*store, &coupon, "alice").await.unwrap(), Issue::Issued { seq: 1, remaining: 9 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_after_a_lost_reply_does_not_say_that_nothing_has_changed() {
    let Behind { redis, proxy, store } = behind_a_proxy(|config| {
        config.redis.retry_interval = Duration::from_secs(1);
        config.redis.call_timeout = Duration::from_secs(20);
    })
    .await;
    let coupon = open_coupon(&*store, 10).await;
    proxy.lose_next_reply();
    let call = tokio::spawn({
        let (store, coupon) = (Arc::clone(&store), coupon.clone());
        async move { issue(&*store, &coupon, "alice").await }
    });
    proxy.until_replies_lost(1).await;
    redis.command(&["ACL", "SETUSER", "default", "-evalsha"]).unwrap();
    let answer = call.await.unwrap();
    assert!(matches!(answer, Err(StoreError::UnknownOutcome(_))), "{answer:?}");
    redis.command(&["ACL", "SETUSER", "default", "+evalsha"]).unwrap();
    assert_eq!(issue(&*store, &coupon, "alice").await.unwrap(), Issue::AlreadyIssued { seq: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dial_goes_on_when_its_caller_has_lost_patience() {
    let Behind { redis: _alive, proxy, store } = behind_a_proxy(|_| {}).await;
    let coupon = open_coupon(&*store, 10).await;
    // A dial is a conversation; delayed, it takes longer than any of these callers waits.
    proxy.delay(Duration::from_millis(300));
    proxy.reset();
    let before = proxy.connections();
    for _ in 0..10 {
        let patience = Duration::from_millis(50);
        let _ = tokio::time::timeout(patience, issue(&*store, &coupon, "alice")).await;
    }
    let dials = proxy.connections() - before;
    assert!((1..6).contains(&dials), "{dials} dials for 10 callers: each began its own");
    assert!(issue(&*store, &coupon, "bob").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_rise_even_when_redis_forgets_everything() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let mut last = Fence::NONE;
    for _ in 0..3 {
        let granted =
            store.mutex_acquire(&name("mutex"), &Attempt::new(Token::random(), a_minute())).await.unwrap();
        let Acquire::Granted { fences: Fences { first: fence, .. }, .. } = granted else {
            panic!("a forgotten lock was taken")
        };
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        redis.kill();
        redis.restart().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_over_by_sentinel_is_followed() {
    let sentinel = Sentinel::start().unwrap();
    let gate = Gate::open(&sentinel.url()).await.unwrap();
    let (store, coupon) = (gate.store(), open_coupon(&**gate.store(), 10).await);
    let old_run_ids = store.about().await.unwrap().run_ids;

    let old_port = sentinel.master_port();
    let new_port = sentinel.fail_over().unwrap().port();
    assert_ne!(old_port, Some(new_port));
    assert!(
        eventually_async(SWITCH_OVER, async || {
            store.about().await.is_ok_and(|about| about.run_ids != old_run_ids)
        })
        .await,
        "still at the old master"
    );
    // Another server: it is looked at first whether something is missing.
    let alice_gets_one = async || matches!(issue(&**store, &coupon, "alice").await, Ok(Issue::Issued { .. }));
    assert!(eventually_async(SWITCH_OVER, alice_gets_one).await, "it did not open again");
}

/// The master goes away without a word; whoever asks must be served by another one in the end, with the same stock.
async fn another_master_takes_over_from(go_away: impl Fn(&Redis)) {
    let sentinel = Sentinel::start().unwrap();
    let gate = Gate::open(&sentinel.url()).await.unwrap();
    let (store, coupon) = (gate.store(), open_coupon(&**gate.store(), 10).await);
    let master = sentinel.master().unwrap();
    // What is not replicated yet may be lost, and this is not about that.
    let is_replicated =
        async || master.command(&["WAIT", "2", "100"]).is_ok_and(|reply| reply == Reply::Int(2));
    assert!(eventually_async(SWITCH_OVER, is_replicated).await, "the replicas do not follow");
    go_away(master);
    let mut last_answer = None;
    let alice_gets_one = async || {
        let answer = issue(&**store, &coupon, "alice").await;
        let served = matches!(answer, Ok(Issue::Issued { .. } | Issue::AlreadyIssued { .. }));
        last_answer = Some(answer);
        served
    };
    let served = eventually_async(SWITCH_OVER, alice_gets_one).await;
    let now = sentinel.master_port();
    assert!(served, "no master for us after {SWITCH_OVER:?} (the sentinels say {now:?}): {last_answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_dies_is_replaced() {
    another_master_takes_over_from(|master| master.kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_falls_silent_is_replaced() {
    another_master_takes_over_from(|master| master.pause().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_on_when_a_master_dies_and_when_all_come_back() {
    let cluster = Cluster::start().unwrap();
    let gate = Gate::open(&cluster.url()).await.unwrap();
    let (store, coupon) = (gate.store(), open_coupon(&**gate.store(), 10).await);
    let alice_gets_one = async || issue(&**store, &coupon, "alice").await.is_ok();
    assert!(alice_gets_one().await);

    let partition = lockgate::key::Keyspace::new("lg", 64).unwrap().partition_of(coupon.home());
    cluster.master_of(&format!("{{{partition}}}")).unwrap().kill();
    assert!(eventually_async(SWITCH_OVER, alice_gets_one).await, "no new master after {SWITCH_OVER:?}");

    for node in cluster.nodes() {
        node.kill();
    }
    assert!(issue(&**store, &coupon, "bob").await.is_err());
    for node in cluster.nodes() {
        node.restart().unwrap();
    }
    // They have no memory of their own, but this process has: what it has seen is not taken for new.
    let new = Campaign::new(CampaignKind::Coupon, Name::new("coupon", "new").unwrap());
    let opens_again = async || {
        let terms = Terms::new(1).unwrap();
        // The second, when the first came too late to be heard.
        let opened = store.campaign_open(&Sending::once(), &new, &terms).await;
        matches!(opened, Ok(CampaignOpen::Created(_) | CampaignOpen::Changed(_)))
    };
    assert!(eventually_async(SWITCH_OVER, opens_again).await, "not back after {SWITCH_OVER:?}");
    assert!(matches!(store.campaign_read(&coupon).await, Err(StoreError::Recovering)));
}
