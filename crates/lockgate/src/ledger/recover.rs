//! The way back when the store has forgotten something.
//!
//! **Promise:** a campaign that the ledger knows is not opened before the store is at least as far as the ledger and as every
//! live process has seen it. If it is, it opens by itself. If it is not, [`Ledger::recover`] builds it anew from the ledger,
//! the dead letters and what is left of the journal, and says how many changes that somebody had seen are lost. Numbers that
//! may have been told to somebody are not used again.
//! **Not promised:** changes that nobody has seen any more: neither the ledger, nor the journal, nor a process that is alive.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Ledger;
use super::audit::MAX_PAGE;
use super::error::LedgerError;
use super::record::{Record, What};
use super::sql::{Arrival, Known};
use crate::clock::Timestamp;
use crate::store::{
    Campaign, EpochSettle, JournalChange, JournalEntry, JournalPosition, MAX_BATCH, Rebuild, Rebuilt, Reopen,
    Seen, Store,
};

/// What [`Ledger::recover`] has done. Campaigns of which nothing was missing are not mentioned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// What was missing something.
    pub campaigns: Vec<Recovered>,
    /// What could not be recovered, and why. It stays recovering.
    pub failed: Vec<(Campaign, String)>,
    /// How many campaigns are open now.
    pub open: u64,
}

/// A campaign that was missing something, and is open again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Which.
    pub campaign: Campaign,
    /// The number of the last change that the store had; 0 if it had none.
    pub had: u64,
    /// The number of the last change that somebody has seen.
    pub known: u64,
    /// The number of the last change that was found: in the ledger, among the dead letters, in the journal or in the store.
    pub found: u64,
    /// How many of the changes up to `known` were found nowhere. So many grants, at the most, were told to somebody and are in
    /// no book; the numbers that they may have had are not used again.
    pub lost: u64,
}

impl Recovery {
    /// How many changes that somebody has seen are lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.campaigns.iter().map(|campaign| campaign.lost).sum()
    }
}

/// What was written down of a campaign, by number.
type Changes = BTreeMap<u64, (Timestamp, JournalChange)>;

impl Ledger {
    /// Compares the store with the ledger where the server behind the store has changed, and opens what misses nothing. Says
    /// after how long to come again, if somebody may still have something to say.
    pub(super) async fn vouch(&self, store: &dyn Store) -> Result<Option<Duration>, LedgerError> {
        let mut wait = None;
        let mut known = None;
        for partition in 0..store.partitions() {
            if store.epoch_read(partition).await?.is_settled {
                continue;
            }
            let known = match &known {
                Some(known) => known,
                None => known.insert(self.book.campaigns().await?),
            };
            wait = wait.max(self.vouch_for(store, partition, known).await?);
        }
        Ok(wait)
    }

    async fn vouch_for(
        &self,
        store: &dyn Store,
        partition: u16,
        known: &[Known],
    ) -> Result<Option<Duration>, LedgerError> {
        let mut wait = None;
        let seen = self.seen(store, partition, known).await?;
        for (_, answer) in reopen(store, &seen).await? {
            if let Reopen::Early { wait: left } = answer {
                wait = wait.max(Some(left));
            }
        }
        // Not before all of them were decided: nobody would look at this partition again.
        if wait.is_some() {
            return Ok(wait);
        }
        let knows_nothing = seen.iter().all(|seen| seen.rev == 0);
        match store.epoch_settle(partition, knows_nothing).await? {
            EpochSettle::Settled => Ok(wait),
            EpochSettle::Early { wait: left } => Ok(wait.max(Some(left))),
        }
    }

    /// How far the ledger has seen the campaigns of a partition; with those of which only the store knows.
    async fn seen(
        &self,
        store: &dyn Store,
        partition: u16,
        known: &[Known],
    ) -> Result<Vec<Seen>, LedgerError> {
        let mut seen: BTreeMap<Campaign, u64> = BTreeMap::new();
        for campaign in super::audit::campaigns(store, partition).await? {
            seen.insert(campaign, 0);
        }
        for known in known.iter().filter(|known| store.partition_of(known.campaign.home()) == partition) {
            let last = self.book.last_rev(known.id).await?;
            // One of which retention has left nothing need not be there any more.
            if last > 0 || seen.contains_key(&known.campaign) {
                seen.insert(known.campaign.clone(), last.max(known.purged_rev));
            }
        }
        // A dead letter was seen too.
        for letter in self.book.buried().await?.into_iter().filter(|letter| !letter.is_conflict) {
            if let Some(rev) = letter.campaign.and_then(|campaign| seen.get_mut(&campaign)) {
                *rev = letter.rev.max(*rev);
            }
        }
        Ok(seen.into_iter().map(|(campaign, rev)| Seen { campaign, rev }).collect())
    }

