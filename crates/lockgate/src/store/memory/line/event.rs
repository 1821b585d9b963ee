//! What happens to a line, and what it makes of it.
//!
//! Every change is one of these events: a step decides on them, they are applied to the hall, and with a journal they are
//! written. A journal is read by applying them again, so there is one place that says what an event means.
//!
//! Signs of life are not events. After a restart everybody counts as seen: the line's time stood still meanwhile.

use std::time::Duration;

use super::hall::{Hall, Place, PlaceState, Switch, WAITS_KEPT, millis};
use crate::key::Name;
use crate::store::{ADMITS_KEPT, Draw, Ending, LineDrawn, LineEra, LineSecrets, LineTerms, Token};

/// One change of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "durable", serde(rename_all = "snake_case"))]
pub(in crate::store::memory) enum LineEvent {
    /// It was created.
    Created { terms: LineTerms, secrets: LineSecrets, edition: u64 },
    /// Its terms were replaced.
    Replaced { terms: LineTerms, edition: u64 },
    /// It was paused, resumed or closed.
    Switched { to: Switch },
    /// Some are to be admitted beyond the rate: so many in all that are still to come, all of them before a place.
    Noted { request: Token, asked: u32, extra: u32, extra_to: u64 },
    /// They came, and have the next numbers.
    Entered { users: Vec<Name> },
    /// Its time has come; with a pre-queue the places are to be drawn.
    TimeCame { to_draw: bool },
    /// The places were drawn.
    Drawn { drawn: LineDrawn, gone: Vec<u8>, edition: u64 },
    /// A batch has begun.
    Batch { people: u32, next_at: u64 },
    /// The head has passed all places before `to`: who had left is over, these were not seen, the others are admitted.
    Passed { to: u64, abandoned: Vec<u64>, allowance: u32, extra: u32 },
    /// The time of somebody who is admitted is counted from now.
    Shown { place: u64, deadline: u64 },
    /// It is over for somebody.
    Ended { place: u64, ending: Ending },
    /// Some who were over are not known any more.
    Trimmed { places: u64 },
    /// All of it, in the place of what happened before.
    #[cfg(feature = "durable")]
    Snapshot { hall: Box<super::snapshot::Snapshot> },
}

impl Hall {
    /// Lets it happen.
    pub(super) fn apply(&mut self, event: &LineEvent) {
        match event {
            LineEvent::Created { terms, secrets, edition } => {
                *self = Hall::new(*terms, *secrets, *edition);
            }
            LineEvent::Replaced { terms, edition } => self.replace_terms(*terms, *edition),
            LineEvent::Switched { to } => self.switch(*to),
            LineEvent::Noted { request, asked, extra, extra_to } => {
                self.requests.push_back((*request, *asked));
                if self.requests.len() > ADMITS_KEPT {
                    self.requests.pop_front();
                }
                (self.extra, self.extra_to) = (*extra, *extra_to);
            }
            LineEvent::Entered { users } => users.iter().for_each(|user| self.let_in(user)),
            LineEvent::TimeCame { to_draw: true } => {
                (self.early, self.time_came) = (Some(self.tail()), self.time.now_ms);
            }
            LineEvent::TimeCame { to_draw: false } => self.opened_at = Some(self.time.now_ms),
            LineEvent::Drawn { drawn, gone, edition } => self.lay_out(*drawn, gone, *edition),
            LineEvent::Batch { people, next_at } => (self.allowance, self.next_at) = (*people, *next_at),
            LineEvent::Passed { to, abandoned, allowance, extra } => {
                let are_admitted = self.pass(*to, abandoned);
                // What was left of a large batch may have been asked for late: the next one is as far from the last of it.
                if are_admitted && self.allowance > 0 {
                    self.next_at = self.time.now_ms + millis(self.terms.every);
                }
                (self.allowance, self.extra) = (*allowance, *extra);
            }
            LineEvent::Shown { place, deadline } => self.show(*place, *deadline),
            LineEvent::Ended { place, ending } => self.end(*place, *ending),
            LineEvent::Trimmed { places } => (0..*places).for_each(|_| self.forget_first()),
            #[cfg(feature = "durable")]
            LineEvent::Snapshot { hall } => *self = hall.restore(),
        }
    }

    /// The rate counts from the next batch on, which is not further away than one interval.
    fn replace_terms(&mut self, terms: LineTerms, edition: u64) {
        (self.terms, self.edition) = (terms, edition);
        self.next_at = self.next_at.min(self.time.now_ms + millis(terms.every));
    }

    fn switch(&mut self, to: Switch) {
        self.switch = to;
        self.allowance = 0;
        if to == Switch::Closed {
            self.extra = 0;
        }
    }

    fn let_in(&mut self, user: &Name) {
        let (number, now) = (self.tail(), self.time.now_ms);
        self.numbers.insert(user.clone(), number);
        self.people.push_back(user.clone());
        self.places.push_back(Place::waiting(now));
    }

    /// Puts the early ones where they were drawn to. Their grace begins now.
    fn lay_out(&mut self, drawn: LineDrawn, gone: &[u8], edition: u64) {
        self.drawn = Some(drawn);
        (self.edition, self.early, self.opened_at) = (edition, Some(drawn.early), Some(self.time.now_ms));
        let had_left = self.gaps.before(drawn.early, |place| self.is_gone(place));
        let are_gone = (0..drawn.early).filter(|place| bit(gone, *place)).count() as u64;
        self.counts.abandoned += are_gone.saturating_sub(had_left);
        self.gaps.clear();
        for place in self.base..self.tail() {
            let is_gone = if place < drawn.early { bit(gone, place) } else { self.is_gone(place) };
            if place < drawn.early {
                let seen_at = self.time.now_ms;
                let state = if is_gone { PlaceState::Gone } else { PlaceState::Waiting { seen_at } };
                let drawn = Place { entered_at: self.time_came, state };
                if let Some(old) = self.place_mut(place) {
                    *old = drawn;
                }
            }
            if is_gone {
                self.gaps.add(place);
            }
        }
        self.leaves += 1;
    }

    /// Whether somebody was admitted.
    fn pass(&mut self, to: u64, abandoned: &[u64]) -> bool {
        let (now, deadline) = (self.time.now_ms, self.time.now_ms + self.claim_ms());
        let mut absent = abandoned.iter().peekable();
        let (mut waited, mut together) = (Duration::ZERO, 0);
        for place in self.head..to {
            let is_absent = absent.next_if(|absent| **absent == place).is_some();
            if self.is_gone(place) {
                self.gaps.remove(place);
                self.end(place, Ending::Left);
            } else if is_absent {
                self.end(place, Ending::Abandoned);
                self.counts.abandoned += 1;
            } else {
                (waited, together) = (self.admit(place, now, deadline), together + 1);
            }
        }
        if together > 0 {
            self.waits.push_front((waited, together));
            self.waits.truncate(WAITS_KEPT);
        }
        self.head = to;
        together > 0
    }
}

/// The bit of a place in a bitmap whose first place is the highest bit of its first byte.
fn bit(bitmap: &[u8], place: u64) -> bool {
    let byte = usize::try_from(place / 8).ok().and_then(|byte| bitmap.get(byte)).copied().unwrap_or(0);
    byte >> (7 - place % 8) & 1 == 1
}

impl Draw {
    /// The event of it.
    pub(super) fn event(&self, edition: u64) -> LineEvent {
        LineEvent::Drawn { drawn: self.drawn, gone: self.gone.clone(), edition }
    }
}

/// The one era of a store that forgets nothing it has answered.
pub(super) const ONLY_ERA: LineEra = LineEra { era: 1, from: 0 };
