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
async fn a_pool_leaves_redis_a_minute_or_two_after_its_last_lease_and_not_before() {
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
    within(1_050_000..=1_120_001, state);
    within(1_050_000..=1_120_001, holders);
    assert_eq!(queue, -2);
    store.permit_acquire(&pool, &waiting, share).await.unwrap();
    for kept in semaphore_kept(&redis) {
        within(86_300_000..=86_460_001, kept);
    }
    store.permit_release(&pool, &waiting.token).await.unwrap();
    let renewal = PermitRenewal { pool: pool.clone(), token: long, lease: seconds(100), fences: 0 };
    store.permit_renew(&[renewal]).await.unwrap();
    let [state, holders, queue] = semaphore_kept(&redis);
    within(150_000..=220_001, state);
    within(150_000..=220_001, holders);
    assert_eq!(queue, -2);
    store.permit_release(&pool, &long).await.unwrap();
    within(60_001..=130_001, semaphore_kept(&redis)[0]);
    store.permit_release(&pool, &short).await.unwrap();
    let [state, others @ ..] = semaphore_kept(&redis);
    within(50_000..=120_001, state);
    assert_eq!(others, [-2; 2], "what nobody needs is still there");

    // The same again, when there has been one and the longer lease comes later.
    let tokens = [Token::random(), Token::random()];
    store.permit_acquire(&pool, &Attempt::new(tokens[0], seconds(10)), share).await.unwrap();
    let [state, holders, _] = semaphore_kept(&redis);
    within(60_001..=130_001, state);
    within(60_001..=130_001, holders);
    store.permit_acquire(&pool, &Attempt::new(tokens[1], seconds(1_000)), share).await.unwrap();
    let [state, holders, _] = semaphore_kept(&redis);
    within(1_050_000..=1_120_001, state);
    within(1_050_000..=1_120_001, holders);
    store.permit_break(&pool, Some(&tokens[1])).await.unwrap();
    let [state, holders, _] = semaphore_kept(&redis);
    within(60_001..=130_001, state);
    within(60_001..=130_001, holders);
    // The queue is there all the time, as long as somebody waits.
    store.permit_acquire(&pool, &Attempt::new(tokens[1], seconds(10)), share).await.unwrap();
    let both = Attempt { token: Token::random(), ..waiting };
    store.permit_acquire(&pool, &both, Share { permits: 2, of: 2 }).await.unwrap();
    store.permit_release(&pool, &tokens[0]).await.unwrap();
    for kept in semaphore_kept(&redis) {
        within(86_300_000..=86_460_001, kept);
    }
    // What it waits for comes, and it is not there.
    store.permit_release(&pool, &tokens[1]).await.unwrap();
    let [state, others @ ..] = semaphore_kept(&redis);
    within(50_000..=120_001, state);
    assert_eq!(others, [-2; 2], "what nobody needs is still there");

    // Nor do holders stay who come when the leases of all others have ended.
    let brief = Lease::new(Duration::from_millis(100)).unwrap();
    for token in [Token::random(), Token::random()] {
        store.permit_acquire(&pool, &Attempt::new(token, brief), share).await.unwrap();
        within(60_000..=130_001, semaphore_kept(&redis)[1]);
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    // Nor a queue from which the only one goes in the call by which the next comes.
    let tokens = [(); 2].map(|()| Token::random());
    store.permit_acquire(&pool, &Attempt::new(tokens[0], brief), share).await.unwrap();
    store.permit_acquire(&pool, &Attempt::new(tokens[1], seconds(10)), share).await.unwrap();
    store.permit_acquire(&pool, &Attempt { token: Token::random(), ..waiting }, share).await.unwrap();
    tokio::time::sleep(Duration::from_millis(120)).await;
    let both = Attempt { token: Token::random(), ..waiting };
    let queued = store.permit_acquire(&pool, &both, Share { permits: 2, of: 2 }).await.unwrap();
    assert!(matches!(queued, Acquire::Queued { ahead: 0, .. }), "{queued:?}");
    for kept in semaphore_kept(&redis) {
        within(86_300_000..=86_460_001, kept);
    }

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
    let round = Token::random();
    store.latch_set(&name("l"), 2, &round).await.unwrap();
    assert!(day.contains(&kept(&redis, "lg:{0}:latch:l")));
    redis.command(&["PEXPIRE", "lg:{0}:latch:l", "1000"]).unwrap();
    let token = Token::random();
    store.latch_count_down(&name("l"), &token, &round).await.unwrap();
    assert!(day.contains(&kept(&redis, "lg:{0}:latch:l")));
    redis.command(&["PEXPIRE", "lg:{0}:latch:l", "1000"]).unwrap();
    store.latch_count_down(&name("l"), &token, &round).await.unwrap();
    assert!(!day.contains(&kept(&redis, "lg:{0}:latch:l")), "nothing has changed");
}
