//! Gathers what happened to each lock, and hands it to the rules.

use std::collections::{BTreeMap, HashMap};

use super::super::answer::Answer;
use super::super::call::Call;
use super::{Bounds, Op, Report, fence, lease, overtaking};

/// What happened to one lock.
#[derive(Default)]
pub(super) struct Lock<'o> {
    pub(super) grants: Vec<Grant<'o>>,
    /// By fence, since that is how a holder names its grant.
    pub(super) renewals: HashMap<u64, Vec<Renewal<'o>>>,
    /// When the holder of a fence first meant to give it back.
    pub(super) given_back: HashMap<u64, u64>,
}

/// An acknowledged grant.
pub(super) struct Grant<'o> {
    pub(super) op: &'o Op<'o>,
    pub(super) fence: u64,
    pub(super) lease_ns: u64,
    pub(super) acknowledged: u64,
}

/// An attempt to get more time.
pub(super) struct Renewal<'o> {
    pub(super) op: &'o Op<'o>,
    pub(super) lease_ns: u64,
}

/// An accepted write to a resource that checks the fence.
pub(super) struct Write<'o> {
    pub(super) op: &'o Op<'o>,
    pub(super) fence: u64,
    pub(super) acknowledged: u64,
}

pub(super) fn judge<'o>(ops: &'o [Op<'o>], bounds: &Bounds, report: &mut Report) {
    let mut locks: BTreeMap<&str, Lock<'o>> = BTreeMap::new();
    let mut writes: BTreeMap<&str, Vec<Write<'o>>> = BTreeMap::new();
    for op in ops {
        match op.call {
            Call::Acquire(call) => locks.entry(&call.lock).or_default().note_acquire(op, call.lease_ms),
            Call::Renew(call) => {
                locks.entry(&call.lock).or_default().note_renew(op, call.fence, call.lease_ms);
            }
            Call::Release(call) => locks.entry(&call.lock).or_default().note_release(op, call.fence),
            Call::FencedWrite(call) => {
                if let Some((acknowledged, Answer::WriteAccepted)) = op.answer() {
                    let write = Write { op, fence: call.fence, acknowledged };
                    writes.entry(&call.resource).or_default().push(write);
                }
            }
            _ => {}
        }
    }
    for (name, lock) in &locks {
        fence::judge_grants(name, lock, report);
        lease::judge(name, lock, bounds, report);
        overtaking::judge(name, lock, bounds, report);
    }
    for (resource, writes) in &writes {
        fence::judge_writes(resource, writes, report);
    }
}

impl<'o> Lock<'o> {
    fn note_acquire(&mut self, op: &'o Op<'o>, lease_ms: u64) {
        if let Some((acknowledged, Answer::Acquired { fence })) = op.answer() {
            self.grants.push(Grant { op, fence: *fence, lease_ns: nanos(lease_ms), acknowledged });
        }
    }

    fn note_renew(&mut self, op: &'o Op<'o>, fence: u64, lease_ms: u64) {
        self.renewals.entry(fence).or_default().push(Renewal { op, lease_ns: nanos(lease_ms) });
    }

    /// Whatever becomes of the release: who sends it has stopped trusting.
    fn note_release(&mut self, op: &Op<'_>, fence: u64) {
        let given_back = self.given_back.entry(fence).or_insert(op.invoked);
        *given_back = op.invoked.min(*given_back);
    }
}

fn nanos(millis: u64) -> u64 {
    millis.saturating_mul(1_000_000)
}
