//! Exactly one ledger row per change: judged by what the ledger holds in the end.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::row::{Change, LedgerRow, Row};
use super::super::violation::Violation;
use super::listing::Listing;
use super::stock::{Campaign, Key};
use super::{Op, Report, count};

/// A complete ledger, and the grants about which something was said already.
pub(super) struct Ledger<'o> {
    op: &'o Op<'o>,
    /// Per grant, the revs that say so.
    grants: BTreeMap<Key<'o>, BTreeSet<u64>>,
    revokes: BTreeMap<Key<'o>, BTreeSet<u64>>,
    explained: HashSet<Key<'o>>,
}

const GRANT: &str = "grant";
const REVOKE: &str = "revoke";

pub(super) fn judge<'o>(campaign: &Campaign<'o>, op: &'o Op<'o>, report: &mut Report) -> Ledger<'o> {
    let rows: Vec<&LedgerRow> = op.rows.iter().filter_map(|row| as_ledger(row)).collect();
    report.judged.ledgers += 1;
    report.judged.ledger_rows += count(rows.len());

    judge_revs(campaign, op, &rows, report);
    let mut ledger = Ledger::sort_out(op, &rows);
    ledger.judge_repeats(campaign, report);
    ledger.judge_missing(campaign, report);
    ledger.judge_invented(campaign, report);
    ledger
}

fn as_ledger(row: &Row) -> Option<&LedgerRow> {
    match row {
        Row::Ledger(row) => Some(row),
        _ => None,
    }
}

/// Revs run from 1 without a gap and without a repeat.
fn judge_revs(campaign: &Campaign<'_>, op: &Op<'_>, rows: &[&LedgerRow], report: &mut Report) {
    let mut by_rev = rows.to_vec();
    by_rev.sort_by_key(|row| row.rev);
    let mut before = 0;
    for same in by_rev.chunk_by(|one, next| one.rev == next.rev) {
        let (campaign, ledger, rev) = (campaign.name.to_owned(), op.witness(), same[0].rev);
        if same.iter().any(|row| *row != same[0]) {
            report.add(Violation::RevConflict { campaign: campaign.clone(), rev, ledger: ledger.clone() });
        } else if same.len() > 1 {
            report.add(Violation::RevRepeated { campaign: campaign.clone(), rev, ledger: ledger.clone() });
        }
        if rev != before + 1 {
            report.add(Violation::RevGap { campaign, before, after: rev, ledger });
        }
        before = rev;
    }
}

impl<'o> Ledger<'o> {
    fn sort_out(op: &'o Op<'o>, rows: &[&'o LedgerRow]) -> Self {
        let mut ledger =
            Self { op, grants: BTreeMap::new(), revokes: BTreeMap::new(), explained: HashSet::new() };
        for row in rows {
            match &row.change {
                Change::Grant { user, seq } => ledger.grants.entry((user, *seq)).or_default().insert(row.rev),
                Change::Revoke { user, seq } => {
                    ledger.revokes.entry((user, *seq)).or_default().insert(row.rev)
                }
                Change::Other => continue,
            };
        }
        ledger
    }

    fn judge_repeats(&self, campaign: &Campaign<'_>, report: &mut Report) {
        for (change, table) in [(GRANT, &self.grants), (REVOKE, &self.revokes)] {
            for (&(user, seq), revs) in table {
                let mut revs = revs.iter();
                if let (Some(&first), Some(&second)) = (revs.next(), revs.next()) {
                    report.add(Violation::LedgerRowTwice {
                        campaign: campaign.name.to_owned(),
                        change,
                        user: user.to_owned(),
                        seq,
                        first,
                        second,
                        ledger: self.op.witness(),
                    });
                }
            }
        }
    }

    /// What was acknowledged before the ledger was read has its row, also when it was revoked since.
    fn judge_missing(&mut self, campaign: &Campaign<'o>, report: &mut Report) {
        let began = self.op.invoked;
        for grant in campaign.grants.iter().filter(|grant| grant.since < began) {
            let key = (grant.user, grant.seq);
            if !self.grants.contains_key(&key) {
                self.add_missing(campaign, GRANT, key, grant.op, report);
            }
        }
        for (&key, revoke) in &campaign.revokes {
            if let Some((at, by)) = revoke.certainly
                && at < began
                && !self.revokes.contains_key(&key)
            {
                self.add_missing(campaign, REVOKE, key, by, report);
            }
        }
    }

    fn add_missing(
        &mut self,
        campaign: &Campaign<'_>,
        change: &'static str,
        key: Key<'o>,
        by: &Op<'_>,
        report: &mut Report,
    ) {
        self.explained.insert(key);
        report.add(Violation::LedgerRowMissing {
            campaign: campaign.name.to_owned(),
            change,
            user: key.0.to_owned(),
            seq: key.1,
            by: by.witness(),
            ledger: self.op.witness(),
        });
    }

    /// Every row was asked for by somebody.
    fn judge_invented(&mut self, campaign: &Campaign<'_>, report: &mut Report) {
        let ended = self.op.last_heard_of();
        let grants = campaign.invented(self.grants.keys().copied(), ended);
        let revoked =
            |key: &&Key<'o>| campaign.revokes.get(*key).is_some_and(|revoke| revoke.possibly <= ended);
        let revokes: Vec<Key<'o>> = self.revokes.keys().filter(|key| !revoked(key)).copied().collect();
        let invented = grants.into_iter().map(|key| (GRANT, key));
        for (change, key) in invented.chain(revokes.into_iter().map(|key| (REVOKE, key))) {
            self.explained.insert(key);
            report.add(Violation::LedgerRowInvented {
                campaign: campaign.name.to_owned(),
                change,
                user: key.0.to_owned(),
                seq: key.1,
                ledger: self.op.witness(),
            });
        }
    }

    /// Whether a grant stands, as far as the ledger knows.
    fn holds(&self, key: &Key<'_>) -> bool {
        self.grants.contains_key(key) && !self.revokes.contains_key(key)
    }
}

/// Store and ledger hold the same grants, if both were read while nobody changed anything. What one of them was
/// already blamed for is not said again.
pub(super) fn compare<'o>(
    campaign: &Campaign<'o>,
    listing: &Listing<'o>,
    ledger: &Ledger<'o>,
    report: &mut Report,
) {
    let from = listing.op.invoked.min(ledger.op.invoked);
    let until = listing.op.last_heard_of().max(ledger.op.last_heard_of());
    if !campaign.is_quiet(from, until) {
        return;
    }
    let only_listed = listing.rows.keys().filter(|key| !ledger.holds(key)).map(|key| ("store", key));
    let only_written = ledger
        .grants
        .keys()
        .filter(|key| ledger.holds(key) && !listing.rows.contains_key(*key))
        .map(|key| ("ledger", key));
    for (side, key) in only_listed.chain(only_written) {
        if listing.explained.contains(key) || ledger.explained.contains(key) {
            continue;
        }
        report.add(Violation::LedgerDisagrees {
            campaign: campaign.name.to_owned(),
            user: key.0.to_owned(),
            seq: key.1,
            side,
            listing: listing.op.witness(),
            ledger: ledger.op.witness(),
        });
    }
}
