//! Crowds on every store, on good and on bad days, judged by somebody who does not know how the store works.
//!
//! Every task writes down what it asked and what it was told; [`check`] reads it afterwards. The last test plants
//! a bug into a store and sees the judge find it.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::store::memory::MemoryStore;
use lockgate::store::{
    Acquire, Attempt, Campaign, CampaignKind, Fence, Issue, IssueWish, Lease, Release, Renew, Renewal,
    Sending, Store, Terms, Token,
};
use lockgate::testing::breakable::{Break, BreakableStore};
use lockgate::testing::history::{self, Bounds, Judged, Pending, Recorder, Verdict, Violation, check};
use lockgate::testing::proxy::FaultProxy;
use lockgate::testing::services::{Persistence, Redis};
use tokio::task::JoinSet;

const TASKS: u64 = 8;
const ROUNDS: u64 = 40;
const STOCK: u64 = 100;

/// A crowd on a store, and what it wrote down.
#[derive(Clone)]
struct Crowd {
    store: Arc<dyn Store>,
    recorder: Arc<Recorder>,
}

impl Crowd {
    fn on(store: Arc<dyn Store>) -> Self {
        Self { store, recorder: Arc::new(Recorder::in_memory("crowd", Clock::system())) }
    }

    /// Locks and coupons at once, from all tasks; then the verdict.
    async fn run(&self) -> Verdict {
        let coupon = self.open_coupon().await;
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (crowd, coupon) = (self.clone(), coupon.clone());
            tasks.spawn(async move {
                for round in 0..ROUNDS {
                    crowd.take_the_lock(round).await;
                    crowd.want_a_coupon(&coupon, &format!("user-{}", (task * ROUNDS + round) % 150)).await;
                }
            });
        }
        tasks.join_all().await;
        check(&self.recorder.history(), &Bounds::default())
    }

    /// Opens the coupon, again if the answer got lost.
    async fn open_coupon(&self) -> Campaign {
        let coupon = the_coupon();
        for _ in 0..100 {
            let call = history::Open { campaign: "c".into(), quantity: STOCK, per_user: 1 };
            let pending = self.recorder.invoke(call).unwrap();
            let answer =
                self.store.campaign_open(&Sending::once(), &coupon, &Terms::new(STOCK).unwrap()).await;
            if write_down(pending, answer, |_| history::OpenAnswer::Opened).is_ok() {
                return coupon;
            }
        }
        panic!("the coupon could not be opened")
    }

    /// Takes a lock with a lease that sometimes runs out while it is held, and gives it back, or forgets to.
    async fn take_the_lock(&self, round: u64) {
        let (mutex, token) = (Name::new("mutex", "m").unwrap(), Token::random());
        let lease_ms = [3, 6, 40][usize::try_from(round % 3).unwrap()];
        let lease = Lease::new(Duration::from_millis(lease_ms)).unwrap();
        let Some(fence) = self.acquire(&mutex, &token, lease).await else { return };
        if round.is_multiple_of(2) {
            self.renew(&mutex, &token, fence, lease).await;
        }
        let forgets = lease_ms < 10 && round.is_multiple_of(5);
        if !forgets {
            self.release(&mutex, &token, fence).await;
        }
    }

    /// Asks until it is granted, or until asking often enough has shown that the others are too many.
    async fn acquire(&self, mutex: &Name, token: &Token, lease: Lease) -> Option<Fence> {
        let lease_ms = u64::try_from(lease.length().as_millis()).unwrap();
        for _ in 0..100 {
            let call = history::Acquire { lock: mutex.to_string(), lease_ms };
            let pending = self.recorder.invoke(call).unwrap();
            let answer = self.store.mutex_acquire(mutex, &Attempt::new(*token, lease)).await;
            let answer = write_down(pending, answer, |answer| match answer {
                Acquire::Granted { fences, .. } => {
                    history::AcquireAnswer::Acquired { fence: fences.first.get() }
                }
                Acquire::Taken { .. } | Acquire::Queued { .. } | Acquire::Never { .. } => {
                    history::AcquireAnswer::Denied
                }
            });
            match answer {
                Ok(Acquire::Granted { fences, .. }) => return Some(fences.first),
                Ok(Acquire::Taken { lease_left }) => {
                    tokio::time::sleep(lease_left.min(Duration::from_millis(1))).await;
                }
                Ok(Acquire::Queued { .. } | Acquire::Never { .. }) | Err(_) => return None,
            }
        }
        None
    }

    async fn renew(&self, mutex: &Name, token: &Token, fence: Fence, lease: Lease) {
        let lease_ms = u64::try_from(lease.length().as_millis()).unwrap();
        let call = history::Renew { lock: mutex.to_string(), fence: fence.get(), lease_ms };
        let pending = self.recorder.invoke(call).unwrap();
        let renewal = [Renewal { mutex: mutex.clone(), token: *token, lease, fences: 0 }];
        let answer = self.store.mutex_renew(&renewal).await;
        let _ = write_down(pending, answer, |answers| match answers[0] {
            Renew::Renewed { .. } => history::RenewAnswer::Renewed,
            Renew::NotHeld => history::RenewAnswer::Lost,
        });
    }

    async fn release(&self, mutex: &Name, token: &Token, fence: Fence) {
        let pending =
            self.recorder.invoke(history::Release { lock: mutex.to_string(), fence: fence.get() }).unwrap();
        let answer = self.store.mutex_release(mutex, token).await;
        let _ = write_down(pending, answer, |answer| match answer {
            Release::Released => history::ReleaseAnswer::Released,
            Release::Left | Release::NotHeld => history::ReleaseAnswer::NotHeld,
        });
    }

    async fn want_a_coupon(&self, coupon: &Campaign, user: &str) {
        let call = history::Issue { campaign: "c".into(), user: user.to_owned(), quantity: 1 };
        let pending = self.recorder.invoke(call).unwrap();
        let wishes =
            [IssueWish { coupon: coupon.clone(), user: Name::new("user", user).unwrap(), pass: None }];
        let answer = self.store.coupon_issue(&Sending::once(), &wishes).await;
        let _ = write_down(pending, answer, |answers| match answers[0] {
            Issue::Issued { seq, .. } => history::IssueAnswer::Issued { seq },
            Issue::AlreadyIssued { seq } => history::IssueAnswer::Already { seq },
            _ => history::IssueAnswer::Denied,
        });
    }
}

