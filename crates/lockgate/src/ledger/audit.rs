//! Granted = persisted + in flight + dead letters, for every campaign.
//!
//! **Promise:** it may be asked while everybody sells and writes, and what it says was true at one moment of each campaign:
//! that of its `rev`. A change that is nowhere is found, and so is one that is there with two contents, a store that has
//! forgotten what the ledger knows, and a campaign that only one of them has heard of.
//!
//! How, while all of it moves: the campaign's `rev` and counts are read first, so the changes 1 … rev are fixed. Then the
//! journal, then the ledger: a change moves from the former to the latter only, so it is seen in at least one of them, and
//! what is seen in both is counted as persisted.

use std::collections::{BTreeMap, HashMap};

use super::Ledger;
use super::dead_letter::Buried;
use super::error::LedgerError;
use super::record::Record;
use super::sql::{Known, Totals};
use crate::error::StoreError;
use crate::store::{Campaign, CampaignStatus, MAX_BATCH, Store};

/// How many rows are read at once.
pub(super) const MAX_PAGE: usize = 10_000;

/// What an audit has found. Made by [`Ledger::audit`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Audit {
    /// Every campaign that the store or the ledger knows.
    pub campaigns: Vec<CampaignAudit>,
    /// How many dead letters there are that nobody could read, so that it is not known whose they are.
    pub unreadable: u64,
}

/// What an audit has found about one campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CampaignAudit {
    /// Which.
    pub campaign: Campaign,
    /// The number of its last change, by the store.
    pub rev: u64,
    /// How many are granted and not revoked, by the store.
    pub granted: i64,
    /// How many of them are in the ledger.
    pub persisted: i64,
    /// How many are in the journal, and not yet in the ledger.
    pub in_flight: i64,
    /// How many are dead letters.
    pub dead_lettered: i64,
    /// How many changes are dead letters.
    pub dead_letters: u64,
    /// How many changes up to `rev` are nowhere.
    pub missing: u64,
    /// How many changes came with two contents.
    pub conflicts: u64,
    /// How many changes the ledger has that the store has forgotten.
    pub forgotten: u64,
    /// Whether the store knows the campaign.
    pub is_in_store: bool,
}

/// What an audit says in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Light {
    /// Everything that was decided is in the ledger or on its way.
    Green,
    /// Nothing is lost; but there are dead letters, for somebody to decide.
    Yellow,
    /// Something is missing, or was decided twice.
    Red,
}

impl Light {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Light::Green => "green",
            Light::Yellow => "yellow",
            Light::Red => "red",
        }
    }
}

impl CampaignAudit {
    /// One that the store does not have.
    fn lost(campaign: &Campaign) -> Self {
        Self {
            campaign: campaign.clone(),
            rev: 0,
            granted: 0,
            persisted: 0,
            in_flight: 0,
            dead_lettered: 0,
            dead_letters: 0,
            missing: 0,
            conflicts: 0,
            forgotten: 0,
            is_in_store: false,
        }
    }

    /// What it says in one word.
    #[must_use]
    pub fn light(&self) -> Light {
        let adds_up = self.granted == self.persisted + self.in_flight + self.dead_lettered;
        let is_whole = self.missing == 0 && self.conflicts == 0 && self.forgotten == 0;
        match (adds_up && is_whole && self.is_in_store, self.dead_letters) {
            (false, _) => Light::Red,
            (true, 0) => Light::Green,
            (true, _) => Light::Yellow,
        }
    }
}

impl Audit {
    /// What it says in one word.
    #[must_use]
    pub fn light(&self) -> Light {
        let unreadable = if self.unreadable > 0 { Light::Yellow } else { Light::Green };
        self.campaigns.iter().map(CampaignAudit::light).max().unwrap_or(Light::Green).max(unreadable)
    }

    /// Whether everything that was decided is in the ledger or on its way.
    #[must_use]
    pub fn is_green(&self) -> bool {
        self.light() == Light::Green
    }

