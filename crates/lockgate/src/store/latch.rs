//! The words of the operations on count-down latches.

use std::time::Duration;

use super::Token;
use crate::error::InvalidInput;

/// For how long a latch is remembered after the last change.
pub(crate) const LATCH_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The highest count of a latch.
pub const MAX_LATCH: u32 = 100_000;

/// The answer to [`Store::latch_set`](super::Store::latch_set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchSet {
    /// The latch counts down from the number given.
    Set,
    /// It is counting down already; nothing has changed.
    Counting(LatchStatus),
}

/// How a latch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchStatus {
    /// From which number it counts down.
    pub count: u32,
    /// How many are still missing; 0: all who wait may go on.
    pub remaining: u32,
    /// Which round it is: the token with which it was set. Another round means that this one is over.
    pub round: Token,
}

/// Refuses a count that no latch has.
pub(crate) fn check_count(count: u32) -> Result<(), InvalidInput> {
    if (1..=MAX_LATCH).contains(&count) {
        return Ok(());
    }
    Err(InvalidInput::new("count", format!("a latch counts down from 1 to {MAX_LATCH}, not from {count}")))
}
