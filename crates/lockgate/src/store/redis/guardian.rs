//! Notices that the server has changed, says how far this process has seen each campaign, and trusts those again that are at
//! least as far.
//!
//! **Promise:** what this process was told is not forgotten by a server that has forgotten it: such a campaign stays
//! `Recovering`. A process that asks for nothing notices within [`WATCH`], which is well within the time that those who
//! decide give to all others.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::time::sleep;

use super::ear::Stations;
use super::greeting::run_ids;
use super::link::Link;
use super::script::Scripts;
use super::{Caution, RedisStore};
use crate::error::StoreError;
use crate::key::Keyspace;
use crate::store::{Campaign, EpochSettle, MAX_BATCH, Reopen, Seen, Store};

/// How often a process looks whether the server is still the same.
const WATCH: Duration = Duration::from_secs(1);

/// The pause after a look at a partition that could not be put right: it may be asked for thousands of times a second.
const PAUSE: Duration = Duration::from_millis(500);

/// What this process knows of the campaigns on the server.
#[derive(Debug, Default)]
pub(super) struct Guardian {
    /// How far each was, the last time that it was seen.
    seen: RwLock<HashMap<Campaign, u64>>,
    /// The partitions that are to be looked after.
    ailing: Mutex<BTreeSet<u16>>,
    is_at_work: AtomicBool,
    /// Whether this process decides, or leaves it to the ledger.
    pub(super) decides: bool,
    /// How long those who know something have time to say it.
    pub(super) grace: Duration,
}

/// What an answer says of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Rev(u64),
    Unknown,
    Recovering,
}

impl Standing {
    pub(super) fn read(word: &str) -> Self {
        match word.parse() {
            Ok(rev) => Standing::Rev(rev),
            Err(_) if word == "recovering" => Standing::Recovering,
            Err(_) => Standing::Unknown,
        }
    }
}

impl Guardian {
    pub(super) fn new(decides: bool, grace: Duration) -> Self {
        Self { decides, grace, ..Self::default() }
    }

    /// Notes how far campaigns are; whether one of them is recovering.
    pub(super) fn note<'a>(&self, standings: impl Iterator<Item = (&'a Campaign, Standing)>) -> bool {
        let mut is_recovering = false;
        for (campaign, standing) in standings {
            match standing {
                Standing::Rev(rev) => self.note_rev(campaign, rev),
                Standing::Unknown => {}
                Standing::Recovering => is_recovering = true,
            }
        }
        is_recovering
    }

    /// Answers may overtake each other, so the highest counts.
    fn note_rev(&self, campaign: &Campaign, rev: u64) {
        let is_known = |seen: &HashMap<Campaign, u64>| seen.get(campaign).is_some_and(|known| *known >= rev);
        if is_known(&self.seen.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        match seen.get_mut(campaign) {
            Some(known) => *known = rev.max(*known),
            None => drop(seen.insert(campaign.clone(), rev)),
        }
    }

    fn seen(&self) -> HashMap<Campaign, u64> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ailing(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.ailing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RedisStore {
    /// Sees to it that a partition is looked after, soon, and by one task.
    pub(super) fn look_after(&self, partition: u16) {
        self.guardian.ailing().insert(partition);
        if self.guardian.is_at_work.swap(true, Ordering::AcqRel) {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(work(self.clone()))),
            Err(_) => self.guardian.is_at_work.store(false, Ordering::Release),
        }
    }

    /// The same for all partitions of which this process has seen something.
    fn look_after_all(&self) {
        let seen = self.guardian.seen();
        let partitions: BTreeSet<_> =
            seen.keys().map(|campaign| self.partition_of(campaign.home())).collect();
        partitions.into_iter().for_each(|partition| self.look_after(partition));
    }

    /// Says what this process has seen, and trusts what can be trusted; after how long it should be tried again, if it should.
    async fn reopen_all(&self, partition: u16) -> Result<Option<Duration>, StoreError> {
        let mut seen = self.guardian.seen();
        seen.retain(|campaign, _| self.partition_of(campaign.home()) == partition);
        if self.guardian.decides {
            for campaign in super::campaign::list_all(self, partition).await? {
                seen.entry(campaign).or_insert(0);
            }
        }
        let seen: Vec<_> = seen.into_iter().map(|(campaign, rev)| Seen { campaign, rev }).collect();
        let mut wait: Option<Duration> = None;
        for some in seen.chunks(MAX_BATCH) {
            let answers = self.campaign_reopen(some, self.guardian.decides).await?;
            for (Seen { campaign, .. }, answer) in some.iter().zip(answers) {
                match answer {
                    Reopen::Early { wait: left } if self.guardian.decides => wait = wait.max(Some(left)),
                    Reopen::Missing { rev, known } => tracing::error!(
                        ?campaign,
                        rev,
                        known,
                        "the store has forgotten changes; `lockgate recover` rebuilds the campaign"
                    ),
                    _ => {}
                }
            }
        }
        if self.guardian.decides
            && let EpochSettle::Early { wait: left } = self.epoch_settle(partition, false).await?
        {
            wait = wait.max(Some(left));
        }
        Ok(wait)
    }
}

/// Looks after all that ails. Ends when nothing does.
async fn work(store: RedisStore) {
    loop {
        let Some(partition) = store.guardian.ailing().pop_first() else { break };
        match store.reopen_all(partition).await {
            Ok(None) => {}
            Ok(Some(wait)) => {
                store.guardian.ailing().insert(partition);
                sleep(wait.min(PAUSE)).await;
                continue;
            }
            Err(why) => {
                tracing::warn!(%why, partition, "could not look after the campaigns of a server that has changed");
                store.guardian.ailing().insert(partition);
            }
        }
        // What is still recovering will be asked for again.
        sleep(PAUSE).await;
    }
    store.guardian.is_at_work.store(false, Ordering::Release);
    // Somebody may have come meanwhile and found us still at work.
    let next = store.guardian.ailing().first().copied();
    if let Some(partition) = next {
        store.look_after(partition);
    }
}

/// Watches whether the server is still the same, for as long as the store is there.
pub(super) struct Watch {
    link: Arc<Link>,
    keys: Keyspace,
    scripts: Arc<Scripts>,
    stations: Arc<Stations>,
    caution: Arc<Caution>,
    /// Not to keep the store alive.
    guardian: Weak<Guardian>,
    runs: Vec<String>,
}

impl Watch {
    pub(super) fn over(store: &RedisStore, runs: Vec<String>) -> Self {
        let RedisStore { link, keys, scripts, stations, guardian, caution } = store.clone();
        Self { link, keys, scripts, stations, caution, guardian: Arc::downgrade(&guardian), runs }
    }

    /// The store, if it is still there.
    fn store(&self) -> Option<RedisStore> {
        let guardian = self.guardian.upgrade()?;
        let (link, scripts) = (Arc::clone(&self.link), Arc::clone(&self.scripts));
        let (stations, caution) = (Arc::clone(&self.stations), Arc::clone(&self.caution));
        Some(RedisStore { link, keys: self.keys.clone(), scripts, stations, guardian, caution })
    }

    pub(super) async fn run(mut self) {
        loop {
            sleep(WATCH).await;
            let Some(store) = self.store() else { return };
            let Ok(runs) = run_ids(&store.link).await else { continue };
            if runs != self.runs {
                tracing::warn!("the server has changed; its campaigns are looked at before they are trusted");
                self.runs = runs;
                store.look_after_all();
            }
        }
    }
}
