//! Several locks at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{LockError, MultiGuard, MultiLock, Owner, Released};
use lockgate::testing::breakable::{Break, BreakableStore};
use lockgate::testing::eventually_async;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{Place, SHORT, SOON, on_both_stores};

fn locks<const N: usize>(place: &Place, gate: usize, names: [&str; N]) -> MultiLock {
    place.gates[gate].multi_lock(names).unwrap()
}

async fn has_it(waiter: JoinHandle<Result<MultiGuard, LockError>>) -> MultiGuard {
    timeout(SOON, waiter).await.expect("it waits for ever").unwrap().unwrap()
}

/// How many wait for the mutex called `name`, anywhere.
async fn waiting(place: &Place, name: &str) -> usize {
    let in_the_store = place.gates[0].mutex(name).unwrap().status().await.unwrap().waiting;
    usize::try_from(in_the_store).unwrap() + place.standing()
}

/// Begins to wait, and returns when it stands in line for `name`.
async fn waits(place: &Place, locks: MultiLock, name: &str) -> JoinHandle<Result<MultiGuard, LockError>> {
    let before = waiting(place, name).await;
    let waiter = tokio::spawn(async move { locks.lock().await });
    assert!(eventually_async(SOON, async || waiting(place, name).await > before).await, "it has no place");
    waiter
}

