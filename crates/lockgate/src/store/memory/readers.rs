//! Who reads the journal: what each group was given, and what it has acknowledged.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::clock::Moment;
use crate::key::Name;
use crate::store::{JournalEntry, JournalPosition, JournalReader, JournalTaken, MAX_BATCH};

/// All groups. An entry's position is its number here.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Readers(HashMap<Name, Group>);

#[derive(Debug, Default)]
struct Group {
    /// The last entry that was given to one of its readers.
    delivered: u64,
    /// Those that were given and not acknowledged: to whom, and when.
    pending: BTreeMap<u64, (Name, Moment)>,
}

impl Group {
    /// All up to this one are acknowledged.
    fn done_through(&self) -> u64 {
        self.pending.keys().next().map_or(self.delivered, |first| first - 1)
    }
}

/// What a reader is to be given.
#[derive(Debug)]
pub(in crate::store::memory) enum Plan {
    /// What it was given before.
    Again(Vec<u64>),
    /// What comes after all that its group was given.
    Next { delivered: u64 },
}

impl Plan {
    /// From where on the journal has to be read, and how much of it.
    pub(in crate::store::memory) fn span(&self, limit: usize) -> (JournalPosition, usize) {
        match self {
            Plan::Again(positions) => {
                let first = positions.first().copied().unwrap_or(1);
                let last = positions.last().copied().unwrap_or(first);
                (at(first - 1), usize::try_from(last - first + 1).unwrap_or(usize::MAX))
            }
            Plan::Next { delivered } => (at(*delivered), limit),
        }
    }
}

fn at(position: u64) -> JournalPosition {
    JournalPosition::new(position, 0)
}

impl Readers {
    /// What each group has done with when a journal is opened again.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn restored(done: impl IntoIterator<Item = (Name, u64)>) -> Self {
        let group = |delivered| Group { delivered, pending: BTreeMap::new() };
        // A group that was dismissed is as good as one that is new.
        let known = done.into_iter().filter(|(_, through)| *through > 0);
        Self(known.map(|(name, through)| (name, group(through))).collect())
    }

    pub(in crate::store::memory) fn plan(
        &self,
        reader: &JournalReader,
        after: JournalPosition,
        limit: usize,
    ) -> Plan {
        let Some(group) = self.0.get(&reader.group) else { return Plan::Next { delivered: 0 } };
        let after = if after.minor > 0 { after.major } else { after.major.saturating_add(1) };
        let of_reader = group.pending.range(after..).filter(|(_, (name, _))| *name == reader.name);
        let again: Vec<_> = of_reader.map(|(position, _)| *position).take(limit).collect();
        if again.is_empty() { Plan::Next { delivered: group.delivered } } else { Plan::Again(again) }
    }

    /// The last entry that no group needs any more; all of them when there is no group.
    pub(in crate::store::memory) fn needed_by_nobody(&self) -> u64 {
        self.0.values().map(Group::done_through).min().unwrap_or(u64::MAX)
    }

    /// Up to which entry the group has acknowledged all.
    pub(in crate::store::memory) fn done_through(&self, group: &Name) -> u64 {
        self.0.get(group).map_or(0, Group::done_through)
    }
}

/// Gives the reader what was planned and read; `None` when somebody else was given it meanwhile.
pub(super) fn journal_take(
    readers: &mut Readers,
    reader: &JournalReader,
    now: Moment,
    plan: &Plan,
    entries: Vec<JournalEntry>,
) -> Option<Vec<JournalTaken>> {
    let group = readers.0.entry(reader.group.clone()).or_default();
    let positions = match plan {
        Plan::Again(positions) => positions.clone(),
        Plan::Next { delivered } if *delivered != group.delivered => return None,
        Plan::Next { .. } => entries.iter().map(|entry| entry.position.major).collect(),
    };
    for position in &positions {
        group.delivered = group.delivered.max(*position);
        group.pending.insert(*position, (reader.name.clone(), now));
    }
    let mut entries = entries.into_iter().peekable();
    let taken = positions.into_iter().map(|position| {
        while entries.next_if(|entry| entry.position.major < position).is_some() {}
        let entry = entries.next_if(|entry| entry.position.major == position);
        entry.map_or(JournalTaken::Gone { position: at(position) }, JournalTaken::Entry)
    });
    Some(taken.collect())
}

pub(super) fn journal_claim(
    readers: &mut Readers,
    reader: &JournalReader,
    now: Moment,
    idle: Duration,
) -> u64 {
    let Some(group) = readers.0.get_mut(&reader.group) else { return 0 };
    let stranded = group.pending.values_mut().filter(|(_, given_at)| now.since(*given_at) >= idle);
    let mut claimed = 0;
    for holder in stranded.take(MAX_BATCH) {
        *holder = (reader.name.clone(), now);
        claimed += 1;
    }
    claimed
}

pub(super) fn journal_acknowledge(readers: &mut Readers, group: &Name, positions: &[JournalPosition]) -> u64 {
    let Some(group) = readers.0.get_mut(group) else { return 0 };
    let is_new = |position: &&JournalPosition| group.pending.remove(&position.major).is_some();
    positions.iter().filter(is_new).count() as u64
}

/// The position of the oldest entry that the group has not acknowledged, if there is one.
pub(super) fn journal_standing(readers: &Readers, group: &Name, last: u64) -> Option<JournalPosition> {
    let done = readers.done_through(group);
    (done < last).then(|| at(done + 1))
}

pub(super) fn journal_dismiss(readers: &mut Readers, group: &Name) -> bool {
    readers.0.remove(group).is_some()
}