    /// The campaigns of which the ledger knows more than the store does. For a store that notices nothing by itself: an embedded
    /// one whose file was lost, or restored from an old copy. Nothing should be sold before there are none.
    ///
    /// # Errors
    ///
    /// When the store or the database does not answer.
    pub async fn ahead_of(&self, store: &dyn Store) -> Result<Vec<Campaign>, LedgerError> {
        let (known, mut ahead) = (self.book.campaigns().await?, Vec::new());
        for partition in 0..store.partitions() {
            let seen = self.seen(store, partition, &known).await?;
            let answers = reopen(store, &seen).await?.into_iter();
            let missing = answers.filter(|(_, answer)| matches!(answer, Reopen::Missing { .. }));
            ahead.extend(missing.map(|(seen, _)| seen.campaign));
        }
        Ok(ahead)
    }

    /// Opens every campaign that is recovering: as it is where nothing is missing, and built anew where something is. Waits
    /// until every live process has had time to say how far it has seen them.
    ///
    /// # Errors
    ///
    /// When the store or the database does not answer, or somebody else recovers at the same time. What was opened stays open;
    /// calling again goes on with the rest.
    ///
    /// # Cancel safety
    ///
    /// What was begun stays recovering; calling again begins it anew.
    pub async fn recover(&self, store: &dyn Store) -> Result<Recovery, LedgerError> {
        while let Some(wait) = self.vouch(store).await? {
            tokio::time::sleep(wait.max(Duration::from_millis(10))).await;
        }
        let known = self.book.campaigns().await?;
        let mut recovery = Recovery::default();
        for partition in 0..store.partitions() {
            let mut seen = self.seen(store, partition, &known).await?;
            let missing = store.epoch_read(partition).await?.missing;
            for (campaign, rev) in missing {
                if !seen.iter().any(|seen| seen.campaign == campaign) {
                    seen.push(Seen { campaign, rev });
                }
            }
            for (Seen { campaign, .. }, answer) in reopen(store, &seen).await? {
                match answer {
                    Reopen::Missing { rev, known: seen } => {
                        let known = known.iter().find(|known| known.campaign == campaign);
                        self.recover_one(store, campaign, known, rev, seen, &mut recovery).await?;
                    }
                    Reopen::Open { .. } => recovery.open += 1,
                    Reopen::Early { .. } | Reopen::Unknown => {}
                }
            }
        }
        Ok(recovery)
    }

    /// One that cannot be recovered is no reason to leave the others alone.
    async fn recover_one(
        &self,
        store: &dyn Store,
        campaign: Campaign,
        known: Option<&Known>,
        had: u64,
        seen: u64,
        recovery: &mut Recovery,
    ) -> Result<(), LedgerError> {
        // What retention has removed entirely was over: a store that still remembers it may forget it too.
        if let Some(purged) = known.filter(|known| known.purged_rev >= seen) {
            store.campaign_forget(&campaign, purged.purged_rev).await?;
            return Ok(());
        }
        match self.rebuild(store, campaign.clone(), known, had, seen).await {
            Ok(recovered) => {
                recovery.open += 1;
                recovery.campaigns.push(recovered);
            }
            Err(LedgerError::Refused(why)) => recovery.failed.push((campaign, why)),
            Err(why) => return Err(why),
        }
        Ok(())
    }

    async fn rebuild(
        &self,
        store: &dyn Store,
        campaign: Campaign,
        known: Option<&Known>,
        had: u64,
        seen: u64,
    ) -> Result<Recovered, LedgerError> {
        if let Some(purged) = known.filter(|known| known.purged_rev > had) {
            return Err(LedgerError::Refused(format!(
                "{campaign:?} was removed from the ledger by retention up to change {}, so it cannot be built anew",
                purged.purged_rev
            )));
        }
        let mut changes = self.all_that_was_written(store, &campaign, known).await?;
        let last = changes.last_key_value().map_or(0, |(rev, _)| *rev);
        let found = last.max(had);
        let mut lost = seen.max(found) - found;
        // What nobody has written down, the store may still have.
        if last > had {
            lost += self.fill_the_gaps(&campaign, &mut changes).await?;
            apply_all(store, &campaign, &changes).await?;
        }
        finish(store, &campaign, found, seen.max(found) - found).await?;
        tracing::warn!(?campaign, had, known = seen, found, lost, "a campaign was recovered");
        Ok(Recovered { campaign, had, known: seen, found, lost })
    }

