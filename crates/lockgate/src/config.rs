//! What can be set when a gate is opened. Every field has a default that is meant for production.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;

/// For how long a waiter holds what was given to it before it has said a word: see [`Config::claim`].
pub(crate) const DEFAULT_CLAIM: Duration = Duration::from_secs(1);

/// How a [`Gate`](crate::Gate) is opened.
///
/// ```
/// use std::time::Duration;
/// use lockgate::config::Config;
///
/// let mut config = Config::default();
/// config.namespace = "shop".into();
/// config.redis.call_timeout = Duration::from_millis(800);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The prefix of every key: 1 to 32 letters, digits, `_` or `-`. Gates that must see each other share it.
    pub namespace: String,
    /// The **claim lease** (1 s): for how long a waiter holds a lock that was given to it before it has said a word. A
    /// waiter that is stopped or cut off at that moment delays the others by this time, and a process that cannot
    /// act for so long loses a lock that it was just given.
    pub claim: Duration,
    /// How many callers of one operation may wait in this process, per partition, while the store is busy with others; the
    /// next one is told [`StoreError::Busy`](crate::error::StoreError::Busy). Coupons, deals, holds and orders; orders over
    /// several partitions are counted from the first call to the last.
    pub max_waiting: usize,
    /// For how long an order over several partitions of a cluster may be under way (10 s) before others may call it off: a
    /// process that dies while it places one keeps the stock from others for this time. A process that is slower than that
    /// is told that its order is not placed.
    pub order_deadline: Duration,
    /// Whether a ledger is written from this store, and decides what can be trusted when the server behind the store has
    /// changed: then no campaign opens before the ledger's writer has compared it. Must be the same in all processes.
    pub ledger_decides: bool,
    /// When the server behind the store has changed (restart, failover, restored from a file), for how long (3 s) campaigns
    /// answer `Recovering` at least, so that every process can say how far it has seen them.
    pub recovery_grace: Duration,
    /// When the server behind the store has changed (restart, failover, restored from a file), for how long nobody is newly
    /// given a lock: the old server may have given one away of which the new one does not know. Should be the longest lease
    /// that anybody uses, the claim included. Whoever held a lock then and is known to the new server may keep it; everybody
    /// else waits, also behind a Redis that is used for the first time. Must be the same in all processes. `None` (the
    /// default): two may hold a lock after a failover until the older lease ends, and only the fence tells them apart. The
    /// embedded store needs none: its locks end with the process. See *When the master changes* in `docs/guarantees.md`.
    ///
    /// What it costs beside the wait: one more read in the store per grant, and a waiter that dies delays the others by the
    /// claim lease even if its connection is closed.
    pub quarantine: Option<Duration>,
    /// How often those who watch a line hear where they stand (1 s), if nothing else happens. One call to the store each time,
    /// for all who watch in this process.
    pub line_tick: Duration,
    /// How many journal entries a store in memory keeps at the most; `None`: all, until they are trimmed.
    pub journal_limit: Option<usize>,
    /// How to talk to Redis; unused by the embedded store.
    pub redis: RedisConfig,
    /// Where the embedded store and this process's timers get their time from.
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        let redis = RedisConfig::default();
        Self {
            namespace: "lg".into(),
            claim: DEFAULT_CLAIM,
            max_waiting: 16_384,
            order_deadline: Duration::from_secs(10),
            ledger_decides: false,
            recovery_grace: Duration::from_secs(3),
            quarantine: None,
            line_tick: Duration::from_secs(1),
            journal_limit: None,
            redis,
            clock: Clock::system(),
        }
    }
}

/// How to talk to Redis.
///
/// A call that gets no answer is sent again, since every operation may be; it ends, with an answer or an error,
/// within [`call_timeout`](Self::call_timeout) whatever happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisConfig {
    /// Multiplexed connections to the server (to each node of a cluster it is always one). More than one helps only
    /// when a core is to spare for each.
    pub connections: usize,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// How long to wait for the answer to one sending of a call.
    pub response_timeout: Duration,
    /// How often a call is sent again when it got no answer, at the most. On a cluster the client library re-sends
    /// each sending as often again; `call_timeout` ends it all.
    pub retry_attempts: u32,
    /// The pause before a call is sent again, give or take a half, so that callers do not come back all at once.
    pub retry_interval: Duration,
    /// The end of a call, re-sending included.
    pub call_timeout: Duration,
    /// Certificates (PEM) to trust for `rediss://` instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Accept a server whose `maxmemory-policy` may evict keys. What it costs: an evicted lock has two holders,
    /// an evicted campaign is unknown.
    pub allow_eviction: bool,
    /// A lock counts as given, or as renewed, when so many replicas of its master have it. 0, the default: as soon as the master
    /// says so, and a failover may forget it. What it costs: a second round trip for every grant, and nobody gets a lock
    /// while there are not so many replicas. See *When the master changes* in `docs/guarantees.md`.
    pub wait_replicas: u32,
    /// For how long to wait for [`wait_replicas`](Self::wait_replicas) (500 ms); after that the lock is given back, and the caller
    /// is told. Should be shorter than the claim lease and than any other.
    pub wait_replicas_for: Duration,
    /// Over how many partitions the names of a cluster are spread. Fixed for ever at first use.
    pub cluster_partitions: u16,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            retry_attempts: 3,
            retry_interval: Duration::from_millis(100),
            call_timeout: Duration::from_secs(3),
            ca_file: None,
            allow_eviction: false,
            wait_replicas: 0,
            wait_replicas_for: Duration::from_millis(500),
            cluster_partitions: 64,
        }
    }
}
