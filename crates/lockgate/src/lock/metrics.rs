//! What is counted. Names begin with `lockgate_lock_`; a recorder must be installed before the gate is opened.

use metrics::{Counter, Gauge, Histogram};

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
    pub(super) fn new() -> Self {
        Self {
            wait: metrics::histogram!("lockgate_lock_wait_seconds"),
            hold: metrics::histogram!("lockgate_lock_hold_seconds"),
            waiting: metrics::gauge!("lockgate_lock_waiting"),
            passed_locally: metrics::counter!("lockgate_lock_hand_overs_total", "kind" => "local"),
            passed_remotely: metrics::counter!("lockgate_lock_hand_overs_total", "kind" => "remote"),
            lost: metrics::counter!("lockgate_lock_lost_total"),
            renewals: metrics::counter!("lockgate_lock_renewals_total"),
            timed_out: metrics::counter!("lockgate_lock_timed_out_total"),
        }
    }
}