    /// What the ledger, the dead letters and the journal say of a campaign.
    async fn all_that_was_written(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        known: Option<&Known>,
    ) -> Result<Changes, LedgerError> {
        let mut changes = self.what_the_journal_says(store, campaign).await?;
        let mut after = None;
        loop {
            let page = self.dead_letters(after.as_ref(), MAX_PAGE).await?;
            let Some(last) = page.last().cloned() else { break };
            let letters = page.iter().filter(|letter| !letter.is_conflict);
            let records = letters.filter_map(|letter| Some(letter.arrival()?.record));
            records
                .filter(|record| record.campaign == *campaign)
                .for_each(|record| add(&mut changes, &record));
            after = Some(last);
        }
        let Some(known) = known else { return Ok(changes) };
        let mut after = 0;
        loop {
            let page = self.book.records(known, after, MAX_PAGE).await?;
            let Some(last) = page.last() else { return Ok(changes) };
            after = last.rev;
            // Where they disagree, the ledger is what others have seen.
            page.iter().for_each(|record| add(&mut changes, record));
        }
    }

    async fn what_the_journal_says(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
    ) -> Result<Changes, LedgerError> {
        let (mut changes, mut rows) = (Changes::new(), Vec::new());
        let (partition, mut after) = (store.partition_of(campaign.home()), JournalPosition::START);
        loop {
            let page = store.journal_read(partition, after, MAX_BATCH).await?;
            let Some(last) = page.last() else { return Ok(changes) };
            after = last.position;
            let ours = page.into_iter().filter(|entry| entry.campaign == *campaign);
            ours.for_each(|entry| Record::all_of(entry, &mut rows));
            rows.drain(..).for_each(|record| add(&mut changes, &record));
        }
    }

    /// Counts as lost what nobody has written down, before the last that somebody has; how many changes that are. The ledger
    /// says so first, so that it has no hole where nothing will ever come, also when this is interrupted.
    async fn fill_the_gaps(&self, campaign: &Campaign, changes: &mut Changes) -> Result<u64, LedgerError> {
        let last = changes.last_key_value().map_or(0, |(rev, _)| *rev);
        let gaps: Vec<_> = (1..=last).filter(|rev| !changes.contains_key(rev)).collect();
        if !matches!(changes.get(&1), Some((_, JournalChange::Opened { .. }))) {
            return Err(LedgerError::Refused(format!(
                "nobody has written down how {campaign:?} was opened, so it cannot be built anew"
            )));
        }
        let at = self.clock.wall();
        let lost = |rev: &u64| Arrival {
            part: 0,
            position: JournalPosition::START,
            record: Record::without_content(campaign.clone(), *rev, at, What::Lost),
        };
        self.book.write(&gaps.iter().map(lost).collect::<Vec<_>>()).await?;
        changes.extend(gaps.iter().map(|rev| (*rev, (at, JournalChange::Lost { count: 1 }))));
        Ok(gaps.len() as u64)
    }
}

fn add(changes: &mut Changes, record: &Record) {
    if let Some(change) = record.change() {
        changes.insert(record.rev, (record.at, change));
    }
}

async fn reopen(store: &dyn Store, seen: &[Seen]) -> Result<Vec<(Seen, Reopen)>, LedgerError> {
    let mut answers = Vec::with_capacity(seen.len());
    for some in seen.chunks(MAX_BATCH) {
        let said = store.campaign_reopen(some, true).await?;
        answers.extend(some.iter().cloned().zip(said));
    }
    Ok(answers)
}

async fn apply_all(store: &dyn Store, campaign: &Campaign, changes: &Changes) -> Result<(), LedgerError> {
    store.campaign_rebuild(campaign, &Rebuild::Begin).await?;
    let last = changes.last_key_value().map_or(0, |(rev, _)| *rev);
    let mut after = 0;
    while after < last {
        let through = last.min(after + MAX_BATCH as u64);
        let entries = changes.range(after + 1..=through).map(|(rev, (at, change))| JournalEntry {
            position: JournalPosition::START,
            campaign: campaign.clone(),
            rev: *rev,
            at: *at,
            change: change.clone(),
        });
        let step = Rebuild::Apply { after, entries: entries.collect() };
        expect_rev(campaign, store.campaign_rebuild(campaign, &step).await?, through)?;
        after = through;
    }
    Ok(())
}

async fn finish(store: &dyn Store, campaign: &Campaign, found: u64, lost: u64) -> Result<(), LedgerError> {
    let rebuilt = store.campaign_rebuild(campaign, &Rebuild::Finish { lost }).await?;
    expect_rev(campaign, rebuilt, found + lost)
}

/// Somebody else at the same work would have brought it elsewhere.
fn expect_rev(campaign: &Campaign, rebuilt: Rebuilt, expected: u64) -> Result<(), LedgerError> {
    match rebuilt {
        Rebuilt::Done { rev } | Rebuilt::Open { rev } if rev == expected => Ok(()),
        other => Err(LedgerError::Refused(format!(
            "{campaign:?} was being recovered by somebody else too ({other:?} instead of {expected}), so try again; or it is open in \
             an embedded store with an old journal, so move that file away first"
        ))),
    }
}
