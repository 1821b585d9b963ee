//! What locks leave in Redis, and for how long.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::key::Name;
use lockgate::store::{
    Acquire, Attempt, IfTaken, Lease, PermitRenewal, Pool, PoolKind, Release, Renewal, Share, Token,
};
use lockgate::testing::services::{Persistence, Redis, Reply};

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// How long the keys of the semaphore `s` are still kept, in milliseconds: state, holders and queue; -2: there is none.
fn semaphore_kept(redis: &Redis) -> [i64; 3] {
    ["semaphore", "semaphore-holders", "semaphore-queue"]
        .map(|kind| kept(redis, &format!("lg:{{0}}:{kind}:s")))
}

fn kept(redis: &Redis, key: &str) -> i64 {
    match redis.command(&["PTTL", key]).unwrap() {
        Reply::Int(millis) => millis,
        other => panic!("{other:?}"),
    }
}

fn seconds(seconds: u64) -> Lease {
    Lease::new(Duration::from_secs(seconds)).unwrap()
}

/// A lock that nobody gives back must not stay in Redis for ever, and one that was given back must be remembered.
#[tokio::test(flavor = "multi_thread")]
async fn a_mutex_leaves_redis_with_its_lease_or_a_minute_after_its_release() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let (mutex, token) = (name("mutex"), Token::random());
    let renewal = [Renewal { mutex: mutex.clone(), token, lease: seconds(60), fences: 1 }];
    let millis_left = |key: &str| kept(&redis, key);
    store.mutex_acquire(&mutex, &Attempt::new(token, seconds(120))).await.unwrap();
    assert!((60_001..=120_000).contains(&millis_left("lg:{0}:mutex:mutex")));
    store.mutex_renew(&renewal).await.unwrap();
    assert!((1..=60_000).contains(&millis_left("lg:{0}:mutex:mutex")));
    let waiting = Attempt { if_taken: IfTaken::Queue, ..Attempt::new(Token::random(), seconds(60)) };
    store.mutex_acquire(&mutex, &waiting).await.unwrap();
    assert!((60_001..=86_400_000).contains(&millis_left("lg:{0}:mutex-queue:mutex")));
    store.mutex_release(&mutex, &token).await.unwrap();
    assert!((1..=60_000).contains(&millis_left("lg:{0}:mutex:mutex")));
    assert_eq!(millis_left("lg:{0}:mutex-queue:mutex"), -2, "a queue without waiters is still there");
}

/// Too early would be too many permits; too late would be a heap of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_leaves_redis_a_minute_after_its_last_lease_and_not_before() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let pool = Pool { kind: PoolKind::Semaphore, name: name("s") };
    let (long, short, share) = (Token::random(), Token::random(), Share { permits: 1, of: 2 });
    let waiting = Attempt { if_taken: IfTaken::Queue, ..Attempt::new(Token::random(), seconds(1)) };
    let within = |range: std::ops::RangeInclusive<i64>, kept: i64| assert!(range.contains(&kept), "{kept}");

    let never = Attempt::new(long, seconds(1));
    store.permit_acquire(&pool, &never, Share { permits: 3, of: 2 }).await.unwrap();
    store.permit_release(&pool, &long).await.unwrap();
    assert_eq!(semaphore_kept(&redis), [-2; 3], "a call that gave nothing left something");

    store.permit_acquire(&pool, &Attempt::new(long, seconds(1_000)), share).await.unwrap();
    store.permit_acquire(&pool, &Attempt::new(short, seconds(10)), share).await.unwrap();
    let [state, holders, queue] = semaphore_kept(&redis);
    within(1_050_000..=1_060_001, state);
    within(1_050_000..=1_060_001, holders);
    assert_eq!(queue, -2);
    store.permit_acquire(&pool, &waiting, share).await.unwrap();
    for kept in semaphore_kept(&redis) {
        within(86_300_000..=86_400_001, kept);
    }
    store.permit_release(&pool, &waiting.token).await.unwrap();
    let renewal = PermitRenewal { pool: pool.clone(), token: long, lease: seconds(100), fences: 0 };
    store.permit_renew(&[renewal]).await.unwrap();
    let [state, holders, queue] = semaphore_kept(&redis);
    within(150_000..=160_001, state);
    within(150_000..=160_001, holders);
    assert_eq!(queue, -2);
    store.permit_release(&pool, &long).await.unwrap();
    within(60_001..=70_001, semaphore_kept(&redis)[0]);
    store.permit_release(&pool, &short).await.unwrap();
    let [state, others @ ..] = semaphore_kept(&redis);
    within(1..=60_001, state);
    assert_eq!(others, [-2; 2], "what nobody needs is still there");

    store.permit_resize(&pool, Some(3)).await.unwrap();
    assert_eq!(kept(&redis, "lg:{0}:semaphore-size:s"), -1, "what was set will be forgotten");
    store.permit_resize(&pool, None).await.unwrap();
    assert_eq!(kept(&redis, "lg:{0}:semaphore-size:s"), -2);
}

/// An operator who knows no better way makes a semaphore free by deleting a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_which_a_part_was_deleted_by_hand_begins_anew() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let pool = Pool { kind: PoolKind::Semaphore, name: name("s") };
    let (token, share) = (Token::random(), Share { permits: 1, of: 1 });
    store.permit_acquire(&pool, &Attempt::new(token, seconds(60)), share).await.unwrap();
    let waiting = Attempt { if_taken: IfTaken::Queue, ..Attempt::new(Token::random(), seconds(60)) };
    store.permit_acquire(&pool, &waiting, share).await.unwrap();
    redis.command(&["DEL", "lg:{0}:semaphore:s"]).unwrap();
    assert_eq!(store.permit_release(&pool, &token).await.unwrap(), Release::NotHeld);
    let again =
        store.permit_acquire(&pool, &Attempt::new(Token::random(), seconds(60)), share).await.unwrap();
    assert!(matches!(again, Acquire::Granted { .. }), "{again:?}");
    let status = store.permit_read(&pool).await.unwrap();
    assert_eq!((status.taken, status.holding, status.waiting), (1, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_latch_leaves_redis_a_day_after_its_last_change() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let day = 86_300_000..=86_400_000;
    store.latch_set(&name("l"), 2).await.unwrap();
    assert!(day.contains(&kept(&redis, "lg:{0}:latch:l")));
    redis.command(&["PEXPIRE", "lg:{0}:latch:l", "1000"]).unwrap();
    let token = Token::random();
    store.latch_count_down(&name("l"), &token).await.unwrap();
    assert!(day.contains(&kept(&redis, "lg:{0}:latch:l")));
    redis.command(&["PEXPIRE", "lg:{0}:latch:l", "1000"]).unwrap();
    store.latch_count_down(&name("l"), &token).await.unwrap();
    assert!(!day.contains(&kept(&redis, "lg:{0}:latch:l")), "nothing has changed");
}
