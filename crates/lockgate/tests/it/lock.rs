//! What users of a mutex rely on, on both stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{Cohort, LockError, Mutex, Owner, Released, Waiting};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(10);

/// A store, and several gates on it, each like a process of its own.
struct Place {
    _redis: Option<Redis>,
    gates: Vec<Gate>,
}

async fn embedded(gates: usize) -> Place {
    let first = Gate::open("memory").await.unwrap();
    let others = (1..gates).map(|_| Gate::on(Arc::clone(first.store())));
    Place { _redis: None, gates: std::iter::once(first.clone()).chain(others).collect() }
}

async fn on_redis(gates: usize) -> Place {
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

    async fn leaves_nothing_behind(&self) {
        for gate in &self.gates {
            let nothing = lockgate::lock::Traces::default();
            let is_clean = eventually_async(SOON, async || gate.lock_traces() == nothing).await;
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
            use super::*;
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(embedded($gates).await).await;
            })+
        }
        mod on_redis {
            use super::*;
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name(super::on_redis($gates).await).await;
            })+
        }
        $(async fn $name($place: Place) $body)+
    };
}

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

on_both_stores! {
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
}
