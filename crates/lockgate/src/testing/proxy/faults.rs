//! The faults in force, and what has passed. One for all connections of a proxy.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::Direction;

/// What is wrong with the network just now.
#[derive(Debug, Default)]
pub(super) struct Present {
    pub(super) delay: Duration,
    pub(super) black_hole: PerDirection<bool>,
    pub(super) refuse: bool,
    pub(super) cut_after: PerDirection<Option<usize>>,
    pub(super) replies_to_lose: usize,
    /// Rises with every healing, so that what was decided before it can be told from what came after.
    healed: u64,
}

/// A connection whose next reply is to be lost, unless the network is healed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doom {
    healed: u64,
}

impl Present {
    /// A request has arrived: is its connection to lose the reply?
    pub(super) fn doom_next(&mut self) -> Option<Doom> {
        self.replies_to_lose = self.replies_to_lose.checked_sub(1)?;
        Some(Doom { healed: self.healed })
    }

    pub(super) fn still_holds(&self, doom: Doom) -> bool {
        doom.healed == self.healed
    }
}

/// The faults, and the counters.
#[derive(Debug, Default)]
pub(super) struct Faults {
    present: Mutex<Present>,
    resets: Counter,
    pub(super) connections: Counter,
    pub(super) connections_closed: Counter,
    pub(super) bytes: PerDirection<Counter>,
    pub(super) replies_lost: Counter,
}

impl Faults {
    pub(super) fn get<T>(&self, read: impl FnOnce(&Present) -> T) -> T {
        read(&self.present.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set<T>(&self, change: impl FnOnce(&mut Present) -> T) -> T {
        change(&mut self.present.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn heal(&self) {
        self.set(|now| *now = Present { healed: now.healed + 1, ..Present::default() });
    }

    pub(super) fn reset_all(&self) {
        self.resets.add(1);
    }

    /// Changes when all connections that are open now are to be reset.
    pub(super) fn resets(&self) -> watch::Receiver<u64> {
        self.resets.0.subscribe()
    }
}

/// A number that only rises, and that can be waited for.
#[derive(Debug, Default)]
pub(super) struct Counter(watch::Sender<u64>);

impl Counter {
    pub(super) fn add(&self, by: u64) {
        self.0.send_modify(|count| *count += by);
    }

    pub(super) fn get(&self) -> u64 {
        *self.0.borrow()
    }

    pub(super) async fn reaches(&self, goal: u64) {
        // The sender is ours, so it is there until we are not.
        let _ = self.0.subscribe().wait_for(|count| *count >= goal).await;
    }
}

/// One of something for each way.
#[derive(Debug, Default)]
pub(super) struct PerDirection<T> {
    to_server: T,
    to_client: T,
}

impl<T> PerDirection<T> {
    pub(super) fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub(super) fn of(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}
