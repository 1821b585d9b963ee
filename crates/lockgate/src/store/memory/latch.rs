//! The operations on count-down latches, in memory.

use std::collections::HashSet;

use super::entries::{Entries, Passing};
use super::{Now, Post};
use crate::clock::Moment;
use crate::key::Name;
use crate::store::latch::LATCH_KEPT;
use crate::store::{LatchSet, LatchStatus, News, Token};

/// All latches that are not forgotten.
pub(super) type Latches = Entries<Name, Entry>;

#[derive(Debug)]
pub(super) struct Entry {
    count: u32,
    round: Token,
    arrived: HashSet<Token>,
    changed_at: Moment,
}

impl Passing for Entry {
    fn is_forgotten(&self, now: Now) -> bool {
        self.changed_at + LATCH_KEPT <= now.monotonic
    }
}

impl Entry {
    fn new(count: u32, round: Token, now: Now) -> Self {
        Self { count, round, arrived: HashSet::new(), changed_at: now.monotonic }
    }

    fn status(&self) -> LatchStatus {
        let arrived = u32::try_from(self.arrived.len()).unwrap_or(u32::MAX);
        LatchStatus { count: self.count, remaining: self.count.saturating_sub(arrived), round: self.round }
    }

    fn is_open(&self) -> bool {
        self.status().remaining == 0
    }
}

pub(super) fn latch_set(latches: &mut Latches, now: Now, latch: &Name, count: u32, round: Token) -> LatchSet {
    match latches.get(latch, now) {
        Some(entry) if entry.round == round => return LatchSet::Set,
        Some(entry) if !entry.is_open() => return LatchSet::Counting(entry.status()),
        _ => {}
    }
    *latches.entry(latch, now, || Entry::new(count, round, now)) = Entry::new(count, round, now);
    LatchSet::Set
}

pub(super) fn latch_count_down(
    latches: &mut Latches,
    now: Now,
    post: &mut Post<'_>,
    latch: &Name,
    token: Token,
    round: Token,
) -> Option<LatchStatus> {
    let entry = latches.get_mut(latch, now)?;
    if entry.round == round && !entry.is_open() && entry.arrived.insert(token) {
        entry.changed_at = now.monotonic;
        if entry.is_open() {
            post.tell_all(&News::Opened(latch.clone()));
        }
    }
    Some(entry.status())
}

pub(super) fn latch_read(latches: &Latches, now: Now, latch: &Name) -> Option<LatchStatus> {
    latches.get(latch, now).map(Entry::status)
}
