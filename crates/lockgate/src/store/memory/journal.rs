//! The journal operations, in memory; and where the entries are kept.

use std::collections::VecDeque;
use std::sync::Arc;

use super::line::LineEvent;
#[cfg(feature = "durable")]
use super::log::Log;
#[cfg(feature = "durable")]
pub(in crate::store::memory) use super::log::Mark;
use super::readers::Readers;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{Campaign, JournalChange, JournalEntry, JournalPosition};

/// How much of the journal an answer was computed from; in memory nobody has to wait for it.
#[cfg(not(feature = "durable"))]
pub(in crate::store::memory) enum Mark {}

/// Where entries go.
#[derive(Debug)]
pub(in crate::store::memory) enum Journal {
    /// Into this process's memory, until they are trimmed.
    Kept(Kept),
    /// Onto the disk, for ever.
    #[cfg(feature = "durable")]
    OnDisk(Log),
}

#[derive(Debug, Default)]
pub(in crate::store::memory) struct Kept {
    entries: VecDeque<Stored>,
    /// How many were before the first of them.
    before: u64,
    limit: Option<usize>,
}

/// An entry as it is kept: there may be millions of them, most of them for one user. Its position is its place.
#[derive(Debug)]
struct Stored {
    campaign: Arc<Campaign>,
    rev: u64,
    at: Timestamp,
    change: StoredChange,
}

#[derive(Debug)]
enum StoredChange {
    IssuedToOne { seq: u64, user: Name },
    Other(Box<JournalChange>),
}

impl StoredChange {
    fn new(change: JournalChange) -> Self {
        match change {
            JournalChange::Issued { seq, mut users, passes } if users.len() == 1 && passes.is_empty() => {
                match users.pop() {
                    Some(user) => Self::IssuedToOne { seq, user },
                    None => Self::Other(Box::new(JournalChange::Issued { seq, users, passes })),
                }
            }
            other => Self::Other(Box::new(other)),
        }
    }
}

impl Stored {
    fn at_position(&self, position: u64) -> JournalEntry {
        let change = match &self.change {
            StoredChange::IssuedToOne { seq, user } => {
                JournalChange::Issued { seq: *seq, users: vec![user.clone()], passes: Vec::new() }
            }
            StoredChange::Other(change) => JournalChange::clone(change),
        };
        let (position, campaign) = (JournalPosition::new(position, 0), Campaign::clone(&self.campaign));
        JournalEntry { position, campaign, rev: self.rev, at: self.at, change }
    }
}

impl Journal {
    /// A journal in memory that drops its oldest entries when there are more than `limit`.
    pub(in crate::store::memory) fn kept(limit: Option<usize>) -> Self {
        Journal::Kept(Kept { limit, ..Kept::default() })
    }

    /// How far it is written, if that has to be waited for.
    pub(in crate::store::memory) fn mark(&self) -> Option<Mark> {
        match self {
            Journal::Kept(_) => None,
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => Some(log.mark()),
        }
    }

    pub(in crate::store::memory) fn in_memory(&mut self) -> Option<&mut Kept> {
        match self {
            Journal::Kept(kept) => Some(kept),
            #[cfg(feature = "durable")]
            Journal::OnDisk(_) => None,
        }
    }

    /// The position of the last entry ever written.
    pub(in crate::store::memory) fn last(&self) -> u64 {
        match self {
            Journal::Kept(kept) => kept.before + kept.entries.len() as u64,
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => log.last(),
        }
    }

    /// A group of readers is done with all up to there. Kept where the entries are.
    pub(in crate::store::memory) fn note_done(&mut self, group: &Name, through: u64) {
        match self {
            Journal::Kept(_) => {
                let _in_memory_only = (group, through);
            }
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => log.note_done(group, through),
        }
    }

    /// Something happened to a line, at that time of its own. In memory it is not kept.
    pub(in crate::store::memory) fn note_line(&mut self, line: &Name, at_ms: u64, event: &LineEvent) {
        match self {
            Journal::Kept(_) => {
                let _in_memory_only = (line, at_ms, event);
            }
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => log.append_line(line, at_ms, event),
        }
    }

    /// A line is no more.
    pub(in crate::store::memory) fn forget_line(&mut self, line: &Name) {
        match self {
            Journal::Kept(_) => {
                let _in_memory_only = line;
            }
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => log.forget_line(line),
        }
    }

    pub(in crate::store::memory) fn append(
        &mut self,
        campaign: &Arc<Campaign>,
        rev: u64,
        at: Timestamp,
        change: JournalChange,
    ) {
        match self {
            Journal::Kept(kept) => kept.append(campaign, rev, at, change),
            #[cfg(feature = "durable")]
            Journal::OnDisk(log) => log.append(campaign, rev, at, change),
        }
    }
}

impl Kept {
    fn append(&mut self, campaign: &Arc<Campaign>, rev: u64, at: Timestamp, change: JournalChange) {
        let (campaign, change) = (Arc::clone(campaign), StoredChange::new(change));
        self.entries.push_back(Stored { campaign, rev, at, change });
        if self.limit.is_some_and(|limit| self.entries.len() > limit) {
            self.drop_first(1);
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.entries.drain(..count);
        self.before += count as u64;
    }

    /// How many of those that are kept stand up to and with that position.
    fn count_through(&self, position: JournalPosition) -> usize {
        let count = usize::try_from(position.major.saturating_sub(self.before)).unwrap_or(usize::MAX);
        count.min(self.entries.len())
    }
}

pub(super) fn journal_read(kept: &Kept, after: JournalPosition, limit: usize) -> Vec<JournalEntry> {
    let first = kept.count_through(after);
    let entries = kept.entries.range(first..).take(limit);
    (kept.before + first as u64 + 1..)
        .zip(entries)
        .map(|(position, entry)| entry.at_position(position))
        .collect()
}

pub(super) fn journal_trim(kept: &mut Kept, readers: &Readers, through: JournalPosition) -> u64 {
    let needed = JournalPosition::new(readers.needed_by_nobody(), 0);
    let count = kept.count_through(through.min(needed));
    kept.drop_first(count);
    count as u64
}
