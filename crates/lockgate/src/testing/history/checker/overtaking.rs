//! First come, first served, as far as it can be known.
//!
//! B certainly came after A when B was only *sent* after the store had *confirmed* A's place. B was granted before
//! A when its fence is lower: the times of the answers say less, since an answer may be on its way for long. An
//! overtake that is certain on both counts is counted; nothing else is.

use super::super::violation::Violation;
use super::lock::{Grant, Lock};
use super::order::Tally;
use super::{Bounds, Report};

pub(super) fn judge(lock: &str, history: &Lock<'_>, bounds: &Bounds, report: &mut Report) {
    let mut by_fence: Vec<&Grant<'_>> = history.grants.iter().collect();
    by_fence.sort_by_key(|grant| grant.fence);

    let mut granted_before = Tally::over(by_fence.iter().map(|grant| grant.op.invoked));
    let mut sent_last: Option<&Grant<'_>> = None;
    for grant in by_fence {
        if let Some(queued) = grant.op.queued {
            report.judged.queued_waiters += 1;
            let overtakes = granted_before.greater_than(queued);
            if let Some(overtaker) = sent_last
                && overtakes > bounds.lock_overtakes
            {
                report.add(Violation::WaiterOvertaken {
                    lock: lock.to_owned(),
                    waiter: grant.op.witness(),
                    overtakes,
                    allowed: bounds.lock_overtakes,
                    overtaker: overtaker.op.witness(),
                });
            }
        }
        granted_before.add(grant.op.invoked);
        if sent_last.is_none_or(|last| last.op.invoked < grant.op.invoked) {
            sent_last = Some(grant);
        }
    }
}
