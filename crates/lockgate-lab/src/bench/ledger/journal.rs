//! Where the rows come from: a coupon on Redis, issued in batches as a busy server makes them.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::ledger::{Ledger, Writer, WriterConfig};
use lockgate::stock::{Coupon, MAX_QUANTITY, Terms};
use lockgate::store::{Campaign, CampaignKind, IssueWish, Sending, Store};

use crate::bench::stock::new_users;
use crate::bench::{Failure, NAMESPACE, remove_our_keys};

/// How many users one call takes.
pub(super) const BATCH: u64 = 500;

/// How often it is looked whether all is written: a writer itself looks once a second only.
const LOOK: Duration = Duration::from_millis(2);

/// A store with one coupon.
pub(super) struct Journal {
    gate: Gate,
    campaign: Campaign,
    group: Name,
    sending: Sending,
}

impl Journal {
    /// An empty one.
    pub(super) async fn fresh(redis: &str) -> Result<Self, Failure> {
        remove_our_keys(redis).await?;
        let journal = Self::beside(redis).await?;
        journal.coupon()?.open(&Terms::new(MAX_QUANTITY)?).await?;
        Ok(journal)
    }

    /// The one that somebody else has just begun, over connections of its own.
    pub(super) async fn beside(redis: &str) -> Result<Self, Failure> {
        let mut config = Config::default();
        config.namespace = NAMESPACE.into();
        Ok(Self {
            gate: Gate::open_with(redis, &config).await?,
            campaign: Campaign::new(CampaignKind::Coupon, Name::new("coupon", "ledger")?),
            group: Name::new("group", "ledger")?,
            sending: Sending::once(),
        })
    }

    pub(super) fn coupon(&self) -> Result<Coupon, Failure> {
        Ok(self.gate.coupon("ledger")?)
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.gate.store()
    }

    /// Issues to so many at once, at most to a batch.
    pub(super) async fn issue(&mut self, users: u64) -> Result<(), Failure> {
        let wish = |user| {
            Ok(IssueWish { coupon: self.campaign.clone(), user: Name::new("user", user)?, pass: None })
        };
        let wishes = new_users(users.min(BATCH)).map(wish).collect::<Result<Vec<_>, Failure>>()?;
        self.sending.number += 1;
        self.store().coupon_issue(&self.sending, &wishes).await?;
        Ok(())
    }

    pub(super) async fn fill(&mut self, users: u64) -> Result<(), Failure> {
        let mut left = users;
        while left > 0 {
            self.issue(left).await?;
            left = left.saturating_sub(BATCH);
        }
        Ok(())
    }

    pub(super) fn start_writer(&self, ledger: &Ledger) -> Result<Writer, Failure> {
        Ok(ledger.start(self.store(), WriterConfig::default())?)
    }

    /// For how long the oldest entry has been waiting that no writer has acknowledged; `None` when there is none.
    pub(super) async fn behind(&self) -> Result<Option<Duration>, Failure> {
        let mut most = None;
        for partition in 0..self.store().partitions() {
            let standing = self.store().journal_standing(partition, &self.group).await?;
            most = most.max(standing.oldest_waiting.map(|_| standing.behind));
        }
        Ok(most)
    }

    /// Returns when everything is written and acknowledged.
    pub(super) async fn drained(&self) -> Result<(), Failure> {
        while self.behind().await?.is_some() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}
