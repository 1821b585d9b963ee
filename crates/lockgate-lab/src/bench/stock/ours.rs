//! The library: one call of `Coupon::issue` per user.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::stock::{Coupon, Issue, MAX_QUANTITY, Terms};
use tempfile::TempDir;

use super::new_user;
use crate::bench::frame::{Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, NAMESPACE, remove_our_keys};

pub(super) struct Ours {
    name: &'static str,
    url: String,
    folder: Option<TempDir>,
    /// The coupon of the present turn.
    coupon: Mutex<Option<Coupon>>,
}

impl Ours {
    pub(super) fn on_redis(url: &str) -> Self {
        Self { name: "lockgate on Redis", url: url.to_owned(), folder: None, coupon: Mutex::default() }
    }

    pub(super) fn in_memory() -> Self {
        Self {
            name: "lockgate embedded, in memory",
            url: "memory".into(),
            folder: None,
            coupon: Mutex::default(),
        }
    }

    pub(super) fn on_disk() -> Result<Self, Failure> {
        let folder = Some(TempDir::new()?);
        let name = "lockgate embedded, journal on disk before each answer";
        Ok(Self { name, url: String::new(), folder, coupon: Mutex::default() })
    }

    /// An empty store, so that every turn begins alike.
    async fn fresh(&self) -> Result<Gate, Failure> {
        let mut config = Config::default();
        config.namespace = NAMESPACE.into();
        if let Some(folder) = &self.folder {
            let path = folder.path().join("journal.db");
            for file in ["journal.db", "journal.db-wal"] {
                // Not there the first time.
                let _ = std::fs::remove_file(folder.path().join(file));
            }
            return Ok(Gate::open_with(&format!("sqlite:{}", path.display()), &config).await?);
        }
        if self.url != "memory" {
            remove_our_keys(&self.url).await?;
        }
        Ok(Gate::open_with(&self.url, &config).await?)
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        if self.name.ends_with("Redis") { &["eval", "evalsha"] } else { &[] }
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            // The old one first: its file can be opened by one at a time.
            drop(self.coupon.lock().unwrap_or_else(PoisonError::into_inner).take());
            let coupon = self.fresh().await?.coupon("ours")?;
            coupon.open(&Terms::new(MAX_QUANTITY)?).await?;
            *self.coupon.lock().unwrap_or_else(PoisonError::into_inner) = Some(coupon);
            Ok(())
        })
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let coupon = self.coupon.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let coupon = coupon.ok_or("no coupon was opened")?;
            let worker = |_| Box::new(OurWorker(coupon.clone())) as Box<dyn Worker>;
            work_in_tasks((0..tasks).map(worker), length).await
        })
    }
}

/// Asks for one coupon after the other, each for somebody new.
pub(in crate::bench) struct OurWorker(pub(in crate::bench) Coupon);

impl Worker for OurWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            match self.0.issue(new_user()).await? {
                Issue::Issued { .. } => Ok(1),
                other => Err(format!("not issued: {other:?}").into()),
            }
        })
    }
}
