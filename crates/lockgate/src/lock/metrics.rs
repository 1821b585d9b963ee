//! What is counted. Names begin with `lockgate_lock_`; a recorder must be installed before the gate is opened.

use metrics::{Counter, Gauge, Histogram};

use crate::store::{Lock, Pool, PoolKind};

/// Handles, looked up once: a pass inside a process takes about a microsecond, and a look-up would double it.
pub(super) struct Metrics {
    /// From the call to the grant, seconds.
    pub(super) wait: Histogram,
    /// From the grant to the release, seconds.
    pub(super) hold: Histogram,
    /// Waiters in this process.
    pub(super) waiting: Gauge,
    /// Passed on inside this process.
    pub(super) passed_locally: Counter,
    /// Given to this process by another one's release.
    pub(super) passed_remotely: Counter,
    /// Could no longer be trusted.
    pub(super) lost: Counter,
    pub(super) renewals: Counter,
    /// Waited in vain.
    pub(super) timed_out: Counter,
}

impl Metrics {
    pub(super) fn new(lock: &'static str) -> Self {
        Self {
            wait: metrics::histogram!("lockgate_lock_wait_seconds", "lock" => lock),
            hold: metrics::histogram!("lockgate_lock_hold_seconds", "lock" => lock),
            waiting: metrics::gauge!("lockgate_lock_waiting", "lock" => lock),
            passed_locally: metrics::counter!("lockgate_lock_hand_overs_total", "lock" => lock, "kind" => "local"),
            passed_remotely: metrics::counter!("lockgate_lock_hand_overs_total", "lock" => lock, "kind" => "remote"),
            lost: metrics::counter!("lockgate_lock_lost_total", "lock" => lock),
            renewals: metrics::counter!("lockgate_lock_renewals_total", "lock" => lock),
            timed_out: metrics::counter!("lockgate_lock_timed_out_total", "lock" => lock),
        }
    }
}

/// The same for each kind of lock, told apart by the label `lock`.
pub(super) struct AllMetrics {
    mutex: Metrics,
    rw_lock: Metrics,
    semaphore: Metrics,
    /// Several mutexes taken together; each of them also counts as a mutex.
    pub(super) multi: Metrics,
    pub(super) latch: Metrics,
}

impl AllMetrics {
    pub(super) fn new() -> Self {
        Self {
            mutex: Metrics::new("mutex"),
            rw_lock: Metrics::new("rwlock"),
            semaphore: Metrics::new("semaphore"),
            multi: Metrics::new("multi"),
            latch: Metrics::new("latch"),
        }
    }

    pub(super) fn of(&self, lock: &Lock) -> &Metrics {
        match lock {
            Lock::Mutex(_) => &self.mutex,
            Lock::Pool(Pool { kind: PoolKind::RwLock, .. }) => &self.rw_lock,
            Lock::Pool(Pool { kind: PoolKind::Semaphore, .. }) => &self.semaphore,
        }
    }
}

/// Counts a waiter for as long as it waits.
pub(super) struct Counted<'a>(&'a Metrics);

impl<'a> Counted<'a> {
    pub(super) fn new(metrics: &'a Metrics) -> Self {
        metrics.waiting.increment(1);
        Self(metrics)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.waiting.decrement(1);
    }
}
