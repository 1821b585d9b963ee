//! The store for many processes: Redis or Valkey, standalone, behind Sentinel, or as a Cluster.
//!
//! **Promise:** every operation is one script, so it happens on the server in one step, by the server's clock. A call
//! ends within its [timeout](crate::config::RedisConfig::call_timeout), with an answer or with an error that says
//! whether something may have happened. When the server comes back, the next calls work; nothing has to be restarted.
//! **Not promised:** more durability than the server's own; [`About::persistence`] says what that is.
//!
//! ```text
//! mutex.rs coupon.rs   arguments in, answers out: one function per script
//!   script.rs          EVALSHA, and EVAL when the server has forgotten
//!     link.rs          re-sends a call until it has an answer or its time is up
//!       lane.rs        one connection that comes back by itself, to whoever is the master now
//!         url.rs       where that is
//! greeting.rs          what is checked before a server is trusted
//! ```

use crate::clock::Clock;
use crate::config::Config;
use crate::error::OpenError;
use crate::key::{Keyspace, Name};
use crate::store::{
    About, Acquire, Answer, CouponOpen, CouponStatus, CouponTerms, Fence, Issue, Lease, Release, Renew,
    Store, Token,
};

mod coupon;
mod greeting;
mod lane;
mod link;
mod mutex;
mod script;
mod url;

use self::link::Link;
use self::url::{RedisUrl, Topology};

/// See the [module](self).
#[derive(Debug)]
pub struct RedisStore {
    link: Link,
    keys: Keyspace,
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
        Ok(Self { link, keys })
    }
}

impl Store for RedisStore {
    fn mutex_acquire<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        lease: Lease,
        fence_seen: Fence,
    ) -> Answer<'a, Acquire> {
        Box::pin(mutex::mutex_acquire(self, mutex, token, lease, fence_seen))
    }

    fn mutex_renew<'a>(&'a self, mutex: &'a Name, token: &'a Token, lease: Lease) -> Answer<'a, Renew> {
        Box::pin(mutex::mutex_renew(self, mutex, token, lease))
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(mutex::mutex_release(self, mutex, token))
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
