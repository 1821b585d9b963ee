//! Who of this process's people is watching: so that the line knows that they are there, and that they hear what concerns them.
//!
//! Whose turn it is wakes up at once; everybody else now and then. So a line that moves many times a second costs ten thousand
//! watchers no more than one that stands still.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::booth::Booth;
use crate::clock::Moment;
use crate::store::MAX_SEEN;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The bell of each watcher, by place.
    bells: BTreeMap<WatcherId, Arc<Notify>>,
    /// How many there ever were.
    count: u64,
    /// When each place that is watched was last said to be.
    said_at: HashMap<u64, Moment>,
    /// The same, the longest ago first. What does not agree with the above is of an earlier watcher, and is left out when its turn
    /// comes.
    said: VecDeque<(Moment, u64)>,
}

/// Several may watch one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatcherId {
    place: u64,
    number: u64,
}

/// A place, in an edition of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownPlace {
    pub(super) edition: u64,
    pub(super) place: u64,
}

/// Somebody watches, for as long as this lives.
#[derive(Debug)]
pub(super) struct Watching {
    booth: Arc<Booth>,
    at: KnownPlace,
    id: WatcherId,
    bell: Arc<Notify>,
}

/// Fewer stale entries than this are never worth a look.
const FEW: usize = 64;

impl State {
    fn say(&mut self, place: u64, now: Moment) {
        self.said_at.insert(place, now);
        self.said.push_back((now, place));
        if self.said.len() > 2 * self.said_at.len() + FEW {
            let said_at = &self.said_at;
            self.said.retain(|(at, place)| said_at.get(place) == Some(at));
        }
    }

    fn is_watched(&self, place: u64) -> bool {
        let first = WatcherId { place, number: 0 };
        self.bells.range(first..).next().is_some_and(|(id, _)| id.place == place)
    }
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().bells.is_empty()
    }

    /// The places of those who were last said to be there that long ago, at most as many as one call may carry; from now on they
    /// have been said to be.
    pub(super) fn to_be_seen(&self, now: Moment, every: Duration) -> Vec<u64> {
        let mut state = self.lock();
        let mut seen = Vec::new();
        while seen.len() < MAX_SEEN {
            match state.said.front() {
                Some((said_at, _)) if now.since(*said_at) >= every => {}
                _ => break,
            }
            if let Some((said_at, place)) = state.said.pop_front()
                && state.said_at.get(&place) == Some(&said_at)
            {
                seen.push(place);
                state.say(place, now);
            }
        }
        seen
    }

    /// Whether others are still to be said to be there.
    pub(super) fn are_due(&self, now: Moment, every: Duration) -> bool {
        self.lock().said.front().is_some_and(|(said_at, _)| now.since(*said_at) >= every)
    }

    /// Wakes those up whose place the head has passed.
    pub(super) fn ring_before(&self, head: u64) {
        let state = self.lock();
        state.bells.range(..WatcherId { place: head, number: 0 }).for_each(|(_, bell)| bell.notify_one());
    }

    /// Wakes everybody up.
    pub(super) fn ring_all(&self) {
        self.lock().bells.values().for_each(|bell| bell.notify_one());
    }
}

impl Watching {
    /// Somebody begins to watch, and was seen at that moment.
    pub(super) fn begin(booth: &Arc<Booth>, at: KnownPlace, now: Moment) -> Self {
        let mut state = booth.watchers.lock();
        if !state.is_watched(at.place) {
            state.say(at.place, now);
        }
        state.count += 1;
        let (id, bell) = (WatcherId { place: at.place, number: state.count }, Arc::new(Notify::new()));
        state.bells.insert(id, Arc::clone(&bell));
        drop(state);
        Self { booth: Arc::clone(booth), at, id, bell }
    }

    pub(super) fn at(&self) -> KnownPlace {
        self.at
    }

    /// Returns when there may be news. A bell that has rung meanwhile is heard.
    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut state = self.booth.watchers.lock();
        state.bells.remove(&self.id);
        if !state.is_watched(self.at.place) {
            state.said_at.remove(&self.at.place);
        }
    }
}
