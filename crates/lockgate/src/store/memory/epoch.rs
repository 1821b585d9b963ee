//! The operations on what can be trusted, in memory: everything, because nobody takes its place. A campaign that is not there
//! can be built anew all the same, for whoever has lost the disk and has a ledger.

use std::collections::HashMap;

use super::stock::Stock;
use crate::store::{
    Campaign, EpochSettle, EpochStatus, JournalChange, JournalEntry, Rebuild, Rebuilt, Reopen, Seen,
};

/// What was repeated so far of campaigns that are being built anew.
pub(in crate::store::memory) type Rebuilding = HashMap<Campaign, Vec<JournalEntry>>;

pub(super) fn epoch_read(_: &mut Stock<'_>) -> EpochStatus {
    EpochStatus { is_settled: true, missing: Vec::new() }
}

pub(super) fn epoch_settle(_: &mut Stock<'_>, _if_empty: bool) -> EpochSettle {
    EpochSettle::Settled
}

pub(super) fn campaign_reopen(stock: &mut Stock<'_>, seen: &[Seen]) -> Vec<Reopen> {
    let reopen = |seen: &Seen| match (stock.shelves.rev_of(&seen.campaign), seen.rev) {
        (0, 0) => Reopen::Unknown,
        (rev, known) if rev < known => Reopen::Missing { rev, known },
        (rev, _) => Reopen::Open { rev },
    };
    seen.iter().map(reopen).collect()
}

pub(super) fn campaign_rebuild(stock: &mut Stock<'_>, campaign: &Campaign, step: &Rebuild) -> Rebuilt {
    if let rev @ 1.. = stock.shelves.rev_of(campaign) {
        return Rebuilt::Open { rev };
    }
    match step {
        Rebuild::Begin => {
            stock.rebuilding.insert(campaign.clone(), Vec::new());
        }
        Rebuild::Apply { after, entries } => {
            let repeated = stock.rebuilding.entry(campaign.clone()).or_default();
            if last_rev(repeated) == *after {
                repeated.extend_from_slice(entries);
            }
        }
        Rebuild::Finish { lost } => return finish(stock, campaign, *lost),
    }
    Rebuilt::Done { rev: stock.rebuilding.get(campaign).map_or(0, |repeated| last_rev(repeated)) }
}

fn last_rev(repeated: &[JournalEntry]) -> u64 {
    repeated.last().map_or(0, JournalEntry::last_rev)
}

/// All of it in one step, into the journal too: that is what the store is rebuilt from when it is opened again.
fn finish(stock: &mut Stock<'_>, campaign: &Campaign, lost: u64) -> Rebuilt {
    let Stock { shelves, journal, now, rebuilding, .. } = stock;
    let repeated = rebuilding.remove(campaign).unwrap_or_default();
    for JournalEntry { at, change, .. } in repeated {
        shelves.record(campaign, journal, at, change);
    }
    if lost > 0 {
        shelves.record(campaign, journal, *now, JournalChange::Lost { count: lost });
    }
    Rebuilt::Done { rev: shelves.rev_of(campaign) }
}
