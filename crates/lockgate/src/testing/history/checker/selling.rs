//! Never oversold, never issued twice: judged by the answers alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::answer::Answer;
use super::super::violation::Violation;
use super::stock::{Campaign, Grant, Key};
use super::{Bounds, Op, Report};

pub(super) fn judge(campaign: &Campaign<'_>, bounds: &Bounds, report: &mut Report) {
    judge_total(campaign, report);
    judge_seqs(campaign, report);
    judge_limits(campaign, report);
    if !bounds.resends {
        judge_already(campaign, report);
    }
}

/// At no time is more granted for certain than the largest total that can have been in force.
fn judge_total(campaign: &Campaign<'_>, report: &mut Report) {
    let Some(totals) = &campaign.totals else { return };
    let mut held = Held::default();
    let mut last = None;
    for (at, change) in changes(campaign.grants.iter(), campaign, totals.times()) {
        last = held.apply(change).or(last);
        if let Some(total) = totals.at(at)
            && held.quantity > total
            && let Some(grant) = last
        {
            report.add(Violation::Oversold {
                campaign: campaign.name.to_owned(),
                granted: held.quantity,
                total,
                last: grant.op.witness(),
            });
            return;
        }
    }
}

/// Every seq belongs to one grant, and seqs lie within the total as long as none was freed by a revoke.
fn judge_seqs(campaign: &Campaign<'_>, report: &mut Report) {
    let highest = match &campaign.totals {
        Some(totals) if campaign.revokes.is_empty() => totals.ever(),
        _ => u64::MAX,
    };
    for grant in campaign.grants.iter().filter(|grant| grant.seq < 1 || grant.seq > highest) {
        report.add(Violation::SeqOutOfRange {
            campaign: campaign.name.to_owned(),
            seq: grant.seq,
            user: grant.user.to_owned(),
            total: highest,
            by: grant.op.witness(),
        });
    }
    for pair in campaign.grants.windows(2) {
        if let [first, second] = pair
            && first.seq == second.seq
        {
            report.add(seq_given_twice(
                campaign,
                first.seq,
                (first.user, first.op),
                (second.user, second.op),
            ));
        }
    }
    judge_repeated_issues(campaign, report);
}

/// Two requests of one user must not both be told that they got the same *new* grant.
fn judge_repeated_issues(campaign: &Campaign<'_>, report: &mut Report) {
    let mut issued: HashMap<Key<'_>, &Op<'_>> = HashMap::new();
    for (op, call) in &campaign.issues {
        if let Some((_, Answer::Issued { seq })) = op.answer()
            && let Some(first) = issued.insert((&call.user, *seq), op)
        {
            report.add(seq_given_twice(campaign, *seq, (&call.user, first), (&call.user, op)));
        }
    }
}

fn seq_given_twice(
    campaign: &Campaign<'_>,
    seq: u64,
    (first_user, first): (&str, &Op<'_>),
    (second_user, second): (&str, &Op<'_>),
) -> Violation {
    Violation::SeqGivenTwice {
        campaign: campaign.name.to_owned(),
        seq,
        first_user: first_user.to_owned(),
        first: first.witness(),
        second_user: second_user.to_owned(),
        second: second.witness(),
    }
}

/// At no time does a user have more for certain than one user may have.
fn judge_limits(campaign: &Campaign<'_>, report: &mut Report) {
    let mut users: BTreeMap<&str, Vec<&Grant<'_>>> = BTreeMap::new();
    for grant in &campaign.grants {
        users.entry(grant.user).or_default().push(grant);
    }
    for (user, grants) in users {
        let mut held = Held::default();
        for (_, change) in changes(grants.into_iter(), campaign, std::iter::empty()) {
            let last = held.apply(change);
            if let Some(grant) = last
                && held.quantity > campaign.per_user
            {
                report.add(Violation::UserOverLimit {
                    campaign: campaign.name.to_owned(),
                    user: user.to_owned(),
                    limit: campaign.per_user,
                    held: held.quantity,
                    seqs: held.seqs.iter().copied().collect(),
                    last: grant.op.witness(),
                });
                break;
            }
        }
    }
}

/// Without re-sends, `already` needs somebody else's request that issued it, or may have.
fn judge_already(campaign: &Campaign<'_>, report: &mut Report) {
    let mut issued: HashMap<Key<'_>, u64> = HashMap::new();
    for (op, call) in &campaign.issues {
        if let Some((_, Answer::Issued { seq })) = op.answer() {
            let sent = issued.entry((&call.user, *seq)).or_insert(op.invoked);
            *sent = op.invoked.min(*sent);
        }
    }
    for (op, call) in &campaign.issues {
        let Some((at, Answer::AlreadyIssued { seq })) = op.answer() else { continue };
        let issued_before = issued.get(&(&*call.user, *seq)).is_some_and(|&sent| sent <= at);
        let unknown = campaign.unknown_issues.get(&*call.user);
        if !issued_before && !unknown.is_some_and(|sent| sent.iter().any(|&sent| sent <= at)) {
            report.add(Violation::AlreadyWithoutGrant {
                campaign: campaign.name.to_owned(),
                user: call.user.clone(),
                seq: *seq,
                by: op.witness(),
            });
        }
    }
}

/// What is held for certain at a point of a sweep.
#[derive(Default)]
struct Held {
    quantity: u64,
    seqs: BTreeSet<u64>,
}

/// In the order in which simultaneous changes are applied: the kindest first.
#[derive(Clone, Copy)]
enum Change<'g, 'o> {
    Gone(&'g Grant<'o>),
    Granted(&'g Grant<'o>),
    Look,
}

impl Held {
    /// Returns the grant that was added, if one was.
    fn apply<'g, 'o>(&mut self, change: Change<'g, 'o>) -> Option<&'g Grant<'o>> {
        match change {
            Change::Gone(grant) => {
                self.quantity = self.quantity.saturating_sub(grant.quantity);
                self.seqs.remove(&grant.seq);
                None
            }
            Change::Granted(grant) => {
                self.quantity = self.quantity.saturating_add(grant.quantity);
                self.seqs.insert(grant.seq);
                Some(grant)
            }
            Change::Look => None,
        }
    }
}

/// When the grants were certain and when they may have gone, by time, with looks in between.
fn changes<'g, 'o: 'g>(
    grants: impl Iterator<Item = &'g Grant<'o>>,
    campaign: &Campaign<'o>,
    looks: impl Iterator<Item = u64>,
) -> Vec<(u64, Change<'g, 'o>)> {
    let mut changes: Vec<(u64, Change<'g, 'o>)> = looks.map(|at| (at, Change::Look)).collect();
    for grant in grants {
        let gone = campaign.possibly_gone(grant);
        if grant.since < gone {
            changes.push((grant.since, Change::Granted(grant)));
            changes.push((gone, Change::Gone(grant)));
        }
    }
    changes.sort_by_key(|&(at, change)| {
        let turn = match change {
            Change::Gone(_) => 0,
            Change::Granted(_) => 1,
            Change::Look => 2,
        };
        (at, turn)
    });
    changes
}
