//! The store for many processes: Redis or Valkey, standalone, behind Sentinel, or as a Cluster.
//!
//! **Promise:** every operation is one script, so it happens on the server in one step, by the server's clock. A call
//! ends within its [timeout](crate::config::RedisConfig::call_timeout), with an answer or with an error that says
//! whether something may have happened. When the server comes back, the next calls work; nothing has to be restarted.
//! **Not promised:** more durability than the server's own; [`About::persistence`] says what that is.
//!
//! ```text
//! ear.rs               hears what the scripts publish for this process
//! mutex.rs coupon.rs   arguments in, answers out: one function per script
//!   script.rs          EVALSHA, and EVAL when the server has forgotten
//!     link.rs          re-sends a call until it has an answer or its time is up
//!       lane.rs        one connection that comes back by itself, to whoever is the master now
//!         url.rs       where that is
//! greeting.rs          what is checked before a server is trusted
//! ```

use std::sync::Arc;

use redis::ProtocolVersion;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::OpenError;
use crate::key::{Keyspace, Name};
use crate::store::{
    About, Acquire, Answer, Attempt, CouponOpen, CouponStatus, CouponTerms, EarId, Fence, Hearing, Issue,
    Listener, MutexStatus, Release, Renew, Renewal, Store, Token,
};

mod coupon;
mod ear;
mod greeting;
mod lane;
mod link;
mod mutex;
mod script;
mod url;

use self::ear::Stations;
use self::lane::{Endpoint, trusted_certificates};
use self::link::{Link, explain_no_connection};
use self::script::Scripts;
use self::url::{Master, RedisUrl, Topology};

/// See the [module](self).
pub struct RedisStore {
    link: Link,
    keys: Keyspace,
    scripts: Scripts,
    stations: Arc<Stations>,
}

impl RedisStore {
    /// Connects to `url` (`redis://`, `rediss://`, `redis+sentinel://`, `redis+cluster://`) and checks that the server
    /// can be trusted with decisions.
    ///
    /// # Errors
    ///
    /// When the URL makes no sense, when nobody answers, or when the server is too old, may evict keys, or was set up
    /// with another layout. The message names the remedy.
    pub async fn connect(url: &str, config: &Config) -> Result<Self, OpenError> {
        let url = RedisUrl::parse(url)?;
        let partitions = match url.topology {
            Topology::Cluster { .. } => config.redis.cluster_partitions,
            Topology::OneMaster(_) => 1,
        };
        let keys =
            Keyspace::new(&config.namespace, partitions).map_err(|why| OpenError::Config(why.to_string()))?;
        let link = Link::open(&url, &config.redis, Clock::clone(&config.clock)).await?;
        greeting::check_servers(&link, &config.redis).await?;
        greeting::agree_on_layout(&link, &keys).await?;
        greeting::check_channels(&link, &keys).await?;
        let scripts = Scripts::new(&mutex::house(config.claim, &keys, link.is_cluster()));
        let stations = Arc::new(stations(&url, config)?);
        Ok(Self { link, keys, scripts, stations })
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore")
            .field("link", &self.link)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// Where this store's processes can hear.
fn stations(url: &RedisUrl, config: &Config) -> Result<Stations, OpenError> {
    let masters = match &url.topology {
        Topology::OneMaster(master) => vec![master.clone()],
        Topology::Cluster { nodes } => nodes.iter().map(|node| Master::At(Box::new(node.clone()))).collect(),
    };
    let endpoint =
        |master: &Master| Endpoint::of(master, trusted_certificates(&config.redis)?, ProtocolVersion::RESP3);
    let endpoints = masters.iter().map(endpoint).collect::<redis::RedisResult<_>>();
    let endpoints = endpoints.map_err(|why| explain_no_connection(&url.shown, &why.to_string()))?;
    Ok(Stations::new(endpoints, &config.redis))
}

impl Store for RedisStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        Box::pin(mutex::mutex_acquire(self, mutex, attempt))
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(mutex::mutex_renew(self, renewals))
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(mutex::mutex_release(self, mutex, token))
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        Box::pin(mutex::mutex_yield(self, mutex, token, next))
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        Box::pin(mutex::mutex_read(self, mutex))
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        Box::pin(mutex::mutex_break(self, mutex))
    }

    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        ear::listen(&self.stations, &self.keys, ear, listener)
    }

    fn coupon_open<'a>(&'a self, coupon: &'a Name, terms: &'a CouponTerms) -> Answer<'a, CouponOpen> {
        Box::pin(coupon::coupon_open(self, coupon, terms))
    }

    fn coupon_issue<'a>(&'a self, coupon: &'a Name, users: &'a [Name]) -> Answer<'a, Vec<Issue>> {
        Box::pin(coupon::coupon_issue(self, coupon, users))
    }

    fn coupon_read<'a>(&'a self, coupon: &'a Name) -> Answer<'a, Option<CouponStatus>> {
        Box::pin(coupon::coupon_read(self, coupon))
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(greeting::about(&self.link))
    }
}
