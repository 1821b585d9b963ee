//! Nothing acknowledged is lost, nothing is invented: judged by what the store holds in the end.

use std::collections::{BTreeMap, HashSet};

use super::super::row::{GrantRow, Row};
use super::super::violation::Violation;
use super::stock::{Campaign, Key};
use super::{Op, Report, count};

/// A complete listing, and the grants about which something was said already.
pub(super) struct Listing<'o> {
    pub(super) op: &'o Op<'o>,
    pub(super) rows: BTreeMap<Key<'o>, &'o GrantRow>,
    pub(super) explained: HashSet<Key<'o>>,
}

pub(super) fn judge<'o>(campaign: &Campaign<'o>, op: &'o Op<'o>, report: &mut Report) -> Listing<'o> {
    let granted: Vec<&GrantRow> = op.rows.iter().filter_map(|row| as_granted(row)).collect();
    let rows = granted.iter().map(|row| ((row.user.as_str(), row.seq), *row)).collect();
    report.judged.listings += 1;
    report.judged.listed_rows += count(granted.len());

    let mut listing = Listing { op, rows, explained: HashSet::new() };
    judge_seqs(campaign, op, &granted, report);
    judge_quantities(campaign, op, &granted, report);
    judge_acknowledged(campaign, &mut listing, report);
    judge_revoked(campaign, &mut listing, report);
    judge_invented(campaign, &mut listing, report);
    listing
}

fn as_granted(row: &Row) -> Option<&GrantRow> {
    match row {
        Row::Granted(row) => Some(row),
        _ => None,
    }
}

/// Each seq once, and without a gap if nothing was revoked and nothing was under way.
fn judge_seqs(campaign: &Campaign<'_>, op: &Op<'_>, rows: &[&GrantRow], report: &mut Report) {
    let mut seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    seqs.sort_unstable();
    for chunk in seqs.chunk_by(|one, next| one == next).filter(|chunk| chunk.len() > 1) {
        report.add(Violation::ListedTwice {
            campaign: campaign.name.to_owned(),
            seq: chunk[0],
            listing: op.witness(),
        });
    }
    seqs.dedup();
    let settled = campaign.revokes.is_empty() && campaign.is_quiet(op.invoked, op.last_heard_of());
    if let Some((missing, _)) = (1..).zip(&seqs).find(|(expected, seq)| expected != *seq)
        && settled
    {
        report.add(Violation::SeqsNotDense {
            campaign: campaign.name.to_owned(),
            rows: count(rows.len()),
            missing,
            listing: op.witness(),
        });
    }
}

/// Not more in all, and not more per user, than there may be.
fn judge_quantities(campaign: &Campaign<'_>, op: &Op<'_>, rows: &[&GrantRow], report: &mut Report) {
    let granted = rows.iter().map(|row| row.quantity).fold(0, u64::saturating_add);
    let total = campaign.totals.as_ref().and_then(|totals| totals.between(op.invoked, op.last_heard_of()));
    if let Some(total) = total
        && granted > total
    {
        let (campaign, listing) = (campaign.name.to_owned(), op.witness());
        report.add(Violation::OversoldInListing { campaign, granted, total, listing });
    }

    let mut users: BTreeMap<&str, (u64, Vec<u64>)> = BTreeMap::new();
    for row in rows {
        let (held, seqs) = users.entry(&row.user).or_default();
        *held = held.saturating_add(row.quantity);
        seqs.push(row.seq);
    }
    for (user, (held, seqs)) in users.into_iter().filter(|(_, (held, _))| *held > campaign.per_user) {
        report.add(Violation::UserOverLimitInListing {
            campaign: campaign.name.to_owned(),
            user: user.to_owned(),
            limit: campaign.per_user,
            held,
            seqs,
            listing: op.witness(),
        });
    }
}

/// What was acknowledged before the listing began, and cannot have been revoked before it ended, is in it.
fn judge_acknowledged<'o>(campaign: &Campaign<'o>, listing: &mut Listing<'o>, report: &mut Report) {
    let op = listing.op;
    let certain = campaign
        .grants
        .iter()
        .filter(|grant| grant.since < op.invoked && campaign.possibly_gone(grant) > op.last_heard_of());
    for grant in certain {
        match listing.rows.get(&(grant.user, grant.seq)) {
            None => {
                listing.explained.insert((grant.user, grant.seq));
                report.add(Violation::GrantLost {
                    campaign: campaign.name.to_owned(),
                    user: grant.user.to_owned(),
                    seq: grant.seq,
                    by: grant.op.witness(),
                    listing: op.witness(),
                });
            }
            Some(row) if grant.exact && row.quantity != grant.quantity => {
                report.add(Violation::GrantAltered {
                    campaign: campaign.name.to_owned(),
                    user: grant.user.to_owned(),
                    seq: grant.seq,
                    asked: grant.quantity,
                    listed: row.quantity,
                    by: grant.op.witness(),
                    listing: op.witness(),
                });
            }
            Some(_) => {}
        }
    }
}

/// What was certainly taken back before the listing began is not in it.
fn judge_revoked<'o>(campaign: &Campaign<'o>, listing: &mut Listing<'o>, report: &mut Report) {
    for (&(user, seq), revoke) in &campaign.revokes {
        if let Some((at, by)) = revoke.certainly
            && at < listing.op.invoked
            && listing.rows.contains_key(&(user, seq))
        {
            listing.explained.insert((user, seq));
            report.add(Violation::RevokeLost {
                campaign: campaign.name.to_owned(),
                user: user.to_owned(),
                seq,
                by: by.witness(),
                listing: listing.op.witness(),
            });
        }
    }
}

/// Every row was asked for by somebody, and that request was not refused.
fn judge_invented(campaign: &Campaign<'_>, listing: &mut Listing<'_>, report: &mut Report) {
    let invented = campaign.invented(listing.rows.keys().copied(), listing.op.last_heard_of());
    for (user, seq) in invented {
        listing.explained.insert((user, seq));
        report.add(Violation::GrantInvented {
            campaign: campaign.name.to_owned(),
            user: user.to_owned(),
            seq,
            listing: listing.op.witness(),
        });
    }
}
