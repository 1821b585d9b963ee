//! One line: everybody in it, and where they stand.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::event::ONLY_ERA;
use super::gaps::Gaps;
use super::pace::Pace;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    Crowd, Ending, LineDrawn, LineSecrets, LineState, LineStatus, LineTerms, MAX_STAY, Standing, TicketAt,
    Token,
};

/// How many of the recent waits are remembered.
pub(super) const WAITS_KEPT: usize = 128;

/// See the [module](self).
#[derive(Debug)]
pub(in crate::store::memory) struct Hall {
    pub(super) terms: LineTerms,
    pub(super) secrets: LineSecrets,
    pub(super) edition: u64,
    pub(super) switch: Switch,
    pub(super) time: OwnTime,
    /// Of a line with a pre-queue whose time has come: how many were early.
    pub(super) early: Option<u64>,
    pub(super) drawn: Option<LineDrawn>,
    /// When its time came, with a pre-queue: from then on those who were early have waited.
    pub(super) time_came: u64,
    /// In its own time. `None`: it is not open.
    pub(super) opened_at: Option<u64>,
    /// The number of everybody who is known, over or not.
    pub(super) numbers: HashMap<Name, u64>,
    /// By number, from `base` on.
    pub(super) people: VecDeque<Name>,
    /// By place, from `base` on.
    pub(super) places: VecDeque<Place>,
    pub(super) base: u64,
    pub(super) head: u64,
    /// Those who left and whose place the head has not passed.
    pub(super) gaps: Gaps,
    pub(super) leaves: u64,
    /// Who is admitted, by the end of their time.
    pub(super) active: BTreeSet<(u64, u64)>,
    /// When the next batch may begin, and what is left of the present one.
    pub(super) next_at: u64,
    pub(super) allowance: u32,
    /// How many are to be admitted beyond the rate, and before which place all of them stand.
    pub(super) extra: u32,
    pub(super) extra_to: u64,
    pub(super) counts: Counts,
    pub(super) pace: Pace,
    pub(super) waits: VecDeque<(Duration, u32)>,
    pub(super) requests: VecDeque<(Token, u32)>,
    /// When it was last remembered before which place all are over, and which that was then and the time before.
    pub(super) remembered: Remembered,
}

/// Whether somebody has stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "durable", serde(rename_all = "snake_case"))]
pub(in crate::store::memory) enum Switch {
    Running,
    Paused,
    Closed,
}

