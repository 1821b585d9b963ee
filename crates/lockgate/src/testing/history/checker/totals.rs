//! The largest total of a campaign that can have been in force at a time.

use std::collections::{BTreeMap, VecDeque};

use super::Op;

/// A total that was put in force, or may have been.
pub(super) struct Setting<'o> {
    pub(super) op: &'o Op<'o>,
    pub(super) quantity: u64,
    /// When it was acknowledged. Without that it may take effect at any later time, so nothing replaces it for
    /// certain.
    pub(super) acknowledged: Option<u64>,
}

/// A staircase: from each time on, the largest total that is possible.
pub(super) struct Totals {
    steps: Vec<(u64, u64)>,
}

impl Totals {
    /// None when the history does not say how much there was.
    pub(super) fn of(settings: &[Setting<'_>]) -> Option<Self> {
        let mut possible = Possible::default();
        let mut steps = Vec::new();
        for (at, change) in changes(settings) {
            match change {
                Change::MayApply(quantity) => possible.add(quantity),
                Change::Applied(setting) => possible.apply(setting),
            }
            if let Some(largest) = possible.largest() {
                steps.push((at, largest));
            }
        }
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// The largest that was ever possible.
    pub(super) fn ever(&self) -> u64 {
        self.steps.iter().map(|&(_, total)| total).max().unwrap_or(0)
    }

    /// The largest that was possible at `at`; none before the first setting was sent.
    pub(super) fn at(&self, at: u64) -> Option<u64> {
        let reached = self.steps.partition_point(|&(from, _)| from <= at);
        reached.checked_sub(1).map(|index| self.steps[index].1)
    }

    /// The largest that was possible at some time from `from` to `until`.
    pub(super) fn between(&self, from: u64, until: u64) -> Option<u64> {
        let within = self.steps.iter().filter(|&&(at, _)| from <= at && at <= until).map(|&(_, total)| total);
        within.chain(self.at(from)).max()
    }

    /// When it may have changed.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().map(|&(at, _)| at)
    }
}

enum Change<'s> {
    /// Sent, so it may be in force from now on.
    MayApply(u64),
    /// Acknowledged, so those that were acknowledged before it was sent are certainly replaced.
    Applied(&'s Setting<'s>),
}

fn changes<'s>(settings: &'s [Setting<'_>]) -> Vec<(u64, Change<'s>)> {
    let mut changes = Vec::new();
    for setting in settings {
        changes.push((setting.op.invoked, Change::MayApply(setting.quantity)));
        if let Some(at) = setting.acknowledged {
            changes.push((at, Change::Applied(setting)));
        }
    }
    changes.sort_by_key(|&(at, _)| at);
    changes
}

#[derive(Default)]
struct Possible {
    /// Totals that may be in force, and how many settings say so.
    totals: BTreeMap<u64, u64>,
    /// Acknowledged settings that may still be in force, as (acknowledged, quantity), by time.
    replaceable: VecDeque<(u64, u64)>,
}

impl Possible {
    fn add(&mut self, quantity: u64) {
        *self.totals.entry(quantity).or_default() += 1;
    }

    fn apply(&mut self, setting: &Setting<'_>) {
        while let Some(&(at, quantity)) = self.replaceable.front()
            && at < setting.op.invoked
        {
            self.replaceable.pop_front();
            self.remove(quantity);
        }
        self.replaceable.extend(setting.acknowledged.map(|at| (at, setting.quantity)));
    }

    fn remove(&mut self, quantity: u64) {
        if let Some(settings) = self.totals.get_mut(&quantity) {
            *settings -= 1;
            if *settings == 0 {
                self.totals.remove(&quantity);
            }
        }
    }

    fn largest(&self) -> Option<u64> {
        self.totals.last_key_value().map(|(&quantity, _)| quantity)
    }
}
