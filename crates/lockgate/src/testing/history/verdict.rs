//! What the checker may let pass, and what it says in the end.

use std::fmt;
use std::time::Duration;

use super::violation::Violation;

/// What the promises allow in the setting that was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How often a queued waiter of a lock may be overtaken: 0 when cohorts are off, otherwise the cohort budget
    /// times the number of other processes.
    pub lock_overtakes: u64,
    /// How often somebody in a line may be overtaken.
    pub line_overtakes: u64,
    /// Whether processes that watch a line were running and connected all the time: then nobody who watches may be passed over.
    pub watchers_are_seen: bool,
    /// How long before the end of its lease a holder stops trusting it, for the drift between clocks.
    pub lease_margin: Duration,
    /// Whether a client may send one request twice. Then an operation can meet its own effect: a first-time
    /// issue may be answered `already`, and a revoke that worked may be answered `not granted`.
    pub resends: bool,
}

impl Default for Bounds {
    /// Strict order, leases trusted to their last nanosecond, and clients that send again.
    fn default() -> Self {
        Self {
            lock_overtakes: 0,
            line_overtakes: 0,
            watchers_are_seen: true,
            lease_margin: Duration::ZERO,
            resends: true,
        }
    }
}

/// How much was judged, so that a test can tell a clean history from an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// All operations.
    pub operations: u64,
    /// Those of them whose outcome nobody knows.
    pub unknown: u64,
    /// Last lines that a killed process left unfinished.
    pub torn_lines: u64,
    /// Grants of locks, judged by their fences.
    pub lock_grants: u64,
    /// Stretches of time in which a holder had reason to trust its lock.
    pub trusted_leases: u64,
    /// Accepted writes to fenced resources.
    pub fenced_writes: u64,
    /// Waiters whose place was confirmed and who were granted in the end.
    pub queued_waiters: u64,
    /// Campaigns whose total is known.
    pub campaigns: u64,
    /// Acknowledged grants of stock, counted once each.
    pub stock_grants: u64,
    /// Revokes that happened or may have.
    pub revokes: u64,
    /// Complete listings of grants.
    pub listings: u64,
    /// Their rows.
    pub listed_rows: u64,
    /// Complete listings of ledgers.
    pub ledgers: u64,
    /// Their rows.
    pub ledger_rows: u64,
    /// Places in lines, counted once each.
    pub places: u64,
    /// Admissions from lines, counted once per user.
    pub admissions: u64,
    /// Admissions whose time is known well enough to count them in a window.
    pub timed_admissions: u64,
    /// The most who were admitted at the same time for certain, in any line.
    pub most_active: u64,
    /// Places whose end is listed.
    pub listed_places: u64,
}

/// What the checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a verdict that nobody reads judges nothing"]
pub struct Verdict {
    /// Broken promises, in a fixed order.
    pub violations: Vec<Violation>,
    /// What this rests on.
    pub judged: Judged,
}

/// Why a history does not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// There was nothing to judge: the test recorded nothing, or looked for it in the wrong folder.
    #[error("the history holds no operation, so it proves nothing")]
    Empty,
    /// Promises were broken.
    #[error("{0}")]
    Broken(Box<Verdict>),
}

impl Verdict {
    /// Whether there was no operation at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.judged.operations == 0
    }

    /// Passes a history that holds something and breaks nothing.
    ///
    /// # Errors
    ///
    /// When a promise was broken, or when there was nothing to judge.
    pub fn into_result(self) -> Result<Judged, Rejected> {
        if !self.violations.is_empty() {
            return Err(Rejected::Broken(Box::new(self)));
        }
        if self.is_empty() {
            return Err(Rejected::Empty);
        }
        Ok(self.judged)
    }
}

impl fmt::Display for Verdict {
    /// The first violations in full; a broken store easily has thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        write!(f, "{} violations in {} operations", self.violations.len(), self.judged.operations)?;
        for violation in self.violations.iter().take(SHOWN) {
            write!(f, "\n- {violation}")?;
        }
        match self.violations.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n- and {more} more"),
        }
    }
}
