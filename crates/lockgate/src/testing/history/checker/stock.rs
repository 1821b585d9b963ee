//! Gathers what happened to each campaign, and hands it to the rules.

use std::collections::{BTreeMap, HashMap};

use super::super::answer::Answer;
use super::super::call::{Call, Issue, Open, Revoke};
use super::totals::{Setting, Totals};
use super::{Bounds, Op, Report, count, ledger, listing, selling};

/// Who has which grant: users may have several, so the seq is a part of the name.
pub(super) type Key<'o> = (&'o str, u64);

/// The lines of one campaign, sorted by what they are.
#[derive(Default)]
struct Gathered<'o> {
    settings: Vec<Setting<'o>>,
    per_user: Option<u64>,
    issues: Vec<(&'o Op<'o>, &'o Issue)>,
    revokes: Vec<(&'o Op<'o>, &'o Revoke)>,
    listings: Vec<&'o Op<'o>>,
    ledgers: Vec<&'o Op<'o>>,
}

/// What is certain, and what is possible, about one campaign.
pub(super) struct Campaign<'o> {
    pub(super) name: &'o str,
    pub(super) totals: Option<Totals>,
    /// The most that one user may have had.
    pub(super) per_user: u64,
    pub(super) issues: Vec<(&'o Op<'o>, &'o Issue)>,
    /// Acknowledged grants, each once, by seq.
    pub(super) grants: Vec<Grant<'o>>,
    pub(super) acknowledged: HashMap<Key<'o>, usize>,
    /// Per user, when requests were sent of which nobody knows whether they were granted.
    pub(super) unknown_issues: HashMap<&'o str, Vec<u64>>,
    /// Revokes that happened or may have.
    pub(super) revokes: BTreeMap<Key<'o>, TakenBack<'o>>,
    revoke_ops: Vec<&'o Op<'o>>,
}

/// A grant that was acknowledged at least once.
pub(super) struct Grant<'o> {
    pub(super) user: &'o str,
    pub(super) seq: u64,
    /// How much at least; exact when the answer was `issued`.
    pub(super) quantity: u64,
    pub(super) exact: bool,
    /// The first answer that showed it.
    pub(super) since: u64,
    pub(super) op: &'o Op<'o>,
}

/// How a grant was taken back.
#[derive(Clone, Copy)]
pub(super) struct TakenBack<'o> {
    /// From when on it may be gone.
    pub(super) possibly: u64,
    /// From when on it is gone, and by which operation.
    pub(super) certainly: Option<(u64, &'o Op<'o>)>,
}

pub(super) fn judge<'o>(ops: &'o [Op<'o>], bounds: &Bounds, report: &mut Report) {
    for (name, gathered) in gather(ops, bounds) {
        let listings = gathered.listings.clone();
        let ledgers = gathered.ledgers.clone();
        let campaign = Campaign::from_gathered(name, gathered);
        report.judged.campaigns += u64::from(campaign.totals.is_some());
        report.judged.stock_grants += count(campaign.grants.len());
        report.judged.revokes += count(campaign.revokes.len());

        selling::judge(&campaign, bounds, report);
        let listings: Vec<_> = listings.iter().map(|op| listing::judge(&campaign, op, report)).collect();
        let ledgers: Vec<_> = ledgers.iter().map(|op| ledger::judge(&campaign, op, report)).collect();
        if let (Some(listing), Some(ledger)) = (listings.last(), ledgers.last()) {
            ledger::compare(&campaign, listing, ledger, report);
        }
    }
}

fn gather<'o>(ops: &'o [Op<'o>], bounds: &Bounds) -> BTreeMap<&'o str, Gathered<'o>> {
    let mut campaigns: BTreeMap<&str, Gathered<'o>> = BTreeMap::new();
    for op in ops {
        let complete = matches!(op.answer(), Some((_, Answer::Listed { .. })));
        match op.call {
            Call::Open(call) => campaigns.entry(&call.campaign).or_default().note_open(op, call),
            Call::Issue(call) => campaigns.entry(&call.campaign).or_default().issues.push((op, call)),
            Call::Revoke(call) if may_have_revoked(op, bounds) => {
                campaigns.entry(&call.campaign).or_default().revokes.push((op, call));
            }
            Call::ListGrants(call) if complete => {
                campaigns.entry(&call.campaign).or_default().listings.push(op);
            }
            Call::ListLedger(call) if complete => {
                campaigns.entry(&call.campaign).or_default().ledgers.push(op);
            }
            _ => {}
        }
    }
    campaigns
}

/// With re-sends, a revoke that says "no such grant" may have met its own work.
fn may_have_revoked(op: &Op<'_>, bounds: &Bounds) -> bool {
    match op.answer() {
        Some((_, Answer::Revoked)) => true,
        Some(_) => bounds.resends,
        None => op.is_unknown(),
    }
}

