//! What happens to campaigns when the store is not the one that it was: restarted, replaced by another, restored.
//!
//! ```text
//! trusted ──the server changes──▶ recovering ──nothing is missing──▶ trusted
//!                                     │
//!                                     └─something is─▶ missing ──rebuilt by `recover`──▶ trusted
//! ```
//!
//! A campaign that is recovering answers nothing else, and nothing of it changes. It is trusted again when everybody who has
//! seen it (the live processes, the ledger) has had time to say how far it was, and it is at least as far.

use std::time::Duration;

use super::{Campaign, JournalEntry, MAX_BATCH};
use crate::error::InvalidInput;

/// Whether the campaigns of a partition can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochStatus {
    /// Whether whoever is not there, and not missing, was never there. Until then every name that the store does not know is
    /// recovering.
    pub is_settled: bool,
    /// The campaigns that miss something, or may, and how far they were.
    pub missing: Vec<(Campaign, u64)>,
}

/// The answer to [`Store::epoch_settle`](crate::store::Store::epoch_settle).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochSettle {
    /// Whoever is not there, and not missing, was never there.
    Settled,
    /// Somebody may still have something to say.
    Early {
        /// For how long.
        wait: Duration,
    },
}

/// Somebody has seen a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which.
    pub campaign: Campaign,
    /// The number of the last change that was seen; 0 if none was.
    pub rev: u64,
}

/// The answer to [`Store::campaign_reopen`](crate::store::Store::campaign_reopen) about one campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopen {
    /// It is trusted.
    Open {
        /// The number of its last change.
        rev: u64,
    },
    /// Nothing is known to be missing; but somebody may still have something to say, or the caller does not decide.
    Early {
        /// For how long.
        wait: Duration,
    },
    /// The store has forgotten something.
    Missing {
        /// The number of the last change that the store has; 0 if it has none.
        rev: u64,
        /// The number of the last change that somebody has seen.
        known: u64,
    },
    /// There is no such campaign, and nobody has seen one.
    Unknown,
}

/// One step in building a campaign anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// Forgets what there is.
    Begin,
    /// Repeats what was written down: in the order of the numbers, at most [`MAX_BATCH`] changes.
    Apply {
        /// The number of the last change before these.
        after: u64,
        /// What was written down.
        entries: Vec<JournalEntry>,
    },
    /// That is all; so many changes that somebody has seen are lost. From now on it is trusted.
    Finish {
        /// How many are lost.
        lost: u64,
    },
}

impl Rebuild {
    /// Refuses what would keep a store busy for too long, or leave a hole.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let Rebuild::Apply { after, entries } = self else { return Ok(()) };
        let mut last = *after;
        for entry in entries {
            if entry.rev != last + 1 {
                let problem = format!("change {} does not follow {last}", entry.rev);
                return Err(InvalidInput::new("entries", problem));
            }
            last = entry.last_rev();
        }
        if last - after > MAX_BATCH as u64 && entries.len() > 1 {
            return Err(InvalidInput::new("entries", format!("more than {MAX_BATCH} changes in one call")));
        }
        Ok(())
    }
}

/// The answer to [`Store::campaign_rebuild`](crate::store::Store::campaign_rebuild).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// It is done, or was before.
    Done {
        /// The number of the last change.
        rev: u64,
    },
    /// The campaign is trusted, so there is nothing to build: nothing has changed.
    Open {
        /// The number of its last change.
        rev: u64,
    },
}
