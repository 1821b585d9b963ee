//! What those who wait for a lock may rely on when the store cannot be heard, or cannot be reached.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::lock::{LockError, Mutex, MutexGuard, Traces, Waiting};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{MutexStatus, Store};
use lockgate::testing::breakable::{Break, BreakableStore, Deafness};
use lockgate::testing::eventually_async;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

/// How often somebody asks who waits and hears nothing: when it knows that, and when it does not. A millisecond more, so
/// that it has to be over.
const ASKS_AGAIN: [(Deafness, Duration); 2] =
    [(Deafness::Known, Duration::from_millis(251)), (Deafness::Unknown, Duration::from_millis(5_001))];

type Recipe = fn(Mutex) -> Mutex;
type Waiter = JoinHandle<Result<MutexGuard, LockError>>;

const WITH_COHORT: Recipe = |mutex| mutex;
const WITHOUT_COHORT: Recipe = |mutex| mutex.cohort(None);
const BY_NOTIFY: Recipe = |mutex| mutex.waiting(Waiting::Notify);

const BY_SPINNING: Recipe = |mutex| {
    let (first, longest) = (Duration::from_millis(1), Duration::from_millis(5));
    mutex.waiting(Waiting::Spin { first, longest })
};

/// Two gates, each like a process of its own, on a store that breaks, by a clock that moves only when told.
struct Place {
    clock: Clock,
    /// The store inside, that always answers.
    inside: Arc<MemoryStore>,
    store: Arc<BreakableStore>,
    deafness: Option<Deafness>,
    holding: Gate,
    waiting: Gate,
}

impl Place {
    fn new() -> Self {
        Self::deaf(None)
    }

    fn deaf(deafness: Option<Deafness>) -> Self {
        let clock = Clock::fake();
        let mut config = Config::default();
        config.clock = clock.clone();
        let inside = Arc::new(MemoryStore::new(clock.clone()));
        let store = Arc::new(BreakableStore::new(Arc::clone(&inside) as Arc<dyn Store>));
        if let Some(how) = deafness {
            store.deafen(how);
        }
        let gate = || Gate::on_with(Arc::clone(&store) as Arc<dyn Store>, &config);
        Self { holding: gate(), waiting: gate(), clock, inside, store, deafness }
    }

    async fn held(&self) -> MutexGuard {
        self.holding.mutex("m").unwrap().lock().await.unwrap()
    }

    /// Starts to wait in a task of its own, and returns when it has asked and been told to wait.
    async fn waits(&self, recipe: Recipe) -> Waiter {
        let before = self.store.calls();
        let mutex = recipe(self.waiting.mutex("m").unwrap());
        let waiter = tokio::spawn(async move { mutex.lock().await });
        self.calls_beyond(before).await;
        let has_its_place =
            async || self.status().await.waiting == 1 || self.waiting.lock_traces().watching == 1;
        if self.deafness != Some(Deafness::Known) {
            assert!(eventually_async(SOON, has_its_place).await);
        }
        assert!(!waiter.is_finished(), "it did not have to wait");
        waiter
    }

    /// Returns when more calls than these have met the store.
    async fn calls_beyond(&self, before: u64) {
        assert!(eventually_async(SOON, async || self.store.calls() > before).await, "nobody asks");
    }

    async fn status(&self) -> MutexStatus {
        let name = self.waiting.mutex("m").unwrap().name().clone();
        self.inside.mutex_read(&name).await.unwrap()
    }

    async fn leaves_nothing_behind(&self) {
        for gate in [&self.holding, &self.waiting] {
            let is_clean = eventually_async(SOON, async || gate.lock_traces() == Traces::default()).await;
            assert!(is_clean, "{:?}", gate.lock_traces());
        }
        let status = self.status().await;
        assert_eq!((status.holder, status.waiting), (None, 0));
    }
}

async fn gets_it(waiter: Waiter) -> MutexGuard {
    timeout(SOON, waiter).await.expect("it waits for ever").unwrap().unwrap()
}

