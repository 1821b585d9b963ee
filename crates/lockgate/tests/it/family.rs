//! What users of the other locks rely on, on both stores: read-write locks, semaphores, several locks at once, latches,
//! once per period, quorums.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::Cohort;
use lockgate::store::PoolStatus;
use lockgate::testing::breakable::BreakableStore;
use lockgate::testing::services::{Persistence, Redis};

mod latch;
mod multi;
mod once;
mod quorum;
mod rw;
mod semaphore;

use super::lock::{Place, embedded, on_redis};

const SOON: Duration = Duration::from_secs(10);

/// A lease that is waited for; long enough for a busy machine.
const SHORT: Duration = Duration::from_millis(400);

impl Place {
    /// How many wait without a place of their own in the store.
    fn standing(&self) -> usize {
        self.gates.iter().map(|gate| gate.lock_traces().standing).sum()
    }
}

/// Nobody has anything of it in the store.
fn assert_free(status: &PoolStatus) {
    assert_eq!((status.taken, status.holding, status.waiting), (0, 0, 0), "{status:?}");
}

/// The same test on both stores.
macro_rules! on_both_stores {
    ($($(#[$attribute:meta])* async fn $name:ident($place:ident: $gates:literal) $body:block)+) => {
        mod on_memory {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name($crate::family::embedded($gates).await).await;
            })+
        }
        mod on_redis {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")] async fn $name() {
                super::$name($crate::family::on_redis($gates).await).await;
            })+
        }
        $(async fn $name($place: $crate::family::Place) $body)+
    };
}

use on_both_stores;

/// Nobody else wants it: one call to take it, one to give it back, and nothing beside them.
#[tokio::test]
async fn alone_every_kind_of_lock_is_two_calls() {
    let inner = Arc::clone(Gate::open("memory").await.unwrap().store());
    let store = Arc::new(BreakableStore::new(inner));
    let gate = Gate::on(Arc::clone(&store) as _);
    let (mutex, rw, semaphore) =
        (gate.mutex("m").unwrap(), gate.rw_lock("rw").unwrap(), gate.semaphore("s", 3).unwrap());
    for cohort in [None, Some(Cohort::default())] {
        let (mutex, rw, semaphore) =
            (mutex.clone().cohort(cohort), rw.clone().cohort(cohort), semaphore.clone().cohort(cohort));
        let before = store.calls();
        mutex.lock().await.unwrap().release().await.unwrap();
        mutex.try_lock().await.unwrap().unwrap().release().await.unwrap();
        rw.read().await.unwrap().release().await.unwrap();
        rw.write().await.unwrap().release().await.unwrap();
        rw.try_read().await.unwrap().unwrap().release().await.unwrap();
        semaphore.acquire_many(2).await.unwrap().release().await.unwrap();
        // Whatever would go on beside them has time to.
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(store.calls() - before, 12, "{cohort:?}");
    }
}
