//! What users of a mutex rely on, on both stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{Cohort, LockError, Mutex, MutexGuard, Owner, Released, Traces, Waiting};
use lockgate::store::FENCE_BLOCK;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(10);

/// A store, and several gates on it, each like a process of its own.
pub(super) struct Place {
    _redis: Option<Redis>,
    pub(super) gates: Vec<Gate>,
}

pub(super) async fn embedded(gates: usize) -> Place {
    let first = Gate::open("memory").await.unwrap();
    let others = (1..gates).map(|_| Gate::on(Arc::clone(first.store())));
    Place { _redis: None, gates: std::iter::once(first.clone()).chain(others).collect() }
}

pub(super) async fn on_redis(gates: usize) -> Place {
    let redis = Redis::start(Persistence::Off).unwrap();
    let mut opened = Vec::new();
    for _ in 0..gates {
        opened.push(Gate::open(&redis.url()).await.unwrap());
    }
    Place { _redis: Some(redis), gates: opened }
}

impl Place {
    fn mutex(&self, gate: usize) -> Mutex {
        self.gates[gate].mutex("m").unwrap()
    }

    /// How many wait for the mutex and have their place: in the store's queue, behind others of their process, or among
    /// those who want to hear when it is free.
    async fn waiting(&self) -> usize {
        let in_the_store = usize::try_from(self.mutex(0).status().await.unwrap().waiting).unwrap();
        let traces = self.gates.iter().map(Gate::lock_traces);
        in_the_store + traces.map(|traces| traces.standing + traces.watching).sum::<usize>()
    }

    pub(super) async fn leaves_nothing_behind(&self) {
        for gate in &self.gates {
            let is_clean = eventually_async(SOON, async || gate.lock_traces() == Traces::default()).await;
            assert!(is_clean, "{:?}", gate.lock_traces());
        }
        let status = self.mutex(0).status().await.unwrap();
        assert_eq!((status.holder, status.waiting), (None, 0));
    }
}

/// The same test on both stores.
macro_rules! on_both_stores {
    ($($(#[$attribute:meta])* async fn $name:ident($place:ident: $gates:literal) $body:block)+) => {
        mod on_memory {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(super::embedded($gates).await).await;
            })+
        }
        mod on_redis {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(super::on_redis($gates).await).await;
            })+
        }
        $(async fn $name($place: Place) $body)+
    };
}
pub(super) use on_both_stores;

/// A crowd on one name, from all gates; a counter that only a lock protects.
async fn crowd(place: &Place, tasks: u64, rounds: u64, recipe: fn(Mutex) -> Mutex) {
    let counter = Arc::new(AtomicU64::new(0));
    let mut crowd = JoinSet::new();
    for task in 0..tasks {
        let gate = usize::try_from(task).unwrap() % place.gates.len();
        let (mutex, counter) = (recipe(place.mutex(gate)), Arc::clone(&counter));
        crowd.spawn(async move {
            let mut last = 0;
            for round in 0..rounds {
                let guard = mutex.lock().await.unwrap();
                assert!(guard.fence().get() > last);
                last = guard.fence().get();
                // Read, wait, write: whoever comes in between makes it wrong.
                let seen = counter.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                counter.store(seen + 1, Ordering::SeqCst);
                if round % 3 == 0 {
                    drop(guard);
                } else {
                    assert_eq!(guard.release().await.unwrap(), Released::Released);
                }
            }
        });
    }
    timeout(Duration::from_secs(60), crowd.join_all()).await.expect("somebody waits for ever");
    assert_eq!(counter.load(Ordering::SeqCst), tasks * rounds);
    place.leaves_nothing_behind().await;
}

/// A lease that is waited for; long enough for a busy machine.
const SHORT: Duration = Duration::from_millis(400);

fn short(mutex: Mutex) -> Mutex {
    mutex.lease(SHORT).unwrap()
}

type Waiter = tokio::task::JoinHandle<Result<MutexGuard, LockError>>;

/// Starts to wait in a task of its own, and returns when it has its place.
async fn waits(place: &Place, mutex: Mutex) -> Waiter {
    let before = place.waiting().await;
    let waiter = tokio::spawn(async move { mutex.lock().await });
    assert!(eventually_async(SOON, async || place.waiting().await > before).await, "it has no place");
    assert!(!waiter.is_finished(), "it did not have to wait");
    waiter
}

