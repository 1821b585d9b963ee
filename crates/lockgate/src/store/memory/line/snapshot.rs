//! A line as it is, to be written in one piece.

use std::collections::HashMap;

use super::hall::{Counts, Hall, Place, PlaceState, Switch};
use crate::key::Name;
use crate::store::{LineDrawn, LineSecrets, LineTerms, Token};

/// All of a line that does not follow from the rest, nor fades with time as its pace does.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(in crate::store::memory) struct Snapshot {
    terms: LineTerms,
    secrets: LineSecrets,
    edition: u64,
    switch: Switch,
    now_ms: u64,
    early: Option<u64>,
    drawn: Option<LineDrawn>,
    time_came: u64,
    opened_at: Option<u64>,
    people: Vec<Name>,
    places: Vec<Place>,
    base: u64,
    head: u64,
    leaves: u64,
    next_at: u64,
    allowance: u32,
    extra: u32,
    extra_to: u64,
    counts: Counts,
    requests: Vec<(Token, u32)>,
}

impl Snapshot {
    pub(super) fn restore(&self) -> Hall {
        let mut hall = Hall::new(self.terms, self.secrets, self.edition);
        hall.time.now_ms = self.now_ms;
        (hall.switch, hall.early, hall.drawn, hall.opened_at) =
            (self.switch, self.early, self.drawn, self.opened_at);
        (hall.time_came, hall.extra_to) = (self.time_came, self.extra_to);
        (hall.base, hall.head, hall.leaves) = (self.base, self.head, self.leaves);
        (hall.next_at, hall.allowance, hall.extra, hall.counts) =
            (self.next_at, self.allowance, self.extra, self.counts);
        hall.people = self.people.iter().cloned().collect();
        hall.places = self.places.iter().copied().collect();
        hall.requests = self.requests.iter().copied().collect();
        // Whoever came again has the later number.
        let numbered = (self.base..).zip(&self.people).map(|(number, user)| (user.clone(), number));
        hall.numbers = numbered.collect::<HashMap<_, _>>();
        for (place, at) in (self.base..).zip(&self.places) {
            match at.state {
                PlaceState::Gone => hall.gaps.add(place),
                PlaceState::Admitted { deadline, .. } => {
                    hall.active.insert((deadline, place));
                }
                PlaceState::Waiting { .. } | PlaceState::Over { .. } => {}
            }
        }
        hall
    }
}

impl Hall {
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            terms: self.terms,
            secrets: self.secrets,
            edition: self.edition,
            switch: self.switch,
            now_ms: self.time.now_ms,
            early: self.early,
            drawn: self.drawn,
            time_came: self.time_came,
            opened_at: self.opened_at,
            people: self.people.iter().cloned().collect(),
            places: self.places.iter().copied().collect(),
            base: self.base,
            head: self.head,
            leaves: self.leaves,
            next_at: self.next_at,
            allowance: self.allowance,
            extra: self.extra,
            extra_to: self.extra_to,
            counts: self.counts,
            requests: self.requests.iter().copied().collect(),
        }
    }

    /// Everybody who waits counts as seen now.
    pub(super) fn see_all(&mut self) {
        let now = self.time.now_ms;
        for place in &mut self.places {
            if let PlaceState::Waiting { seen_at } = &mut place.state {
                *seen_at = now;
            }
        }
    }
}
