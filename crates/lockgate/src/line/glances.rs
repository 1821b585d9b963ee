//! Who of this process's people looks in now and then.
//!
//! **Promise:** whoever glances is seen by the line within a tick, but not at every glance: one sign of life serves for an eighth of
//! the grace period. So whoever glances twice within the grace period is not passed over, and a million who do so once a second
//! cost the store a mark each per eighth, not per second.
//!
//! A glance takes no lock that another one holds: it looks at one bit, and writes only if it is the first of its kind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use super::view::View;
use crate::clock::Moment;

/// As long as somebody has glanced within so many ticks, the line is looked at once per tick.
const TICKS_REMEMBERED: u32 = 8;

/// How many places more than there are people are provided for, at least.
const SPARE: u64 = 1_024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Glances {
    /// Somebody has glanced since the last tick.
    any: AtomicBool,
    /// `None`: nobody glances.
    noted: ArcSwapOption<Noted>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Moment>,
    /// The places that the line has to be told of.
    to_be_seen: Vec<u64>,
}

/// Of each place from some place on, whether it was noted that somebody is there: for an eighth of the grace period.
#[derive(Debug)]
struct Noted {
    edition: u64,
    since: Moment,
    from: u64,
    places: Box<[AtomicU64]>,
}

impl Noted {
    fn new(view: &View, since: Moment) -> Self {
        let from = view.head / 64 * 64;
        let up_to = view.tail + SPARE.max((view.tail - view.head) / 8);
        let words = (from..up_to).step_by(64).map(|_| AtomicU64::new(0));
        Self { edition: view.edition, since, from, places: words.collect() }
    }

    fn holds(&self, edition: u64, place: u64) -> bool {
        self.edition == edition && (self.from..self.from + 64 * self.places.len() as u64).contains(&place)
    }
}

impl Glances {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody glances: whether that is the first time since the last tick.
    pub(super) fn begin(&self) -> bool {
        !self.any.load(Ordering::Relaxed) && !self.any.swap(true, Ordering::Relaxed)
    }

    /// Somebody is there: whether it could be noted. Otherwise the ticket has to be shown.
    pub(super) fn note(&self, edition: u64, place: u64) -> bool {
        let noted = self.noted.load();
        let Some(noted) = noted.as_ref().filter(|noted| noted.holds(edition, place)) else { return false };
        let at = place - noted.from;
        let Some(word) = usize::try_from(at / 64).ok().and_then(|word| noted.places.get(word)) else {
            return false;
        };
        let bit = 1 << (at % 64);
        if word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.lock().to_be_seen.push(place);
        }
        true
    }

    /// Whether somebody has glanced lately.
    pub(super) fn are_made(&self, now: Moment, tick: Duration) -> bool {
        let mut state = self.lock();
        if self.any.swap(false, Ordering::Relaxed) {
            state.last = Some(now);
        }
        state.last.is_some_and(|last| now.since(last) < tick * TICKS_REMEMBERED)
    }

    /// The places that the line has to be told of, at most so many: those first who glanced first.
    pub(super) fn to_be_seen(&self, most: usize) -> Vec<u64> {
        let mut state = self.lock();
        let some = state.to_be_seen.len().min(most);
        state.to_be_seen.drain(..some).collect()
    }

    /// Whether one more call would be full of them.
    pub(super) fn fill_a_call(&self, call: usize) -> bool {
        self.lock().to_be_seen.len() >= call
    }

    /// Notes from now on who glances at this view; with `every` in between, everybody anew.
    pub(super) fn follow(&self, view: &View, now: Moment, every: Duration) {
        let goes_on = |noted: &Arc<Noted>| {
            noted.holds(view.edition, view.head.max(view.tail.saturating_sub(1)))
                && now.since(noted.since) < every
        };
        if !self.noted.load().as_ref().is_some_and(goes_on) {
            self.noted.store(Some(Arc::new(Noted::new(view, now))));
        }
    }

    /// Nobody glances any more.
    pub(super) fn end(&self) {
        self.noted.store(None);
        self.lock().to_be_seen = Vec::new();
    }
}