#[tokio::test]
async fn who_hears_nothing_gets_the_lock_by_asking() {
    for (deafness, asks_again) in ASKS_AGAIN {
        for recipe in [WITH_COHORT, WITHOUT_COHORT, BY_NOTIFY] {
            let place = Place::deaf(Some(deafness));
            let guard = place.held().await;
            let fence = guard.fence();
            let waiter = place.waits(recipe).await;
            guard.release().await.unwrap();
            tokio::task::yield_now().await;
            if deafness == Deafness::Unknown {
                assert!(!waiter.is_finished(), "it has heard something");
            }
            // The lease of the holder is 30 s: nobody waits for that.
            place.clock.advance(asks_again);
            let guard = gets_it(waiter).await;
            assert!(guard.fence() > fence);
            assert_eq!(guard.check(), Ok(()));
            guard.release().await.unwrap();
            place.leaves_nothing_behind().await;
        }
    }
}

#[tokio::test]
async fn who_knows_that_it_hears_nothing_does_not_queue() {
    for recipe in [WITH_COHORT, WITHOUT_COHORT] {
        let place = Place::deaf(Some(Deafness::Known));
        let guard = place.held().await;
        let waiter = place.waits(recipe).await;
        // The second time it asks, it has waited to hear, in vain.
        place.calls_beyond(place.store.calls()).await;
        assert_eq!(place.status().await.waiting, 0, "others would wait for it when its turn comes");
        drop(guard);
        drop(gets_it(waiter).await);
        place.leaves_nothing_behind().await;
    }
}

#[tokio::test]
async fn who_waits_already_sees_an_outage_through() {
    for how in [Break::Refuse, Break::Reject, Break::LoseAnswer] {
        for recipe in [WITH_COHORT, WITHOUT_COHORT] {
            let place = Place::new();
            let guard = place.held().await;
            let waiters = [place.waits(recipe).await, in_line(&place, recipe).await];
            place.store.break_all(how);
            // Twice they ask and get no answer: every five seconds, and then soon again.
            for pause in [5_001, 251] {
                let before = place.store.calls();
                place.clock.advance(Duration::from_millis(pause));
                place.calls_beyond(before).await;
            }
            assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "{how:?} ends the wait");
            place.store.heal();
            assert_eq!(guard.check(), Ok(()));
            guard.release().await.unwrap();
            for waiter in waiters {
                drop(gets_it(waiter).await);
            }
            place.leaves_nothing_behind().await;
        }
    }
}

#[tokio::test]
async fn who_waits_by_trying_sees_an_outage_through_too() {
    for recipe in [BY_NOTIFY, BY_SPINNING] {
        let place = Place::new();
        let guard = place.held().await;
        let before = place.store.calls();
        let mutex = recipe(place.waiting.mutex("m").unwrap());
        let waiter = tokio::spawn(async move { mutex.lock().await });
        place.calls_beyond(before).await;
        place.store.break_all(Break::Refuse);
        let before = place.store.calls();
        place.clock.advance(Duration::from_millis(5_001));
        place.calls_beyond(before).await;
        place.store.heal();
        guard.release().await.unwrap();
        place.clock.advance(Duration::from_millis(251));
        drop(gets_it(waiter).await);
    }
}

/// A second waiter of the same gate, which need not ask the store itself.
async fn in_line(place: &Place, recipe: Recipe) -> Waiter {
    let mutex = recipe(place.waiting.mutex("m").unwrap());
    let waiter = tokio::spawn(async move { mutex.lock().await });
    let has_its_place =
        async || place.waiting.lock_traces().standing == 1 || place.status().await.waiting == 2;
    assert!(eventually_async(SOON, has_its_place).await);
    waiter
}

#[tokio::test]
async fn a_lock_that_is_given_back_during_an_outage_is_the_next_waiters_after_it() {
    for recipe in [WITH_COHORT, WITHOUT_COHORT, BY_NOTIFY] {
        let place = Place::new();
        let guard = place.held().await;
        let waiter = place.waits(recipe).await;
        place.store.break_all(Break::Refuse);
        let before = place.store.calls() + 1;
        assert!(matches!(guard.release().await, Err(LockError::Store(_))));
        // It is tried again in the background, and in vain.
        place.calls_beyond(before).await;
        assert!(!waiter.is_finished());
        place.store.heal();
        // The clock stands still: it is not the end of the lease that brings it.
        drop(gets_it(waiter).await);
        place.leaves_nothing_behind().await;
    }
}