fn the_coupon() -> Campaign {
    Campaign::new(CampaignKind::Coupon, Name::new("coupon", "c").unwrap())
}

/// Writes down what the store said, in the judge's words, and hands it on.
fn write_down<C: history::Operation, T>(
    pending: Pending<C>,
    answer: Result<T, StoreError>,
    in_other_words: impl FnOnce(&T) -> C::Answer,
) -> Result<T, StoreError> {
    match &answer {
        Ok(said) => pending.ok(in_other_words(said)),
        Err(StoreError::UnknownOutcome(_)) => pending.unknown(),
        Err(_) => pending.fail(),
    }
    .unwrap();
    answer
}

#[track_caller]
fn expect_truth(verdict: Verdict) -> Judged {
    let judged = verdict.into_result().unwrap_or_else(|why| panic!("{why}"));
    assert!(judged.lock_grants >= 20 && judged.trusted_leases >= 20, "{judged:?}");
    assert!(judged.stock_grants >= STOCK * 9 / 10, "{judged:?}");
    judged
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_tells_the_truth() {
    expect_truth(Crowd::on(Arc::new(MemoryStore::new(Clock::system()))).run().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_tells_the_truth() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let judged = expect_truth(Crowd::on(Arc::clone(gate.store())).run().await);
    assert_eq!(judged.unknown, 0, "{judged:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_tells_the_truth_when_replies_get_lost_and_connections_end() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let proxy = FaultProxy::start(([127, 0, 0, 1], redis.port()).into()).await.unwrap();
    let mut config = Config::default();
    config.redis.retry_interval = Duration::from_millis(2);
    config.redis.retry_attempts = 2;
    let gate = Gate::open_with(&format!("redis://{}", proxy.addr()), &config).await.unwrap();
    let crowd = Crowd::on(Arc::clone(gate.store()));
    let running = tokio::spawn(async move { crowd.run().await });
    let (mut faults, mut pace) = (0, tokio::time::interval(Duration::from_millis(15)));
    while !running.is_finished() {
        pace.tick().await;
        if faults % 3 == 2 {
            proxy.reset();
        } else {
            proxy.lose_next_reply();
        }
        faults += 1;
    }
    expect_truth(running.await.unwrap());
    assert!(faults >= 10 && proxy.replies_lost() >= 5, "{faults} faults, {} lost", proxy.replies_lost());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_loses_answers_is_judged_by_what_is_certain() {
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let crowd = Crowd::on(Arc::clone(&store) as Arc<dyn Store>);
    let coupon = crowd.open_coupon().await;
    for round in 0..20 {
        store.break_next(if round % 2 == 0 { Break::LoseAnswer } else { Break::Refuse });
        crowd.want_a_coupon(&coupon, &format!("early-{round}")).await;
    }
    let judged = expect_truth(crowd.run().await);
    assert_eq!(judged.unknown, 10, "{judged:?}");
}

/// Two stores that take themselves for one: what happens when a fail-over forgets.
#[tokio::test]
async fn a_store_with_two_minds_is_found_out() {
    let before = Crowd::on(Arc::new(MemoryStore::new(Clock::system())));
    let after =
        Crowd { store: Arc::new(MemoryStore::new(Clock::system())), recorder: Arc::clone(&before.recorder) };
    let (mutex, a_minute) = (Name::new("mutex", "m").unwrap(), Lease::new(Duration::from_secs(60)).unwrap());
    for (crowd, user) in [(&before, "alice"), (&after, "bob")] {
        let coupon = crowd.open_coupon().await;
        crowd.want_a_coupon(&coupon, user).await;
        assert!(crowd.acquire(&mutex, &Token::random(), a_minute).await.is_some());
    }
    after.want_a_coupon(&the_coupon(), "alice").await;

    let verdict = check(&before.recorder.history(), &Bounds::default());
    let found = |kind: fn(&Violation) -> bool| verdict.violations.iter().any(kind);
    assert!(found(|violation| matches!(violation, Violation::TwoHolders { .. })), "{verdict}");
    assert!(found(|violation| matches!(violation, Violation::SeqGivenTwice { .. })), "{verdict}");
    assert!(found(|violation| matches!(violation, Violation::UserOverLimit { .. })), "{verdict}");
}
