//! What the shoppers say: counted while they shop, and kept of each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lockgate::clock::Moment;

/// What is counted while they shop.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) arrived: Count,
    pub(super) admitted: Count,
    pub(super) granted: Count,
    pub(super) gone: Count,
    refused: Mutex<BTreeMap<String, u64>>,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub(super) fn refuse(&self, code: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(code.to_owned()).or_default() += 1;
    }

    pub(super) fn refused(&self) -> BTreeMap<String, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What one shopper has to tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) user: String,
    /// Which one this was to enter, by the ticket.
    pub(super) number: Option<u64>,
    /// When the shopper last asked and was told to wait; when the question was sent.
    pub(super) last_waited: Option<Moment>,
    /// When the shopper was told that it was their turn.
    pub(super) admitted: Option<Moment>,
    /// The number of what the shopper was given.
    pub(super) granted: Option<u64>,
    /// How it ended, if not with a turn.
    pub(super) ending: Option<Ending>,
    /// What should not have happened.
    pub(super) surprises: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Left while waiting, and was told so.
    Left,
    /// Was told that the line had passed them over.
    PassedOver,
    /// Was told that their turn had come and gone.
    NoShow,
    /// Went away without a word.
    Vanished,
}
