//! Waiting until so many things are done.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{CountDownLatch, LockError};
use lockgate::store::LatchSet;
use lockgate::testing::breakable::{Break, BreakableStore, Deafness};
use lockgate::testing::eventually_async;
use tokio::time::{sleep, timeout};

use super::{Place, SOON, on_both_stores};

fn latch(place: &Place, gate: usize) -> CountDownLatch {
    place.gates[gate].count_down_latch("import").unwrap()
}

on_both_stores! {
    async fn all_who_wait_go_on_when_the_last_one_has_counted(place: 3) {
        assert_eq!(latch(&place, 0).set(2).await.unwrap(), LatchSet::Set);
        let waiters: Vec<_> = [0, 1, 1, 2].map(|gate| latch(&place, gate)).into_iter().map(|latch| {
            tokio::spawn(async move { latch.wait().await })
        }).collect();
        let watching = async || place.gates.iter().map(|gate| gate.lock_traces().watching).sum::<usize>() == 4;
        assert!(eventually_async(SOON, watching).await);
        let status = latch(&place, 1).count_down().await.unwrap();
        assert_eq!((status.count, status.remaining), (2, 1));
        sleep(Duration::from_millis(30)).await;
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "one is missing");
        assert_eq!(latch(&place, 2).count_down().await.unwrap().remaining, 0);
        for waiter in waiters {
            timeout(Duration::from_secs(3), waiter).await.expect("it was not told").unwrap().unwrap();
        }
        // Who comes later need not wait, and more than all is no less.
        latch(&place, 0).wait().await.unwrap();
        assert_eq!(latch(&place, 0).count_down().await.unwrap().remaining, 0);
        place.leaves_nothing_behind().await;
    }

    async fn one_that_counts_cannot_be_set_and_one_that_has_counted_can(place: 2) {
        latch(&place, 0).set(2).await.unwrap();
        latch(&place, 0).count_down().await.unwrap();
        let counting = latch(&place, 1).status().await.unwrap().unwrap();
        assert_eq!((counting.count, counting.remaining), (2, 1));
        assert_eq!(latch(&place, 1).set(5).await.unwrap(), LatchSet::Counting(counting));
        latch(&place, 0).count_down().await.unwrap();
        assert_eq!(latch(&place, 1).set(5).await.unwrap(), LatchSet::Set);
        assert_eq!(latch(&place, 0).count_down().await.unwrap().remaining, 4);
    }

    async fn one_that_nobody_has_set_is_an_error_with_a_remedy(place: 1) {
        for refused in [latch(&place, 0).wait().await.unwrap_err(), latch(&place, 0).count_down().await.unwrap_err()] {
            assert!(matches!(refused, LockError::NoLatch { .. }), "{refused:?}");
            assert!(refused.to_string().contains("set it first"), "{refused}");
        }
        for nonsense in [0, 100_001] {
            assert!(latch(&place, 0).set(nonsense).await.unwrap_err().to_string().contains("count"));
        }
        assert_eq!(latch(&place, 0).status().await.unwrap(), None);
    }

    async fn a_wait_that_is_too_long_ends(place: 1) {
        latch(&place, 0).set(1).await.unwrap();
        let waited = latch(&place, 0).wait_at_most(Duration::from_millis(30)).wait().await.unwrap_err();
        assert!(matches!(waited, LockError::TimedOut { .. }), "{waited:?}");
        place.leaves_nothing_behind().await;
    }
}

#[tokio::test]
async fn a_count_whose_answer_was_lost_counts_once() {
    let inner = Arc::clone(Gate::open("memory").await.unwrap().store());
    let store = Arc::new(BreakableStore::new(inner));
    let latch = Gate::on(Arc::clone(&store) as _).count_down_latch("import").unwrap();
    latch.set(3).await.unwrap();
    // The second call is the one that counts.
    store.spare_next(1);
    store.break_next(Break::LoseAnswer);
    assert_eq!(latch.count_down().await.unwrap().remaining, 2);
    // Nor does one that is dropped get lost.
    store.spare_next(1);
    store.break_next(Break::LoseAnswer);
    assert!(timeout(Duration::from_millis(10), latch.count_down()).await.is_err());
    let counted = async || latch.status().await.unwrap().is_some_and(|status| status.remaining == 1);
    assert!(eventually_async(SOON, counted).await);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(latch.status().await.unwrap().unwrap().remaining, 1);
}

/// Somebody sets it anew as soon as it is open, and a waiter that was not told sees only the next round.
#[tokio::test]
async fn who_missed_that_it_opened_goes_on_when_it_is_set_anew() {
    let inner = Arc::clone(Gate::open("memory").await.unwrap().store());
    let store = Arc::new(BreakableStore::new(inner));
    store.deafen(Deafness::Known);
    let (deaf, other) = (Gate::on(Arc::clone(&store) as _), Gate::on(Arc::clone(&store) as _));
    let latch = other.count_down_latch("import").unwrap();
    latch.set(1).await.unwrap();
    let waits = deaf.count_down_latch("import").unwrap();
    let waiter = tokio::spawn(async move { waits.wait().await });
    assert!(eventually_async(SOON, async || deaf.lock_traces().watching == 1).await);
    sleep(Duration::from_millis(50)).await;
    latch.count_down().await.unwrap();
    latch.set(5).await.unwrap();
    timeout(SOON, waiter).await.expect("it waits for the next round").unwrap().unwrap();
}
