//! A client of Redis that waits for a lock in one of the ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::lock::{MutexGuard, Waiting};
use lockgate::store::Token;
use redis::aio::MultiplexedConnection;

use super::policy::Policy;
use super::{CostOptions, Failure};
use crate::bench::patient_connection;

/// Longer than any hold.
const LEASE: Duration = Duration::from_secs(30);

/// See whose it is, then delete it.
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// A client with connections of its own. Cheap to clone; a clone is the same client.
#[derive(Clone)]
pub(super) enum Client {
    /// The least that a lock must do: `SET NX PX`, again and again.
    Spinner(Spinner),
    /// The library's.
    Library { gate: Gate, waiting: Waiting },
}

#[derive(Clone)]
pub(super) struct Spinner {
    connection: MultiplexedConnection,
    mark: String,
    backoff: Duration,
    keeps_time: bool,
    pace: Arc<Pace>,
}

/// How long it took from one try to the next, added up.
#[derive(Debug, Default)]
pub(super) struct Pace {
    gaps: AtomicU64,
    nanos: AtomicU64,
}

/// A lock that somebody has.
pub(super) enum Held {
    ByHand { spinner: Spinner, key: String, token: String },
    ByLibrary(MutexGuard),
}

impl Client {
    pub(super) async fn open(
        url: &str,
        mark: &str,
        policy: Policy,
        options: &CostOptions,
        pace: &Arc<Pace>,
    ) -> Result<Self, Failure> {
        let backoff = options.backoff;
        let waiting = match policy {
            Policy::SpinEvery | Policy::SpinPausing => {
                return Ok(Self::Spinner(Spinner {
                    connection: patient_connection(url).await?,
                    mark: mark.to_owned(),
                    backoff,
                    keeps_time: policy == Policy::SpinEvery,
                    pace: Arc::clone(pace),
                }));
            }
            Policy::LibrarySpin => Waiting::Spin { first: backoff, longest: backoff },
            Policy::Notify => Waiting::Notify,
            Policy::HandOff => Waiting::HandOff,
        };
        Ok(Self::Library { gate: Gate::open_with(url, &config(mark)).await?, waiting })
    }

    /// Waits for it.
    pub(super) async fn lock(&self, name: &str) -> Result<Held, Failure> {
        match self {
            Self::Spinner(spinner) => spinner.clone().lock(name).await,
            Self::Library { gate, waiting } => {
                Ok(Held::ByLibrary(gate.mutex(name)?.waiting(*waiting).lock().await?))
            }
        }
    }
}

fn config(mark: &str) -> Config {
    let mut config = Config::default();
    mark.clone_into(&mut config.namespace);
    // A machine that is busy on purpose: an answer that takes a second is not an outage.
    config.redis.response_timeout = Duration::from_secs(20);
    config.redis.call_timeout = Duration::from_secs(60);
    // It is a lab: a Redis that may forget is good enough.
    config.redis.allow_eviction = true;
    config
}

impl Spinner {
    async fn lock(mut self, name: &str) -> Result<Held, Failure> {
        let clock = Clock::system();
        let (key, token) = (format!("{}:{name}", self.mark), Token::random().to_string());
        let mut strokes = tokio::time::interval(self.backoff);
        // The first one is at once.
        strokes.tick().await;
        loop {
            let tried_at = clock.monotonic();
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(&token).arg("NX").arg("PX").arg(LEASE.as_millis().to_string());
            if set.query_async(&mut self.connection).await? {
                return Ok(Held::ByHand { spinner: self, key, token });
            }
            if self.keeps_time {
                strokes.tick().await;
            } else {
                tokio::time::sleep(self.backoff).await;
            }
            self.pace.add(clock.monotonic().since(tried_at));
        }
    }
}

impl Held {
    pub(super) async fn release(self) -> Result<(), Failure> {
        match self {
            Self::ByHand { mut spinner, key, token } => {
                let script = redis::Script::new(COMPARE_AND_DELETE);
                let released: bool = script.key(key).arg(token).invoke_async(&mut spinner.connection).await?;
                if released { Ok(()) } else { Err("the lock was lost while it was held".into()) }
            }
            Self::ByLibrary(guard) => {
                guard.release().await?;
                Ok(())
            }
        }
    }
}

impl Pace {
    fn add(&self, gap: Duration) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The mean, if there was more than one try.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(super) fn period_ms(&self) -> Option<f64> {
        let (gaps, nanos) = (self.gaps.load(Ordering::Relaxed), self.nanos.load(Ordering::Relaxed));
        (gaps > 0).then(|| nanos as f64 / gaps as f64 / 1e6)
    }
}