    fn record_metrics(&self) {
        let sum = |of: fn(&CampaignAudit) -> i64| self.campaigns.iter().map(of).sum::<i64>();
        let light = match self.light() {
            Light::Green => 0.0,
            Light::Yellow => 1.0,
            Light::Red => 2.0,
        };
        metrics::gauge!("lockgate_audit_light").set(light);
        for (name, value) in [
            ("lockgate_audit_granted", sum(|audit| audit.granted)),
            ("lockgate_audit_persisted", sum(|audit| audit.persisted)),
            ("lockgate_audit_in_flight", sum(|audit| audit.in_flight)),
            ("lockgate_audit_dead_lettered", sum(|audit| audit.dead_lettered)),
            ("lockgate_audit_missing", sum(|audit| signed(audit.missing))),
            ("lockgate_audit_conflicts", sum(|audit| signed(audit.conflicts))),
            ("lockgate_audit_forgotten", sum(|audit| signed(audit.forgotten))),
        ] {
            // Gauges are floating-point numbers: beyond 2^53 the last digits would be lost.
            metrics::gauge!(name).set(value as f64);
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The changes of one campaign that are somewhere else than in the ledger: what each is in grants.
type Changes = BTreeMap<u64, i64>;

/// What is known of one partition, in the order in which it has to be asked.
struct Look {
    statuses: HashMap<Campaign, CampaignStatus>,
    in_flight: HashMap<Campaign, Changes>,
    /// How far somebody has seen campaigns that are recovering.
    marks: HashMap<Campaign, u64>,
}

impl Ledger {
    /// Looks whether everything that the store has decided is in the ledger, on its way, or a dead letter. Counts every row.
    ///
    /// # Errors
    ///
    /// When the store or the database does not answer.
    ///
    /// # Cancel safety
    ///
    /// Only looks.
    pub async fn audit(&self, store: &dyn Store) -> Result<Audit, LedgerError> {
        let mut looks = Vec::new();
        for partition in 0..store.partitions() {
            let statuses = statuses(store, partition).await?;
            let in_flight = self.in_flight(store, partition).await?;
            let marks = store.epoch_read(partition).await?.missing.into_iter().collect();
            looks.push(Look { statuses, in_flight, marks });
        }
        let (buried, known) = (self.book.buried().await?, self.book.campaigns().await?);
        let known: HashMap<_, _> = known.into_iter().map(|known| (known.campaign.clone(), known)).collect();
        let mut campaigns = Vec::new();
        for Look { statuses, in_flight, marks } in &looks {
            for (campaign, status) in statuses {
                let changes = in_flight.get(campaign).cloned().unwrap_or_default();
                let known = known.get(campaign);
                let mut audit = self.audit_one(store, campaign, status, changes, known, &buried).await?;
                let marked = marks.get(campaign).map_or(0, |mark| mark.saturating_sub(status.rev));
                audit.forgotten = audit.forgotten.max(marked);
                campaigns.push(audit);
            }
            // Only a process remembers these.
            let unknown =
                |campaign: &&Campaign| !statuses.contains_key(*campaign) && !known.contains_key(*campaign);
            for campaign in marks.keys().filter(unknown) {
                campaigns.push(CampaignAudit { forgotten: marks[campaign], ..CampaignAudit::lost(campaign) });
            }
        }
        let is_in_store = |campaign: &Campaign| looks.iter().any(|look| look.statuses.contains_key(campaign));
        for known in known.values().filter(|known| known.purged_rev == 0 && !is_in_store(&known.campaign)) {
            // It may have been opened since.
            if status_of(store, &known.campaign).await?.is_none() {
                campaigns.push(self.audit_lost(known).await?);
            }
        }
        campaigns.sort_by(|one, other| one.campaign.cmp(&other.campaign));
        let unreadable = buried.iter().filter(|buried| buried.campaign.is_none()).count() as u64;
        let audit = Audit { campaigns, unreadable };
        audit.record_metrics();
        Ok(audit)
    }

    async fn audit_one(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        status: &CampaignStatus,
        mut in_flight: Changes,
        known: Option<&Known>,
        buried: &[Buried],
    ) -> Result<CampaignAudit, LedgerError> {
        let rev = status.rev;
        in_flight.retain(|change, _| *change <= rev);
        let (mut totals, mut forgotten) = (Totals::default(), 0);
        if let Some(known) = known {
            totals = self.book.totals(known.id, rev).await?;
            totals.rows += known.purged_rev;
            totals.granted += known.purged_granted;
            let last = self.book.last_rev(known.id).await?.max(known.purged_rev);
            // The store may have gone on since it was asked.
            let now =
                if last > rev { status_of(store, campaign).await?.map_or(0, |now| now.rev) } else { rev };
            forgotten = last.saturating_sub(now);
            self.leave_out_what_is_persisted(known, &mut in_flight).await?;
        }
        let of_it = || buried.iter().filter(|buried| buried.campaign.as_ref() == Some(campaign));
        let mut refused: Changes = of_it()
            .filter(|buried| !buried.is_conflict && buried.rev <= rev)
            .map(|buried| (buried.rev, buried.granted))
            .collect();
        // One that was replayed meanwhile is persisted.
        if let Some(known) = known {
            self.leave_out_what_is_persisted(known, &mut refused).await?;
        }
        in_flight.retain(|change, _| !refused.contains_key(change));
        let somewhere = totals.rows + in_flight.len() as u64 + refused.len() as u64;
        Ok(CampaignAudit {
            campaign: campaign.clone(),
            rev,
            granted: signed(status.granted),
            persisted: totals.granted,
            in_flight: in_flight.values().sum(),
            dead_lettered: refused.values().sum(),
            dead_letters: of_it().count() as u64,
            missing: rev.saturating_sub(somewhere),
            conflicts: of_it().filter(|buried| buried.is_conflict).count() as u64,
            forgotten,
            is_in_store: true,
        })
    }

    /// A campaign that the ledger knows and the store does not.
    async fn audit_lost(&self, known: &Known) -> Result<CampaignAudit, LedgerError> {
        let totals = self.book.totals(known.id, u64::MAX).await?;
        let lost = CampaignAudit::lost(&known.campaign);
        Ok(CampaignAudit { persisted: totals.granted, forgotten: totals.rows, ..lost })
    }

    async fn leave_out_what_is_persisted(
        &self,
        known: &Known,
        in_flight: &mut Changes,
    ) -> Result<(), LedgerError> {
        let (Some(first), Some(last)) =
            (in_flight.keys().next().copied(), in_flight.keys().next_back().copied())
        else {
            return Ok(());
        };
        let mut after = first - 1;
        while after < last {
            let page = self.book.records(known, after, MAX_PAGE).await?;
            let Some(last_of_page) = page.last().map(|record| record.rev) else { return Ok(()) };
            for record in page {
                in_flight.remove(&record.rev);
            }
            after = last_of_page;
        }
        Ok(())
    }

    /// What is in the journal and not acknowledged.
    async fn in_flight(
        &self,
        store: &dyn Store,
        partition: u16,
    ) -> Result<HashMap<Campaign, Changes>, LedgerError> {
        let mut found: HashMap<Campaign, Changes> = HashMap::new();
        let standing = store.journal_standing(partition, &self.group).await?;
        let Some(oldest) = standing.oldest_waiting else { return Ok(found) };
        let mut after = oldest.previous();
        let mut records = Vec::new();
        while after < standing.last {
            let page = store.journal_read(partition, after, MAX_BATCH).await?;
            let Some(last) = page.last().map(|entry| entry.position) else { break };
            page.into_iter().for_each(|entry| Record::all_of(entry, &mut records));
            for record in records.drain(..) {
                let granted = record.granted();
                found.entry(record.campaign).or_default().insert(record.rev, granted);
            }
            after = last;
        }
        Ok(found)
    }
}

/// All campaigns of a partition, as they stand.
async fn statuses(
    store: &dyn Store,
    partition: u16,
) -> Result<HashMap<Campaign, CampaignStatus>, LedgerError> {
    let mut statuses = HashMap::new();
    for campaign in campaigns(store, partition).await? {
        if let Some(status) = status_of(store, &campaign).await? {
            statuses.insert(campaign, status);
        }
    }
    Ok(statuses)
}

/// How a campaign stands, if the store has it. One that was lost with a server is not there.
async fn status_of(store: &dyn Store, campaign: &Campaign) -> Result<Option<CampaignStatus>, LedgerError> {
    match store.campaign_read(campaign).await {
        Err(StoreError::Recovering) => Ok(None),
        status => Ok(status?),
    }
}

/// All campaigns of a partition.
pub(super) async fn campaigns(store: &dyn Store, partition: u16) -> Result<Vec<Campaign>, LedgerError> {
    let mut all: Vec<Campaign> = Vec::new();
    loop {
        let page = store.campaign_list(partition, all.last(), MAX_BATCH).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}
