//! Letting the line go on: who is over, and who is next.

use std::time::Duration;

use super::event::LineEvent;
use super::hall::{Hall, Place, PlaceState, millis};
use crate::clock::Timestamp;
use crate::store::{
    Ending, LineState, LineTick, MAX_ADMIT, MAX_LOOKED_AT, MAX_PASSED, OVER_KEPT, Tick, TickDone,
};

/// How many who are over one call forgets at the most.
const MAX_FORGOTTEN: u64 = 2_048;

/// What one look from the head on has found.
struct Found {
    to: u64,
    admitted: u32,
    abandoned: Vec<u64>,
    /// It stopped because it had looked at or admitted as many as one call may.
    is_cut_short: bool,
}

impl Hall {
    /// Whether its time has come, if it has not before.
    pub(super) fn time_comes(&self, now: Timestamp) -> Option<LineEvent> {
        let is_over = self.opened_at.is_some() || self.early.is_some() || self.state() == LineState::Closed;
        let is_due = self.terms.opens_at.is_none_or(|opens_at| now >= opens_at);
        (is_due && !is_over).then_some(LineEvent::TimeCame { to_draw: self.terms.prequeue })
    }

    /// Those whose time is over, the first first, at most as many as one call may end.
    pub(super) fn overdue(&self) -> Vec<LineEvent> {
        let overdue = self.active.iter().take_while(|(deadline, _)| *deadline <= self.time.now_ms);
        let ended = overdue.take(MAX_ADMIT as usize).map(|(_, place)| {
            let is_shown = self
                .place(*place)
                .is_some_and(|place| matches!(place.state, PlaceState::Admitted { shown_at: Some(_), .. }));
            let ending = if is_shown { Ending::Expired } else { Ending::NoShow };
            LineEvent::Ended { place: *place, ending }
        });
        ended.collect()
    }

    /// How many more may be active.
    fn room(&self) -> u32 {
        let active = u32::try_from(self.active.len()).unwrap_or(u32::MAX);
        self.terms.max_active.map_or(u32::MAX, |most| most.saturating_sub(active))
    }

    /// The batch that begins now, if one does.
    pub(super) fn next_batch(&self) -> Option<LineEvent> {
        let (now, every) = (self.time.now_ms, millis(self.terms.every));
        let is_due = now >= self.next_at;
        let begins = self.state() == LineState::Running
            && self.allowance == 0
            && is_due
            && self.waiting() > 0
            && self.room() > 0;
        begins.then_some(LineEvent::Batch { people: self.terms.batch, next_at: now + every })
    }

    /// Who is next.
    pub(super) fn admission(&self) -> Option<(LineEvent, bool)> {
        let may_admit = matches!(self.state(), LineState::Running | LineState::Paused);
        let wanted = self.allowance.saturating_add(self.extra);
        if !may_admit || wanted == 0 || self.room() == 0 {
            return None;
        }
        let most = wanted.min(self.room());
        let Found { to, admitted, abandoned, is_cut_short } = self.look(most);
        let by_extra = admitted.saturating_sub(self.allowance);
        let allowance = if is_cut_short { self.allowance.saturating_sub(admitted) } else { 0 };
        let extra = if to >= self.extra_to { 0 } else { self.extra - by_extra };
        let more = is_cut_short && (allowance > 0 || extra > 0) && admitted < self.room();
        let allowance = if more { allowance } else { 0 };
        Some((LineEvent::Passed { to, abandoned, allowance, extra }, more))
    }

    /// Looks at one place after the other, from the head on, until so many are to be admitted.
    fn look(&self, most: u32) -> Found {
        let mut found = Found { to: self.head, admitted: 0, abandoned: Vec::new(), is_cut_short: false };
        let last = self.tail().min(self.head + u64::from(MAX_LOOKED_AT));
        // Beyond the batch, only those who waited when they were asked for.
        let is_wanted = |found: &Found| found.admitted < self.allowance || found.to < self.extra_to;
        while found.to < last && found.admitted < most.min(MAX_ADMIT) && is_wanted(&found) {
            match self.place(found.to).map(|place| place.state) {
                Some(PlaceState::Waiting { seen_at }) if self.is_away(seen_at) => {
                    found.abandoned.push(found.to);
                }
                Some(PlaceState::Waiting { .. }) => found.admitted += 1,
                _ => {}
            }
            found.to += 1;
        }
        found.is_cut_short = found.admitted < most && found.to < self.tail();
        found
    }

