//! Exclusion by fence: every grant has a higher number than all before it, and a protected resource never goes
//! back to a lower one.

use std::collections::HashMap;

use super::super::violation::Violation;
use super::lock::{Grant, Lock, Write};
use super::order::{Numbered, out_of_order};
use super::{Report, count};

/// Two grants never share a fence, and a grant that was acknowledged before another was asked for has the lower
/// one.
pub(super) fn judge_grants(lock: &str, history: &Lock<'_>, report: &mut Report) {
    report.judged.lock_grants += count(history.grants.len());

    let mut by_fence: HashMap<u64, &Grant<'_>> = HashMap::new();
    for grant in &history.grants {
        if let Some(first) = by_fence.insert(grant.fence, grant) {
            report.add(Violation::FenceGivenTwice {
                lock: lock.to_owned(),
                fence: grant.fence,
                first: first.op.witness(),
                second: grant.op.witness(),
            });
        }
    }

    let numbered: Vec<Numbered> = history.grants.iter().map(Numbered::from).collect();
    for (earlier, later) in out_of_order(&numbered) {
        let (earlier, later) = (&history.grants[earlier], &history.grants[later]);
        report.add(Violation::FenceWentBack {
            lock: lock.to_owned(),
            fence: later.fence,
            later: later.op.witness(),
            higher: earlier.fence,
            earlier: earlier.op.witness(),
        });
    }
}

/// Once a write was acknowledged, none that is sent later with a lower fence gets through.
pub(super) fn judge_writes(resource: &str, writes: &[Write<'_>], report: &mut Report) {
    report.judged.fenced_writes += count(writes.len());

    let numbered: Vec<Numbered> = writes.iter().map(Numbered::from).collect();
    for (earlier, later) in out_of_order(&numbered) {
        let (earlier, later) = (&writes[earlier], &writes[later]);
        report.add(Violation::StaleWriteAccepted {
            resource: resource.to_owned(),
            fence: later.fence,
            later: later.op.witness(),
            higher: earlier.fence,
            earlier: earlier.op.witness(),
        });
    }
}

impl From<&Grant<'_>> for Numbered {
    fn from(grant: &Grant<'_>) -> Self {
        Self { from: grant.op.invoked, until: grant.acknowledged, number: grant.fence }
    }
}

impl From<&Write<'_>> for Numbered {
    fn from(write: &Write<'_>) -> Self {
        Self { from: write.op.invoked, until: write.acknowledged, number: write.fence }
    }
}