on_both_stores! {
    async fn all_of_them_or_none(place: 2) {
        let two = place.gates[1].mutex("2").unwrap();
        let held = two.lock().await.unwrap();
        let all = locks(&place, 0, ["3", "1", "2"]);
        assert_eq!(all.names().iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
        assert!(all.try_lock().await.unwrap().is_none());
        for name in ["1", "3"] {
            let mutex = place.gates[1].mutex(name).unwrap();
            let is_free = eventually_async(SOON, async || mutex.try_lock().await.unwrap().is_some()).await;
            assert!(is_free, "{name} was kept");
        }
        let timed_out = all.clone().wait(Duration::from_millis(30)).lock().await.unwrap_err();
        assert!(matches!(timed_out, LockError::TimedOut { .. }), "{timed_out:?}");
        held.release().await.unwrap();
        let guard = all.lock().await.unwrap();
        for name in ["1", "2", "3"] {
            assert!(place.gates[1].mutex(name).unwrap().try_lock().await.unwrap().is_none(), "{name}");
            assert_eq!(guard.fence_of(name), guard.fences().find(|(its, _)| its.as_str() == name).map(|it| it.1));
        }
        assert_eq!(guard.fence_of("4"), None);
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        assert!(two.try_lock().await.unwrap().is_some());
        place.leaves_nothing_behind().await;
    }

    async fn a_name_that_is_given_twice_counts_once(place: 1) {
        let all = locks(&place, 0, ["b", "a", "b", "a"]);
        assert_eq!(all.names().len(), 2);
        let guard = timeout(SOON, all.lock()).await.expect("it waits for itself").unwrap();
        assert_eq!(guard.fences().count(), 2);
        drop(guard);
        place.leaves_nothing_behind().await;
    }

    async fn those_who_want_one_of_them_alone_do_not_overtake_it(place: 2) {
        let held = place.gates[1].mutex("2").unwrap().lock().await.unwrap();
        let all = waits(&place, locks(&place, 0, ["1", "2"]), "2").await;
        // While it waits for the second, it has the first; and who comes for the second stands behind it.
        assert!(place.gates[1].mutex("1").unwrap().try_lock().await.unwrap().is_none());
        let small = place.gates[1].mutex("2").unwrap().cohort(None);
        let small = tokio::spawn(async move { small.lock().await });
        assert!(eventually_async(SOON, async || waiting(&place, "2").await == 2).await);
        held.release().await.unwrap();
        let all = has_it(all).await;
        assert!(!small.is_finished(), "it has overtaken those who want more");
        drop(all);
        drop(timeout(SOON, small).await.unwrap().unwrap().unwrap());
        place.leaves_nothing_behind().await;
    }

    async fn a_wait_that_is_dropped_gives_back_what_it_had_already(place: 2) {
        let held = place.gates[1].mutex("2").unwrap().lock().await.unwrap();
        let all = waits(&place, locks(&place, 0, ["1", "2", "3"]), "2").await;
        all.abort();
        let first = place.gates[1].mutex("1").unwrap();
        drop(timeout(SOON, first.lock()).await.expect("it was kept").unwrap());
        drop(held);
        place.leaves_nothing_behind().await;
    }

    async fn the_lease_begins_when_the_last_of_them_is_there(place: 2) {
        let held = place.gates[1].mutex("2").unwrap().lock().await.unwrap();
        let all = waits(&place, locks(&place, 0, ["1", "2"]).lease(SHORT).unwrap(), "2").await;
        // Longer than the lease: the first one is kept for it.
        sleep(SHORT * 2).await;
        assert!(place.gates[1].mutex("1").unwrap().try_lock().await.unwrap().is_none());
        held.release().await.unwrap();
        let guard = has_it(all).await;
        assert!(guard.lease_left() > SHORT / 2, "{:?}", guard.lease_left());
        timeout(SOON, guard.lost()).await.expect("it outlives its lease");
        assert!(guard.check().is_err());
        for name in ["1", "2"] {
            drop(timeout(SOON, place.gates[1].mutex(name).unwrap().lock()).await.expect("kept for ever").unwrap());
        }
        assert_eq!(guard.release().await.unwrap(), Released::WasLost);
        place.leaves_nothing_behind().await;
    }

    async fn when_one_is_taken_away_all_is_lost(place: 2) {
        let guard = locks(&place, 0, ["1", "2"]).watchdog(SHORT).unwrap().lock().await.unwrap();
        place.gates[1].mutex("2").unwrap().force_release().await.unwrap();
        let lost = timeout(SOON, guard.run(std::future::pending::<()>())).await.expect("it was not told");
        assert_eq!(lost.unwrap_err().name.as_str(), "2");
        drop(guard);
        place.leaves_nothing_behind().await;
    }

    async fn an_owner_takes_part_in_what_it_holds_already(place: 1) {
        let owner = Owner::new();
        let outer = place.gates[0].mutex("2").unwrap().owned_by(&owner).lock().await.unwrap();
        let both = locks(&place, 0, ["1", "2"]).owned_by(&owner);
        let inner = timeout(SOON, both.lock()).await.expect("it waits for itself").unwrap();
        assert_eq!(inner.fence_of("2"), Some(outer.fence()));
        assert_eq!(inner.release().await.unwrap(), Released::StillHeld);
        outer.check().unwrap();
        assert!(place.gates[0].mutex("2").unwrap().try_lock().await.unwrap().is_none());
        drop(outer);
        place.leaves_nothing_behind().await;
    }

    async fn those_that_cross_never_wait_for_each_other_for_ever(place: 3) {
        let counters: Arc<HashMap<String, AtomicU64>> =
            Arc::new((0..6).map(|name| (name.to_string(), AtomicU64::new(0))).collect());
        let expected = Arc::new(Mutex::new(HashMap::<String, u64>::new()));
        let mut crowd = JoinSet::new();
        for task in 0..24_usize {
            let gate = place.gates[task % place.gates.len()].clone();
            let (counters, expected) = (Arc::clone(&counters), Arc::clone(&expected));
            crowd.spawn(async move {
                for round in 0..30 {
                    let mut names = [task, task + round, task * 5 + round * 3].map(|name| (name % 6).to_string());
                    if task % 2 == 0 {
                        names.reverse();
                    }
                    let all = gate.multi_lock(&names).unwrap();
                    if round % 8 == 5 {
                        let _ = timeout(Duration::from_micros(300), all.lock()).await;
                        continue;
                    }
                    let guard = all.lock().await.unwrap();
                    for name in all.names() {
                        let counter = &counters[name.as_str()];
                        let seen = counter.load(Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        counter.store(seen + 1, Ordering::SeqCst);
                        *expected.lock().unwrap().entry(name.as_str().to_owned()).or_default() += 1;
                    }
                    if round % 2 == 0 {
                        drop(guard);
                    } else {
                        guard.release().await.unwrap();
                    }
                }
            });
        }
        timeout(Duration::from_secs(90), crowd.join_all()).await.expect("they wait for each other");
        for (name, expected) in expected.lock().unwrap().iter() {
            assert_eq!(counters[name].load(Ordering::SeqCst), *expected, "{name}");
        }
        place.leaves_nothing_behind().await;
    }
}

#[tokio::test]
async fn nonsense_is_refused() {
    let gate = Gate::open("memory").await.unwrap();
    let none = gate.multi_lock::<&str>([]).unwrap_err();
    assert_eq!(none.to_string(), "names: are none; give at least one");
    let many = gate.multi_lock((0..1_000).map(|name| name.to_string())).unwrap_err();
    assert_eq!(
        many.to_string(),
        "names: are 1000; at most 100 can be taken together, so take a lock for the whole instead"
    );
    assert!(gate.multi_lock((0..1_000).map(|name| (name % 100).to_string())).is_ok(), "they are a hundred");
    assert!(gate.multi_lock(["a", ""]).is_err());
}

/// What a user pays for when nobody is in the way.
#[tokio::test]
async fn three_that_are_free_are_taken_in_one_call() {
    let inner = Arc::clone(Gate::open("memory").await.unwrap().store());
    let store = Arc::new(BreakableStore::new(inner));
    let gate = Gate::on(Arc::clone(&store) as _);
    let all = gate.multi_lock(["1", "2", "3"]).unwrap();
    let before = store.calls();
    let guard = all.lock().await.unwrap();
    assert_eq!(store.calls() - before, 1);
    guard.release().await.unwrap();
    // An answer that is lost leaves nothing held.
    store.break_next(Break::LoseAnswer);
    assert!(matches!(all.lock().await, Err(LockError::Store(_))));
    let is_free = async || all.try_lock().await.unwrap().is_some();
    assert!(eventually_async(SOON, is_free).await, "held by nobody");
}
