//! Exclusion by lease: no two holders ever have reason to trust the same lock at the same time.
//!
//! A holder may trust its lock from the moment the grant was acknowledged until the earliest of: it sends a
//! release (whatever becomes of that); a renewal is answered `lost`; the lease runs out, counted from *before*
//! the acquire, or the latest successful renewal, was sent.

use std::collections::BTreeSet;

use super::super::answer::Answer;
use super::super::operation::Outcome;
use super::super::violation::Violation;
use super::lock::{Grant, Lock, Renewal};
use super::{Bounds, Report, count};

pub(super) fn judge(lock: &str, history: &Lock<'_>, bounds: &Bounds, report: &mut Report) {
    let mut stretches = Vec::new();
    for (index, grant) in history.grants.iter().enumerate() {
        stretches.extend(trusted_stretches(index, grant, history, bounds));
    }
    report.judged.trusted_leases += count(stretches.len());

    for (first, second, overlap_ns) in overlaps(stretches) {
        report.add(Violation::TwoHolders {
            lock: lock.to_owned(),
            overlap_ns,
            first: history.grants[first].op.witness(),
            second: history.grants[second].op.witness(),
        });
    }
}

/// A time in which a holder trusts its lock: from `from` up to, and not including, `until`.
#[derive(Clone, Copy)]
struct Stretch {
    grant: usize,
    from: u64,
    until: u64,
}

/// A successful acquire or renewal: known since `known`, running for `lease_ns` from `sent`.
struct Extent {
    sent: u64,
    known: u64,
    lease_ns: u64,
}

fn trusted_stretches(index: usize, grant: &Grant<'_>, lock: &Lock<'_>, bounds: &Bounds) -> Vec<Stretch> {
    let renewals = lock.renewals.get(&grant.fence).map_or(&[][..], Vec::as_slice);
    let given_back = lock.given_back.get(&grant.fence).copied().unwrap_or(u64::MAX);
    let lost = renewals.iter().filter_map(known_lost).min().unwrap_or(u64::MAX);
    let margin = u64::try_from(bounds.lease_margin.as_nanos()).unwrap_or(u64::MAX);

    let shorter = shorter_than_the_longest(grant, renewals);
    let granted = Extent { sent: grant.op.invoked, known: grant.acknowledged, lease_ns: grant.lease_ns };
    let extents = std::iter::once(granted).chain(renewals.iter().filter_map(successful));
    extents
        .map(|extent| {
            let runs_out = earliest_end(&extent, &shorter).saturating_sub(margin);
            Stretch { grant: index, from: extent.known, until: runs_out.min(given_back).min(lost) }
        })
        .filter(|stretch| stretch.from < stretch.until)
        .collect()
}

fn known_lost(renewal: &Renewal<'_>) -> Option<u64> {
    match renewal.op.answer()? {
        (at, Answer::RenewLost) => Some(at),
        _ => None,
    }
}

fn successful(renewal: &Renewal<'_>) -> Option<Extent> {
    match renewal.op.answer()? {
        (known, Answer::Renewed) => {
            Some(Extent { sent: renewal.op.invoked, known, lease_ns: renewal.lease_ns })
        }
        _ => None,
    }
}

/// When an extent may run out. A renewal with a *shorter* lease cuts it as soon as it may have taken effect, even
/// if its answer never came.
fn earliest_end(extent: &Extent, shorter: &[&Renewal<'_>]) -> u64 {
    shorter
        .iter()
        .filter(|renewal| renewal.lease_ns < extent.lease_ns && may_take_effect_after(renewal, extent.sent))
        .map(|renewal| renewal.op.invoked.max(extent.sent).saturating_add(renewal.lease_ns))
        .fold(extent.sent.saturating_add(extent.lease_ns), u64::min)
}

/// Renewals that may cut something short: none in a watchdog's life, where all leases are the same.
fn shorter_than_the_longest<'r, 'o>(grant: &Grant<'o>, renewals: &'r [Renewal<'o>]) -> Vec<&'r Renewal<'o>> {
    let longest = renewals.iter().map(|renewal| renewal.lease_ns).fold(grant.lease_ns, u64::max);
    renewals.iter().filter(|renewal| renewal.lease_ns < longest).collect()
}

fn may_take_effect_after(renewal: &Renewal<'_>, moment: u64) -> bool {
    match renewal.op.outcome {
        Outcome::Answered { at, answer: Answer::Renewed } => at >= moment,
        Outcome::Unknown { .. } => true,
        Outcome::Answered { .. } | Outcome::Failed { .. } => false,
    }
}

/// Pairs of grants that were trusted at the same time, each pair once. A sweep by start that remembers only what
/// lasts longest may pass over a pair when there are several at once, and still never calls such a lock clean.
fn overlaps(mut stretches: Vec<Stretch>) -> Vec<(usize, usize, u64)> {
    stretches.sort_by_key(|stretch| (stretch.from, stretch.until));
    let mut longest: Option<Stretch> = None;
    let mut reported = BTreeSet::new();
    let mut found = Vec::new();
    for stretch in stretches {
        if let Some(rival) = longest
            && rival.grant != stretch.grant
            && rival.until > stretch.from
        {
            let pair = (rival.grant.min(stretch.grant), rival.grant.max(stretch.grant));
            if reported.insert(pair) {
                found.push((pair.0, pair.1, rival.until.min(stretch.until) - stretch.from));
            }
        }
        if longest.is_none_or(|longest| longest.until < stretch.until) {
            longest = Some(stretch);
        }
    }
    found
}