/// Starts to spin in a task of its own, and returns when it has begun: who spins has no place anywhere.
async fn spins(mutex: Mutex) -> Waiter {
    let (begins, has_begun) = oneshot::channel();
    let waiter = tokio::spawn(async move {
        let (mutex, mut begins) = (mutex.waiting(Waiting::spin()), Some(begins));
        let mut lock = std::pin::pin!(mutex.lock());
        std::future::poll_fn(|context| {
            let outcome = lock.as_mut().poll(context);
            if outcome.is_pending()
                && let Some(begins) = begins.take()
            {
                begins.send(()).unwrap();
            }
            outcome
        })
        .await
    });
    has_begun.await.expect("it did not have to wait");
    waiter
}

/// Takes the locks in the order of the waiters: each must be served before those behind it.
async fn in_their_order(waiters: Vec<Waiter>) {
    let mut last = 0;
    for (place, waiter) in waiters.into_iter().enumerate() {
        let guard = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
        assert!(guard.fence().get() > last, "waiter {place} came too late");
        last = guard.fence().get();
        drop(guard);
    }
}

on_both_stores! {
    async fn a_lock_that_is_held_is_not_to_be_had(place: 2) {
        let guard = place.mutex(0).lock().await.unwrap();
        for gate in [0, 1] {
            assert!(place.mutex(gate).try_lock().await.unwrap().is_none());
            let refused = place.mutex(gate).wait(Duration::from_millis(100)).lock().await;
            assert!(matches!(refused, Err(LockError::TimedOut { .. })), "{refused:?}");
        }
        // Those who lost patience leave the queue in the background.
        let nobody_waits = async || place.mutex(1).status().await.unwrap().waiting == 0;
        assert!(eventually_async(SOON, nobody_waits).await);
        let status = place.mutex(1).status().await.unwrap();
        assert!(status.fence >= guard.fence());
        assert!(status.holder.is_some_and(|holder| holder.lease_left > Duration::from_secs(20)), "{status:?}");
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        let next = place.mutex(1).try_lock().await.unwrap().expect("a released lock is free");
        drop(next);
        place.leaves_nothing_behind().await;
    }

    async fn a_dropped_guard_lets_the_next_one_in(place: 2) {
        for other in [0, 1] {
            let guard = place.mutex(0).lock().await.unwrap();
            let fence = guard.fence();
            let waiter = waits(&place, place.mutex(other)).await;
            drop(guard);
            let next = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
            assert!(next.fence() > fence);
        }
        place.leaves_nothing_behind().await;
    }

    async fn who_drops_a_guard_and_tries_again_does_not_meet_itself(place: 1) {
        for _ in 0..50 {
            let guard = place.mutex(0).try_lock().await.unwrap();
            drop(guard.expect("only its own guard can be in the way"));
        }
        place.leaves_nothing_behind().await;
    }

    async fn the_watchdog_keeps_a_lock_beyond_its_lease(place: 2) {
        let guard = place.mutex(0).watchdog(SHORT).unwrap().lock().await.unwrap();
        sleep(SHORT * 3).await;
        assert_eq!(guard.check(), Ok(()));
        assert!(place.mutex(1).try_lock().await.unwrap().is_none());
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        place.leaves_nothing_behind().await;
    }

    async fn without_a_watchdog_a_lock_ends_with_its_lease(place: 2) {
        let guard = short(place.mutex(0)).lock().await.unwrap();
        assert_eq!(guard.check(), Ok(()));
        assert!(guard.lease_left() > SHORT / 2);
        let token = guard.cancellation_token();
        timeout(SHORT * 3, guard.lost()).await.expect("nobody said that the lock is lost");
        timeout(SHORT, token.cancelled()).await.expect("the token was not cancelled");
        assert!(guard.check().is_err());
        assert_eq!(guard.lease_left(), Duration::ZERO);
        let next = timeout(SOON, place.mutex(1).lock()).await.unwrap().unwrap();
        assert!(next.fence() > guard.fence());
        assert_eq!(guard.release().await.unwrap(), Released::WasLost);
        assert_eq!(next.check(), Ok(()), "a late release freed somebody else's lock");
        drop(next);
        place.leaves_nothing_behind().await;
    }

    async fn a_holder_that_hangs_is_left_behind_by_the_waiters_of_its_own_process(place: 1) {
        let hangs = short(place.mutex(0)).lock().await.unwrap();
        let waiter = waits(&place, short(place.mutex(0))).await;
        let next = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
        assert!(hangs.check().is_err() && next.check().is_ok());
        assert!(next.fence() > hangs.fence());
        drop((hangs, next));
        place.leaves_nothing_behind().await;
    }

    async fn work_is_stopped_when_its_lock_is_lost(place: 1) {
        let guard = short(place.mutex(0)).lock().await.unwrap();
        assert_eq!(guard.run(async { 7 }).await.unwrap(), 7);
        let stopped = timeout(SOON, guard.run(std::future::pending::<()>())).await.unwrap();
        assert_eq!(stopped.unwrap_err().name.as_str(), "m");
    }

    async fn a_lock_that_is_passed_on_under_a_claim_lasts_for_its_whole_lease(place: 2) {
        let guard = place.mutex(0).lock().await.unwrap();
        let waiter = waits(&place, place.mutex(1).lease(Duration::from_secs(4)).unwrap()).await;
        guard.release().await.unwrap();
        let guard = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
        // The claim lease is a second.
        sleep(Duration::from_secs(2)).await;
        assert_eq!(guard.check(), Ok(()));
        assert!(place.mutex(0).try_lock().await.unwrap().is_none());
    }

    async fn the_same_owner_may_enter_again_and_nobody_else(place: 2) {
        let (owner, other) = (Owner::new(), Owner::new());
        let outer = place.mutex(0).owned_by(&owner).lock().await.unwrap();
        let inner = timeout(SOON, place.mutex(0).owned_by(&owner).lock()).await.unwrap().unwrap();
        let tried = place.mutex(0).owned_by(&owner).try_lock().await.unwrap().expect("its own lock");
        assert_eq!((inner.fence(), tried.fence()), (outer.fence(), outer.fence()));
        assert!(place.mutex(0).owned_by(&other).try_lock().await.unwrap().is_none());
        assert!(place.mutex(1).owned_by(&owner).try_lock().await.unwrap().is_none(), "another process");
        assert_eq!(outer.release().await.unwrap(), Released::StillHeld);
        drop(tried);
        assert!(place.mutex(0).try_lock().await.unwrap().is_none());
        assert_eq!(inner.release().await.unwrap(), Released::Released);
        let again = place.mutex(0).owned_by(&owner).lock().await.unwrap();
        assert!(again.fence() > Default::default());
        drop(again);
        place.leaves_nothing_behind().await;
    }

    async fn waiters_of_one_process_are_served_in_their_order(place: 1) {
        let guard = place.mutex(0).lock().await.unwrap();
        let mut waiters = Vec::new();
        for _ in 0..5 {
            waiters.push(waits(&place, place.mutex(0)).await);
        }
        drop(guard);
        in_their_order(waiters).await;
    }

    async fn without_cohorts_waiters_of_all_processes_are_served_in_their_order(place: 3) {
        let guard = place.mutex(0).cohort(None).lock().await.unwrap();
        let mut waiters = Vec::new();
        for gate in [0, 0, 1, 2, 1, 0] {
            waiters.push(waits(&place, place.mutex(gate).cohort(None)).await);
        }
        drop(guard);
        in_their_order(waiters).await;
    }

    async fn a_cohort_lets_other_processes_in_when_its_passes_are_over(place: 2) {
        let cohort = Cohort { passes: 4, time: Duration::from_secs(60) };
        let guard = place.mutex(0).cohort(cohort).lock().await.unwrap();
        let stranger = waits(&place, place.mutex(1)).await;
        let mut own = Vec::new();
        for _ in 0..1_000 {
            let mutex = place.mutex(0).cohort(cohort);
            own.push(tokio::spawn(async move { mutex.lock().await.map(|guard| guard.fence()) }));
        }
        // All of them stand behind the guard, so that the stranger would come last if nothing bounded the passing.
        assert!(eventually_async(SOON, async || place.gates[0].lock_traces().standing == 1_000).await);
        drop(guard);
        let stranger = timeout(SOON, stranger).await.unwrap().unwrap().unwrap();
        let mut before = 0;
        let fence = stranger.fence();
        drop(stranger);
        for task in own {
            before += usize::from(timeout(SOON, task).await.unwrap().unwrap().unwrap() < fence);
        }
        // It learns of the stranger by a question beside the passing, so some more pass meanwhile: as many as there are
        // fences, and no more of those are asked for.
        let first_block = usize::try_from(FENCE_BLOCK).unwrap();
        assert!(before < first_block, "{before} of the holder's process went first");
        place.leaves_nothing_behind().await;
    }

    async fn a_waiter_that_goes_away_is_passed_over(place: 2) {
        let guard = place.mutex(0).lock().await.unwrap();
        let (gone, patient) = (waits(&place, place.mutex(1)).await, waits(&place, place.mutex(0)).await);
        gone.abort();
        drop(guard);
        drop(timeout(SOON, patient).await.unwrap().unwrap().unwrap());
        place.leaves_nothing_behind().await;
    }

    async fn a_lock_taken_away_by_force_goes_to_the_next_waiter(place: 2) {
        let guard = place.mutex(0).watchdog(SHORT).unwrap().lock().await.unwrap();
        let waiter = waits(&place, place.mutex(1)).await;
        let fence = place.mutex(1).force_release().await.unwrap();
        assert!(fence > guard.fence());
        let next = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
        assert!(next.fence() > fence);
        timeout(SOON, guard.lost()).await.expect("the watchdog did not notice");
        assert_eq!(guard.release().await.unwrap(), Released::WasLost);
        assert_eq!(next.check(), Ok(()));
        drop(next);
        place.leaves_nothing_behind().await;
    }

    async fn shutting_down_sends_waiters_home_and_gives_back_what_was_dropped(place: 2) {
        let held = place.gates[0].mutex("other").unwrap().lock().await.unwrap();
        let guard = place.mutex(1).lock().await.unwrap();
        let waiters = [
            waits(&place, place.mutex(0)).await,
            waits(&place, place.mutex(0).cohort(None)).await,
            waits(&place, place.mutex(0).waiting(Waiting::Notify)).await,
            spins(place.mutex(0)).await,
        ];
        drop(place.gates[0].mutex("third").unwrap().lock().await.unwrap());
        timeout(SOON, place.gates[0].shutdown()).await.expect("the shutdown hangs");
        for waiter in waiters {
            let outcome = timeout(SOON, waiter).await.unwrap().unwrap();
            assert!(matches!(outcome, Err(LockError::ShuttingDown)), "{outcome:?}");
        }
        assert!(matches!(place.mutex(0).lock().await, Err(LockError::ShuttingDown)));
        let third = place.gates[1].mutex("third").unwrap();
        assert!(third.try_lock().await.unwrap().is_some(), "what was dropped is still held");
        assert_eq!(held.check(), Ok(()), "a guard must outlive the shutdown");
        drop((guard, held));
        let other = place.gates[1].mutex("other").unwrap();
        assert!(eventually_async(SOON, async || other.try_lock().await.unwrap().is_some()).await);
    }

    async fn a_thousand_waits_that_are_dropped_at_any_moment_leave_nothing_behind(place: 2) {
        let recipes: [fn(Mutex) -> Mutex; 4] = [
            |mutex| mutex,
            |mutex| mutex.cohort(None),
            |mutex| mutex.waiting(Waiting::Notify),
            |mutex| mutex.waiting(Waiting::spin()),
        ];
        let mut crowd = JoinSet::new();
        for task in 0..20_usize {
            let mutexes = recipes.map(|recipe| recipe(place.mutex(task % 2)));
            crowd.spawn(async move {
                for round in 0..50_usize {
                    let wait = Duration::from_micros(u64::try_from((task * 7 + round * 13) % 40).unwrap() * 50);
                    let mutex = mutexes[round % 4].clone().owned_by(&Owner::new());
                    if let Ok(Ok(guard)) = timeout(wait, mutex.lock()).await {
                        tokio::task::yield_now().await;
                        drop(guard);
                    }
                }
            });
        }
        timeout(Duration::from_secs(60), crowd.join_all()).await.expect("somebody waits for ever");
        place.leaves_nothing_behind().await;
        assert!(place.mutex(0).try_lock().await.unwrap().is_some());
    }

    async fn a_crowd_with_cohorts_takes_turns(place: 3) {
        crowd(&place, 30, 100, |mutex| mutex).await;
    }

    async fn a_crowd_without_cohorts_takes_turns(place: 3) {
        crowd(&place, 30, 30, |mutex| mutex.cohort(None)).await;
    }

    async fn a_crowd_that_is_notified_takes_turns(place: 3) {
        crowd(&place, 12, 20, |mutex| mutex.waiting(Waiting::Notify)).await;
    }

    async fn a_crowd_that_spins_takes_turns(place: 3) {
        crowd(&place, 8, 10, |mutex| mutex.waiting(Waiting::spin())).await;
    }

    async fn who_is_handed_a_lock_tells_the_store_when_a_quarter_of_the_claim_has_passed(place: 2) {
        let lease = Duration::from_secs(20);
        let holder = place.mutex(0).watchdog(lease).unwrap().lock().await.unwrap();
        let mutex = place.mutex(1).watchdog(lease).unwrap();
        let waiting = tokio::spawn(async move { mutex.lock().await.unwrap() });
        let is_waiting = async || place.mutex(0).status().await.unwrap().waiting == 1;
        assert!(eventually_async(SOON, is_waiting).await);
        holder.release().await.unwrap();
        let heir = waiting.await.unwrap();
        // The claim is a second: by now a quarter of it has passed, and more than half is left.
        sleep(Duration::from_millis(450)).await;
        assert!(heir.lease_left() > Duration::from_secs(10), "{:?}", heir.lease_left());
        heir.release().await.unwrap();
    }
}
