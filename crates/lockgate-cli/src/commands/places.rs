//! The store and the ledger, as the commands that look after them name them.

use std::path::PathBuf;

use clap::Args;
use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::ledger::Ledger;
use lockgate::store::{Campaign, CampaignKind};

use super::Failure;

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct StorePlace {
    /// redis://…, rediss://…, redis+sentinel://…/master-name, redis+cluster://…, or sqlite:<journal> of a server that is stopped
    #[arg(long, env = "LOCKGATE_STORE", value_name = "URL", hide_env_values = true)]
    store: String,

    /// The prefix of all keys in Redis
    #[arg(long, env = "LOCKGATE_NAMESPACE", default_value = "lg", value_name = "NAME")]
    namespace: String,

    /// Certificates (PEM) to trust for rediss:// instead of the system's
    #[arg(long, env = "LOCKGATE_REDIS_CA", value_name = "FILE")]
    redis_ca: Option<PathBuf>,
}

impl StorePlace {
    /// Opens it. Looking at a store must not open campaigns that are recovering: that is for the ledger to say.
    pub(crate) async fn open(self) -> Result<Gate, Failure> {
        let mut config = Config::default();
        config.namespace = self.namespace;
        config.redis.ca_file = self.redis_ca;
        config.ledger_decides = true;
        Ok(Gate::open_with(&self.store, &config).await?)
    }
}

/// Where the ledger is.
#[derive(Debug, Args)]
pub(crate) struct LedgerPlace {
    /// sqlite:<file>, postgres://… or mysql://…
    #[arg(long, env = "LOCKGATE_LEDGER", value_name = "URL", hide_env_values = true)]
    ledger: String,
}

impl LedgerPlace {
    pub(crate) async fn open(self) -> Result<Ledger, Failure> {
        Ok(Ledger::open(&self.ledger).await?)
    }
}

/// Which campaign.
#[derive(Debug, Args)]
pub(crate) struct CampaignPlace {
    /// coupon, deal or sku
    #[arg(value_parser = kind)]
    kind: CampaignKind,

    /// What it is called
    name: String,

    /// The group of an article, if it has one
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

fn kind(word: &str) -> Result<CampaignKind, String> {
    CampaignKind::from_word(word).ok_or_else(|| "must be coupon, deal or sku".into())
}

impl CampaignPlace {
    pub(crate) fn campaign(&self) -> Result<Campaign, Failure> {
        let group = self.group.as_ref().map(|group| Name::new("group", group)).transpose()?;
        Ok(Campaign { group, ..Campaign::new(self.kind, Name::new("name", &self.name)?) })
    }
}
