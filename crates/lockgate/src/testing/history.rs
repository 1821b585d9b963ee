//! The independent judge: a history recorder, and a checker that knows nothing of the implementation.
//!
//! A test notes each request before it is sent and each answer after it has come; processes may be killed, answers
//! may be lost. Afterwards [`check`] says which of Lockgate's promises were broken, or how much was judged and
//! found in order. Two clients, one lock, and what must not happen:
//!
//! ```text
//! A   acquire ──── ok, fence 7 ──────────────── trusts its lease ───────────┤
//! B                     acquire ──── ok, fence 8 ── trusts its lease ──┤
//!                                    └── two holders at once: reported, with both operations and their times
//! ```
//!
//! What it promises:
//!
//! - **A violation is real.** Only the times of requests and answers are used, and only what no timing of the
//!   effects in between can explain is reported.
//! - **A killed process is a normal witness.** Its file ends somewhere; what it asked and never learned counts as
//!   unknown: it may have happened, may still happen, or never will.
//! - **Nothing judged is visible.** [`Verdict::judged`] counts what each rule rested on, and
//!   [`Verdict::into_result`] refuses an empty history.
//!
//! What it does not promise: to find everything. Two overlapping calls leave room for both orders, and the checker
//! always believes the kinder one.
//!
//! Times come from one machine's clock (`CLOCK_BOOTTIME`), so histories of several machines must not be mixed.
//!
//! ```
//! use lockgate::clock::Clock;
//! use lockgate::testing::history::{Acquire, AcquireAnswer, Bounds, Recorder, check};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = Recorder::in_memory("shop", Clock::system());
//! let pending = recorder.invoke(Acquire { lock: "till".into(), lease_ms: 10_000 })?;
//! // Here the request goes out, and its answer comes in.
//! pending.ok(AcquireAnswer::Acquired { fence: 1 })?;
//!
//! let judged = check(&recorder.history(), &Bounds::default()).into_result()?;
//! assert_eq!(judged.lock_grants, 1);
//! # Ok(())
//! # }
//! ```

mod answer;
mod call;
mod checker;
mod event;
mod load;
mod operation;
mod recorder;
mod row;
#[cfg(test)]
mod tests;
mod verdict;
mod violation;

pub use answer::{
    AcquireAnswer, AdmittedUsers, Answer, ClockSet, Entered, FinishAnswer, IssueAnswer, LeaveAnswer,
    LineOpened, LineStands, Listed, LookAnswer, OpenAnswer, ReleaseAnswer, RenewAnswer, RevokeAnswer,
    WriteAnswer,
};
pub use call::{
    Acquire, Admit, Call, Enter, FencedWrite, Finish, Issue, Leave, ListGrants, ListLedger, ListPlaces,
    Lists, Look, Open, OpenLine, Operation, ReadLine, Release, Renew, Revoke, SetClock, Waits,
};
pub use checker::check;
pub use event::{Event, Step};
pub use load::ReadError;
pub use recorder::{Pending, Recorder};
pub use row::{Change, Fate, GrantRow, LedgerRow, PlaceRow, Row};
pub use verdict::{Bounds, Judged, Rejected, Verdict};
pub use violation::{Malformed, Violation, Witness};

/// What happened, as its witnesses wrote it down.
///
/// The lines of one operation stand in the order in which they were written; those of different operations may be
/// mixed in any way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    events: Vec<Event>,
    torn_lines: u64,
}

impl History {
    /// A history of these lines.
    #[must_use]
    pub fn from_events(events: Vec<Event>) -> Self {
        Self { events, torn_lines: 0 }
    }

    /// All lines.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many files ended in the middle of a line.
    #[must_use]
    pub fn torn_lines(&self) -> u64 {
        self.torn_lines
    }
}
