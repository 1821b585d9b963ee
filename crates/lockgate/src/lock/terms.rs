//! For how long a holder wants the lock, and how it waits for it.

use std::time::Duration;

use crate::store::Lease;

/// The lease of a lock for which none was given; the watchdog renews it for as long as it is held.
const WATCHDOG_LEASE: Duration = Duration::from_secs(30);

/// For how long a holder wants the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) lease: Lease,
    /// Whether the watchdog keeps it beyond its lease, for as long as it is held.
    pub(super) is_kept: bool,
}

impl Default for Terms {
    /// Kept by the watchdog.
    fn default() -> Self {
        Self { lease: Lease::new(WATCHDOG_LEASE).unwrap_or(Lease::MIN), is_kept: true }
    }
}

/// How a waiter learns that it is its turn.
///
/// | | commands per acquisition | delay after a release | order |
/// | --- | --- | --- | --- |
/// | hand-off | 1 or 2, whatever the number of waiters | one push | first come, first served |
/// | notify | grows with the number of processes | one push and one attempt | none |
/// | spin | grows with the number of waiters and the time held | half a backoff | none |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Waiting {
    /// Waiters stand in a queue in the store, and whoever gives the lock back gives it to the first of them.
    #[default]
    HandOff,
    /// Waiters hear when the lock is free, and try again: one of each process.
    Notify,
    /// Waiters try again and again, with pauses that double, give or take a half.
    Spin {
        /// The first pause.
        first: Duration,
        /// The longest pause.
        longest: Duration,
    },
}

impl Waiting {
    /// Spinning with pauses from 1 ms to 50 ms.
    #[must_use]
    pub const fn spin() -> Self {
        Waiting::Spin { first: Duration::from_millis(1), longest: Duration::from_millis(50) }
    }
}

/// How long a process may pass a lock on among its own waiters while other processes wait for it: until one of the
/// two bounds is reached. When no other process waits, it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cohort {
    /// So many times.
    pub passes: u32,
    /// For so long.
    pub time: Duration,
}

impl Default for Cohort {
    fn default() -> Self {
        Self { passes: 32, time: Duration::from_millis(10) }
    }
}