/// The line's own time: see [`crate::store::LineTerms::longest_step`].
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnTime {
    /// Milliseconds since the line was made.
    pub(super) now_ms: u64,
    /// What the store's clock said at the last call; `None` when there was none since the process began.
    pub(super) last_call: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Counts {
    pub(super) admitted: u64,
    pub(super) left: u64,
    pub(super) abandoned: u64,
    pub(super) no_shows: u64,
    pub(super) expired: u64,
    pub(super) finished: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembered {
    pub(super) at: u64,
    pub(super) over_to: u64,
    pub(super) before: u64,
}

/// A place, and who stands there in which state; all times in the line's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Place {
    pub(super) entered_at: u64,
    pub(super) state: PlaceState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum PlaceState {
    Waiting {
        seen_at: u64,
    },
    /// Has left; the head has not come here yet.
    Gone,
    Admitted {
        deadline: u64,
        shown_at: Option<u64>,
    },
    Over {
        ending: Ending,
        was_admitted: bool,
    },
}

impl Place {
    pub(super) fn waiting(now: u64) -> Self {
        Self { entered_at: now, state: PlaceState::Waiting { seen_at: now } }
    }
}

/// Rounded up: no period is shorter than was said.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

impl Hall {
    pub(super) fn new(terms: LineTerms, secrets: LineSecrets, edition: u64) -> Self {
        Self {
            terms,
            secrets,
            edition,
            switch: Switch::Running,
            time: OwnTime { now_ms: 0, last_call: None },
            early: None,
            drawn: None,
            time_came: 0,
            opened_at: None,
            numbers: HashMap::new(),
            people: VecDeque::new(),
            places: VecDeque::new(),
            base: 0,
            head: 0,
            gaps: Gaps::default(),
            leaves: 0,
            active: BTreeSet::new(),
            next_at: 0,
            allowance: 0,
            extra: 0,
            extra_to: 0,
            counts: Counts::default(),
            pace: Pace::default(),
            waits: VecDeque::new(),
            requests: VecDeque::new(),
            remembered: Remembered::default(),
        }
    }

    /// Its time goes on, by what has passed since the last call and not more than one step.
    pub(super) fn go_on(&mut self, now: Timestamp) {
        let passed =
            self.time.last_call.map_or(0, |last| now.as_micros().saturating_sub(last.as_micros()) / 1_000);
        let step = passed.min(millis(self.terms.longest_step()));
        // What was not counted of a millisecond is counted the next time.
        let counted = match self.time.last_call {
            Some(last) if passed == step && now >= last => last + Duration::from_millis(step),
            _ => now,
        };
        self.time.last_call = Some(counted);
        self.time.now_ms += step;
        if self.state() == LineState::Running {
            self.pace.go_on(step, &self.terms);
        }
    }

    /// One more than the last number, which is one more than the last place.
    pub(super) fn tail(&self) -> u64 {
        self.base + self.places.len() as u64
    }

    pub(super) fn claim_ms(&self) -> u64 {
        millis(self.terms.claim())
    }

    pub(super) fn state(&self) -> LineState {
        match (self.switch, self.opened_at) {
            (Switch::Closed, _) => LineState::Closed,
            (_, None) if self.early.is_some() => LineState::Drawing,
            (_, None) if self.terms.prequeue => LineState::Early,
            (_, None) => LineState::Scheduled,
            (Switch::Paused, _) => LineState::Paused,
            (Switch::Running, _) => LineState::Running,
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.tail() - self.head - self.gaps.all()
    }

    pub(in crate::store::memory) fn crowd(&self) -> Crowd {
        let (waiting, active) = (self.waiting(), self.active.len() as u64);
        Crowd { state: self.state(), waiting, active, pace: self.pace.measured(&self.terms) }
    }

    pub(super) fn status(&self) -> LineStatus {
        let Counts { admitted, left, abandoned, no_shows, expired, finished } = self.counts;
        LineStatus {
            crowd: self.crowd(),
            terms: self.terms,
            edition: self.edition,
            secrets: self.secrets,
            eras: vec![ONLY_ERA],
            early: self.early,
            drawn: self.drawn,
            arrived: self.tail(),
            head: self.head,
            admitted,
            left,
            abandoned,
            no_shows,
            expired,
            finished,
            recent_waits: self.waits.iter().copied().collect(),
        }
    }

    fn index(&self, place: u64) -> Option<usize> {
        usize::try_from(place.checked_sub(self.base)?).ok()
    }

    pub(super) fn place(&self, place: u64) -> Option<&Place> {
        self.places.get(self.index(place)?)
    }

    pub(super) fn place_mut(&mut self, place: u64) -> Option<&mut Place> {
        let index = self.index(place)?;
        self.places.get_mut(index)
    }

    pub(super) fn is_gone(&self, place: u64) -> bool {
        self.place(place).is_some_and(|place| place.state == PlaceState::Gone)
    }

    /// Whether somebody who was last seen then is absent.
    pub(super) fn is_away(&self, seen_at: u64) -> bool {
        self.terms.grace.is_some_and(|grace| self.time.now_ms - seen_at > millis(grace))
    }

    /// Whether an early one has left, or has not been seen.
    pub(super) fn is_absent(&self, number: u64) -> bool {
        match self.place(number).map(|place| place.state) {
            Some(PlaceState::Waiting { seen_at }) => self.is_away(seen_at),
            _ => true,
        }
    }

    /// Until when somebody who is admitted may stay, if the time begins anew now.
    pub(in crate::store::memory) fn renewed_until(&self, place: u64) -> u64 {
        let now = self.time.now_ms;
        let shown_at = match self.place(place).map(|place| place.state) {
            Some(PlaceState::Admitted { shown_at, .. }) => shown_at.unwrap_or(now),
            _ => now,
        };
        (now + millis(self.terms.pass_ttl)).min(shown_at + millis(MAX_STAY))
    }

    pub(super) fn user_of(&self, number: u64) -> Option<&Name> {
        self.people.get(self.index(number)?)
    }

    /// How many places from the head, those who left not counted.
    fn position(&self, place: u64) -> u64 {
        let gone = self.gaps.before(place, |place| self.is_gone(place));
        place - self.head - gone + 1
    }

    pub(in crate::store::memory) fn standing(&self, ticket: TicketAt) -> Standing {
        let is_early = self.opened_at.is_none() && ticket.number < self.early.unwrap_or(u64::MAX);
        let (Some(place), Some(user)) = (self.place(ticket.place), self.user_of(ticket.number)) else {
            return Standing::Unknown;
        };
        match place.state {
            PlaceState::Over { ending, .. } => Standing::Over(ending),
            PlaceState::Gone => Standing::Over(Ending::Left),
            PlaceState::Waiting { .. } if self.switch == Switch::Closed => Standing::Over(Ending::Closed),
            PlaceState::Waiting { .. } if is_early => Standing::Early,
            PlaceState::Waiting { .. } => Standing::Waiting { position: self.position(ticket.place) },
            // It is over as soon as its time is, although nobody may have taken note yet.
            PlaceState::Admitted { deadline, shown_at } if deadline <= self.time.now_ms => {
                Standing::Over(if shown_at.is_some() { Ending::Expired } else { Ending::NoShow })
            }
            PlaceState::Admitted { deadline, shown_at } => {
                let left = Duration::from_millis(deadline.saturating_sub(self.time.now_ms));
                let until = self.time.last_call.unwrap_or(Timestamp::from_micros(0)) + left;
                Standing::Admitted { user: user.clone(), until, is_shown: shown_at.is_some() }
            }
        }
    }

    /// Somebody who waits gives a sign of life.
    pub(in crate::store::memory) fn see(&mut self, place: u64) {
        let now = self.time.now_ms;
        if let Some(Place { state: PlaceState::Waiting { seen_at }, .. }) = self.place_mut(place) {
            *seen_at = now;
        }
    }

    /// Admits whoever stands there; for how long that one has waited.
    pub(super) fn admit(&mut self, place: u64, now: u64, deadline: u64) -> Duration {
        let Some(admitted) = self.place_mut(place) else { return Duration::ZERO };
        let waited = Duration::from_millis(now - admitted.entered_at);
        admitted.state = PlaceState::Admitted { deadline, shown_at: None };
        self.active.insert((deadline, place));
        self.counts.admitted += 1;
        waited
    }

    pub(super) fn show(&mut self, place: u64, deadline: u64) {
        let now = self.time.now_ms;
        let Some(Place { state: PlaceState::Admitted { deadline: before, shown_at }, .. }) =
            self.place_mut(place)
        else {
            return;
        };
        let old = *before;
        *before = deadline;
        shown_at.get_or_insert(now);
        self.active.remove(&(old, place));
        self.active.insert((deadline, place));
    }

    /// It is over for whoever stands there. One who leaves a place before the head came is a gap until it does.
    pub(super) fn end(&mut self, place: u64, ending: Ending) {
        let is_ahead = place >= self.head;
        let Some(ended) = self.place_mut(place) else { return };
        let before = ended.state;
        match before {
            PlaceState::Waiting { .. } if ending == Ending::Left && is_ahead => {
                ended.state = PlaceState::Gone;
                self.gaps.add(place);
                self.leaves += 1;
                self.counts.left += 1;
            }
            PlaceState::Admitted { deadline, .. } => {
                ended.state = PlaceState::Over { ending, was_admitted: true };
                self.active.remove(&(deadline, place));
                match ending {
                    Ending::NoShow => self.counts.no_shows += 1,
                    Ending::Expired => self.counts.expired += 1,
                    _ => self.counts.finished += 1,
                }
            }
            PlaceState::Waiting { .. } | PlaceState::Gone => {
                ended.state = PlaceState::Over { ending, was_admitted: false };
            }
            PlaceState::Over { .. } => {}
        }
    }

    /// Forgets the first place, and the first number.
    pub(super) fn forget_first(&mut self) {
        let (number, user) = (self.base, self.people.pop_front());
        self.places.pop_front();
        self.base += 1;
        if let Some(user) = user
            && self.numbers.get(&user) == Some(&number)
        {
            self.numbers.remove(&user);
        }
    }
}