    /// How many of the first are over for long enough to be forgotten; also remembers who is over, now and then.
    pub(super) fn forgettable(&mut self) -> Option<LineEvent> {
        let now = self.time.now_ms;
        if now - self.remembered.at >= millis(OVER_KEPT) {
            let before = self.remembered.over_to;
            let over_to = self.active.iter().map(|(_, place)| *place).min().unwrap_or(self.head);
            self.remembered = super::hall::Remembered { at: now, over_to, before };
        }
        let is_over = |place: u64| {
            self.place(place).is_some_and(|place| matches!(place.state, PlaceState::Over { .. }))
        };
        let early = self.early.unwrap_or(0);
        // The numbers of those who were drawn are not their places: all of them go, or none.
        if self.base < early && (self.remembered.before < early || !(self.base..early).all(is_over)) {
            return None;
        }
        let last = self.remembered.before.min(self.base + MAX_FORGOTTEN);
        let places = (self.base..last).take_while(|place| is_over(*place)).count() as u64;
        (places > 0).then_some(LineEvent::Trimmed { places })
    }

    /// How long each of those who are admitted by this event has waited.
    pub(super) fn waits(&self, event: &LineEvent) -> Vec<(Duration, u32)> {
        let LineEvent::Passed { to, abandoned, .. } = event else { return Vec::new() };
        let mut waits: Vec<(Duration, u32)> = Vec::new();
        for place in self.head..*to {
            let Some(Place { entered_at, state: PlaceState::Waiting { .. } }) = self.place(place) else {
                continue;
            };
            if abandoned.binary_search(&place).is_ok() {
                continue;
            }
            let waited = Duration::from_millis(self.time.now_ms - entered_at);
            match waits.last_mut() {
                Some((last, people)) if *last == waited => *people += 1,
                _ => waits.push((waited, 1)),
            }
        }
        waits
    }

    pub(super) fn tell(&self, tick: &Tick, done: TickDone, more: bool) -> LineTick {
        let passed_from = tick.known_head.map_or(self.head, |known| {
            known.max(self.head.saturating_sub(MAX_PASSED)).clamp(self.base.min(self.head), self.head)
        });
        let became = |place: u64| match self.place(place).map(|place| place.state) {
            Some(PlaceState::Over { ending, was_admitted: false }) => Some(ending),
            _ => None,
        };
        LineTick {
            crowd: self.crowd(),
            head: self.head,
            tail: self.tail(),
            leaves: self.leaves,
            gone: tick.known_leaves.filter(|known| *known != self.leaves).map(|_| self.gone_bits()),
            passed: (passed_from..self.head).map(became).collect(),
            passed_from,
            next_in: self.next_in(more),
            done,
        }
    }

    fn gone_bits(&self) -> Vec<u8> {
        if self.gaps.all() == 0 {
            return Vec::new();
        }
        let first = self.head / 8 * 8;
        let mut bits = Vec::new();
        for byte in (first..self.tail()).step_by(8) {
            let is_gone = |place: u64| place >= self.head && self.is_gone(place);
            bits.push((0..8).fold(0, |bits, at| bits << 1 | u8::from(is_gone(byte + at))));
        }
        bits
    }

    /// When the next batch can begin.
    fn next_in(&self, more: bool) -> Option<Duration> {
        if more {
            return Some(Duration::ZERO);
        }
        let runs =
            self.state() == LineState::Running || (self.state() == LineState::Paused && self.extra > 0);
        if !runs || self.waiting() == 0 {
            return None;
        }
        let due = if self.extra > 0 { 0 } else { self.next_at };
        let has_room_at = match self.active.first() {
            Some((deadline, _)) if self.room() == 0 => *deadline,
            _ => 0,
        };
        Some(Duration::from_millis(due.max(has_room_at).saturating_sub(self.time.now_ms)))
    }
}
