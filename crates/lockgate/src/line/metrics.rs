//! What is counted. Names begin with `lockgate_line_`; a recorder must be installed before the line is first used.
//!
//! The counters of all processes add up: each admission is counted by the process whose call made it. The gauges are the line's
//! own, so they are the same in every process that serves it.

use metrics::{Counter, Gauge, Histogram};

use crate::store::{Crowd, TickDone};

/// How many lines of one process have labels of their own; all others are `other`.
pub(super) const MAX_LABELS: usize = 100;

/// Handles, looked up once.
pub(super) struct Metrics {
    waiting: Gauge,
    active: Gauge,
    /// From entering (or the opening, for those who came early) to the admission, seconds.
    wait: Histogram,
    admitted: Counter,
    abandoned: Counter,
    no_shows: Counter,
    expired: Counter,
}

impl Metrics {
    pub(super) fn new(line: &str) -> Self {
        let line = line.to_owned();
        Self {
            waiting: metrics::gauge!("lockgate_line_waiting", "line" => line.clone()),
            active: metrics::gauge!("lockgate_line_active", "line" => line.clone()),
            wait: metrics::histogram!("lockgate_line_wait_seconds", "line" => line.clone()),
            admitted: metrics::counter!("lockgate_line_admitted_total", "line" => line.clone()),
            abandoned: metrics::counter!("lockgate_line_abandoned_total", "line" => line.clone()),
            no_shows: metrics::counter!("lockgate_line_no_shows_total", "line" => line.clone()),
            expired: metrics::counter!("lockgate_line_expired_total", "line" => line),
        }
    }

    pub(super) fn note(&self, crowd: &Crowd, done: &TickDone) {
        self.waiting.set(approximately(crowd.waiting));
        self.active.set(approximately(crowd.active));
        self.admitted.increment(u64::from(done.admitted));
        self.abandoned.increment(u64::from(done.abandoned));
        self.no_shows.increment(u64::from(done.no_shows));
        self.expired.increment(u64::from(done.expired));
        for (wait, people) in &done.waits {
            self.wait.record_many(wait.as_secs_f64(), usize::try_from(*people).unwrap_or(usize::MAX));
        }
    }
}

fn approximately(people: u64) -> f64 {
    u32::try_from(people).map_or(f64::from(u32::MAX), f64::from)
}
