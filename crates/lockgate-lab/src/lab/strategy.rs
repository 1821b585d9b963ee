//! What a strategy is: a name, a claim, and a way to answer one user.
//!
//! A strategy says in its header what it promises or how it fails, in a constant what the lab has to know, and in one method
//! what happens to a user. Everything else (the crowd, the processes, the judging) is the same for all of them, and none of them
//! knows how it is judged.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::lock::Quorum;
use tokio::sync::OnceCell;

use super::Failure;
use super::audit::Answer;
use super::claim::Claim;
use super::redis_link::RedisLink;
use super::report::Family;
use super::session::Session;
use super::shop::Shop;
use super::strategies;

/// Something that goes on.
pub(super) type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Answers users, in one process, for one round.
pub(super) trait Taker: Send + Sync {
    /// One user wants one.
    fn take(&self, user: u64) -> Doing<'_, Answer>;

    /// Everybody has an answer, in all processes: writes what is still to be written.
    fn finish(&self) -> Doing<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// A way to let a crowd take something limited.
pub(super) struct Strategy {
    /// What `--strategies` calls it.
    pub(super) name: &'static str,
    /// The same in plain words.
    pub(super) title: &'static str,
    pub(super) family: Family,
    pub(super) claim: fn() -> Claim,
    pub(super) needs: &'static [Need],
    pub(super) counting: Counting,
    pub(super) books: Bookkeeping,
    /// Whether somebody dies in every round, who has taken the lock; and how long the others are watched afterwards.
    pub(super) crash: Option<Duration>,
    pub(super) open: fn(Scene) -> Doing<'static, Box<dyn Taker>>,
}

/// What most strategies have in common.
pub(super) const PLAIN: Strategy = Strategy {
    name: "",
    title: "",
    family: Family::Nothing,
    claim: Claim::exact,
    needs: &[],
    counting: Counting::Own,
    books: Bookkeeping::Coupon,
    crash: None,
    open: |_| Box::pin(async { Err("a strategy that nobody has written".into()) }),
};

/// What a strategy cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A Redis.
    Redis,
    /// Three more.
    Quorum,
    /// Transactions that read and write at the same time, which SQLite does not have.
    ConcurrentTransactions,
    /// `SELECT … FOR UPDATE`.
    SelectForUpdate,
}

/// How round trips to Redis are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// By [`RedisLink`].
    Own,
    /// By Redis: the strategy uses the library, whose clients send scripts and little else.
    ClientCommands,
}

/// Where the result stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bookkeeping {
    /// In the tables `coupon` and `issue`.
    Coupon,
    /// In Lockgate's ledger.
    Ledger,
}

/// Everything that a strategy may use in one round. Cheap to clone.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) shop: Shop,
    pub(super) links: Arc<Links>,
    /// Which coupon this round is about.
    pub(super) coupon: i64,
    /// How many there are.
    pub(super) stock: u64,
    /// Which of the processes this is: 0, 1, 2 …
    pub(super) process: usize,
    pub(super) retries: Arc<AtomicU64>,
}

/// The servers beside the database. Each is connected when it is first needed, and then stays.
pub(super) struct Links {
    pub(super) redis_url: Option<String>,
    pub(super) quorum_urls: Vec<String>,
    /// The prefix of every key.
    pub(super) mark: String,
    pub(super) redis: OnceCell<RedisLink>,
    pub(super) gate: OnceCell<Gate>,
    pub(super) quorum: OnceCell<Quorum>,
}

impl Scene {
    /// A transaction about this round's coupon.
    pub(super) async fn begin(&self) -> Result<Session, Failure> {
        self.shop.begin(self.coupon).await
    }

    /// A connection on which every statement is committed by itself.
    pub(super) async fn plain(&self) -> Result<Session, Failure> {
        self.shop.plain(self.coupon).await
    }

    pub(super) async fn redis(&self) -> Result<RedisLink, Failure> {
        let url = self.links.redis_url()?;
        Ok(self.links.redis.get_or_try_init(|| RedisLink::connect(url)).await?.clone())
    }

    pub(super) async fn gate(&self) -> Result<Gate, Failure> {
        let url = self.links.redis_url()?;
        let open = || async { Ok::<_, Failure>(Gate::open_with(url, &self.links.config()).await?) };
        Ok(self.links.gate.get_or_try_init(open).await?.clone())
    }

    pub(super) async fn quorum(&self) -> Result<Quorum, Failure> {
        let (urls, config) = (&self.links.quorum_urls, self.links.config());
        let open = || async { Ok::<_, Failure>(Quorum::open_with(urls, &config).await?) };
        Ok(self.links.quorum.get_or_try_init(open).await?.clone())
    }

    /// A key of this round's own. All keys of a round carry the same hash tag, so they live on one node of a cluster.
    pub(super) fn key(&self, what: &str) -> String {
        key(&self.links.mark, self.coupon, what)
    }

    /// The name of a lock of this round.
    pub(super) fn lock_name(&self) -> String {
        format!("lab-{}", self.coupon)
    }

    /// Somebody had to begin anew.
    pub(super) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn key(mark: &str, coupon: i64, what: &str) -> String {
    format!("{mark}:{{{coupon}}}:{what}")
}

impl Links {
    fn redis_url(&self) -> Result<&str, Failure> {
        self.redis_url.as_deref().ok_or_else(|| "this strategy needs a Redis".into())
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.namespace.clone_from(&self.mark);
        // A crowd on a busy machine on purpose: an answer that takes a second is not an outage.
        config.redis.response_timeout = Duration::from_secs(20);
        config.redis.call_timeout = Duration::from_secs(60);
        // What is measured has to be answered, even by a Redis that may forget: it is a lab.
        config.redis.allow_eviction = true;
        config
    }
}

/// All of them, in the order of the report.
pub(super) fn all() -> &'static [Strategy] {
    strategies::ALL
}

/// A boxed taker, as `open` returns it.
#[expect(clippy::unnecessary_wraps, reason = "it is what a constant of a strategy ends with")]
pub(super) fn opened(taker: impl Taker + 'static) -> Result<Box<dyn Taker>, Failure> {
    Ok(Box::new(taker))
}