impl<'o> Gathered<'o> {
    fn note_open(&mut self, op: &'o Op<'o>, call: &Open) {
        let acknowledged = match op.answer() {
            Some((at, Answer::Opened)) => Some(at),
            None if op.is_unknown() => None,
            _ => return,
        };
        self.settings.push(Setting { op, quantity: call.quantity, acknowledged });
        self.per_user = self.per_user.max(Some(call.per_user));
    }
}

impl<'o> Campaign<'o> {
    fn from_gathered(name: &'o str, gathered: Gathered<'o>) -> Self {
        let mut campaign = Self {
            name,
            totals: Totals::of(&gathered.settings),
            per_user: gathered.per_user.unwrap_or(1),
            grants: acknowledged_grants(&gathered.issues),
            issues: gathered.issues,
            acknowledged: HashMap::new(),
            unknown_issues: HashMap::new(),
            revokes: BTreeMap::new(),
            revoke_ops: gathered.revokes.iter().map(|(op, _)| *op).collect(),
        };
        for (index, grant) in campaign.grants.iter().enumerate() {
            campaign.acknowledged.insert((grant.user, grant.seq), index);
        }
        for (op, call) in campaign.issues.iter().filter(|(op, _)| op.is_unknown()) {
            campaign.unknown_issues.entry(&call.user).or_default().push(op.invoked);
        }
        for (op, call) in gathered.revokes {
            campaign.note_revoke(op, call);
        }
        campaign
    }

    fn note_revoke(&mut self, op: &'o Op<'o>, call: &'o Revoke) {
        let nothing_yet = TakenBack { possibly: op.invoked, certainly: None };
        let taken_back = self.revokes.entry((&call.user, call.seq)).or_insert(nothing_yet);
        taken_back.possibly = taken_back.possibly.min(op.invoked);
        if let Some((at, Answer::Revoked)) = op.answer()
            && taken_back.certainly.is_none_or(|(earlier, _)| at < earlier)
        {
            taken_back.certainly = Some((at, op));
        }
    }

    /// From when on a grant may be gone; the end of time if nobody tried.
    pub(super) fn possibly_gone(&self, grant: &Grant<'o>) -> u64 {
        self.revokes.get(&(grant.user, grant.seq)).map_or(u64::MAX, |revoke| revoke.possibly)
    }

    /// Those of `keys` that nobody can have caused before `before`. Each request of unknown outcome explains one
    /// of its user's.
    pub(super) fn invented<'k>(&self, keys: impl Iterator<Item = Key<'k>>, before: u64) -> Vec<Key<'k>> {
        let mut explained: HashMap<&str, usize> = HashMap::new();
        let mut invented = Vec::new();
        for (user, seq) in keys {
            if self.acknowledged.contains_key(&(user, seq)) {
                continue;
            }
            let used = explained.entry(user).or_default();
            let sent = self.unknown_issues.get(user).map_or(&[][..], Vec::as_slice);
            if *used < sent.iter().filter(|&&at| at <= before).count() {
                *used += 1;
            } else {
                invented.push((user, seq));
            }
        }
        invented
    }

    /// Whether nobody was seen changing the campaign between two times. A request that was never answered counts
    /// only up to when it was given up.
    pub(super) fn is_quiet(&self, from: u64, until: u64) -> bool {
        let busy = |op: &Op<'_>| op.invoked <= until && op.last_heard_of() >= from;
        !self.issues.iter().any(|(op, _)| busy(op)) && !self.revoke_ops.iter().any(|op| busy(op))
    }
}

/// Each acknowledged grant once, with the first answer that showed it, by seq.
fn acknowledged_grants<'o>(issues: &[(&'o Op<'o>, &'o Issue)]) -> Vec<Grant<'o>> {
    let mut least: HashMap<&str, u64> = HashMap::new();
    for (op, call) in issues {
        if op.is_unknown() || matches!(op.answer(), Some((_, answer)) if *answer != Answer::IssueDenied) {
            let quantity = least.entry(&call.user).or_insert(call.quantity);
            *quantity = call.quantity.min(*quantity);
        }
    }
    let mut grants: BTreeMap<(u64, &str), Grant<'o>> = BTreeMap::new();
    for (op, call) in issues {
        let (since, seq, exact) = match op.answer() {
            Some((at, Answer::Issued { seq })) => (at, *seq, true),
            Some((at, Answer::AlreadyIssued { seq })) => (at, *seq, false),
            _ => continue,
        };
        let quantity = if exact { call.quantity } else { least.get(&*call.user).copied().unwrap_or(1) };
        let new = Grant { user: &call.user, seq, quantity, exact, since, op };
        grants.entry((seq, &call.user)).and_modify(|grant| grant.learn(&new)).or_insert(new);
    }
    grants.into_values().collect()
}

impl<'o> Grant<'o> {
    fn learn(&mut self, other: &Grant<'o>) {
        if other.exact && !self.exact {
            (self.quantity, self.exact) = (other.quantity, true);
        }
        if other.since < self.since {
            (self.since, self.op) = (other.since, other.op);
        }
    }
}
