//! A mutex on the majority of several independent servers (Redlock, with a fence).
//!
//! **Promise:** as long as a majority of the servers neither fails nor forgets what it has acknowledged, at most one holder
//! at a time, up to the drift of their clocks during one lease, which is allowed for; and every grant has a fence above all
//! before it: it is known to a majority before the grant counts, and any two majorities share a server. A minority of the
//! servers may be dead, stopped or cut off, and costs nothing but their answers.
//!
//! **Not promised:** any order among those who wait: nobody stands in a queue of several servers, so they try again and
//! again. And nothing about a server that comes back without what it had acknowledged, within a lease: let it come back
//! with its data (`appendfsync always`), or set [`Config::quarantine`](crate::config::Config) for the quorum.
//!
//! ```text
//! quorum     the recipe
//!   members  the servers: asks all of them, and goes on as soon as the outcome is certain
//!   guard    what is held, and its watchdog
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::LockError;
use super::metrics::{Counted, Metrics};
use super::terms::Terms;
use crate::clock::Moment;
use crate::config::Config;
use crate::error::{InvalidInput, OpenError};
use crate::jitter::jittered;
use crate::key::Name;
use crate::store::{Acquire, Attempt, Fence, Lease, Store, Token};

mod guard;
mod members;

pub use self::guard::QuorumGuard;
pub use self::members::MemberStatus;
use self::members::Members;

/// How far clocks may run apart during a lease: a hundredth of it, and two milliseconds for the smallest.
fn drift(lease: Lease) -> Duration {
    lease.length() / 100 + Duration::from_millis(2)
}

/// Several independent servers: see the [module documentation](super) on which lock is for whom.
///
/// ```no_run
/// use lockgate::lock::Quorum;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let quorum = Quorum::open(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]).await?;
/// let guard = quorum.mutex("order:42")?.lock().await?;
/// println!("mine, with fence {}", guard.fence());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Quorum {
    members: Arc<Members>,
}

impl Quorum {
    /// Opens the servers at these URLs, with the default configuration.
    ///
    /// # Errors
    ///
    /// See [`open_with`](Self::open_with).
    pub async fn open<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self, OpenError> {
        Self::open_with(urls, &Config::default()).await
    }

    /// Opens the servers at these URLs: three, five or another odd number, and no two the same. A minority of them may be
    /// away; they take part when they are back.
    ///
    /// # Errors
    ///
    /// When they are fewer than three or an even number, when two are the same server, when one must not be used as it is,
    /// and when no majority of them answers.
    pub async fn open_with<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        config: &Config,
    ) -> Result<Self, OpenError> {
        let urls = urls.into_iter().map(|url| url.as_ref().to_owned()).collect();
        Ok(Self { members: Members::open(urls, config).await? })
    }

    /// A quorum of stores that are open already: an odd number of at least three. The configuration's clock must be theirs.
    ///
    /// # Errors
    ///
    /// When they are fewer than three or an even number, or when two are the same.
    pub fn on(stores: Vec<Arc<dyn Store>>, config: &Config) -> Result<Self, OpenError> {
        Ok(Self { members: Members::on(stores, config)? })
    }

    /// The mutex called `name`.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn mutex(&self, name: impl AsRef<str>) -> Result<QuorumMutex, InvalidInput> {
        let (members, name) = (Arc::clone(&self.members), Name::new("mutex", name)?);
        Ok(QuorumMutex { members, name, terms: Terms::default(), wait: None })
    }
}

/// A mutex on the majority of several servers. A recipe, cheap to make and to clone.
#[derive(Clone)]
pub struct QuorumMutex {
    members: Arc<Members>,
    name: Name,
    terms: Terms,
    wait: Option<Duration>,
}

/// The first pause between two tries, and the longest: they double, give or take a half.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

impl QuorumMutex {
    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Waits no longer than this. Without it, a wait lasts for as long as it takes.
    #[must_use]
    pub fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Holds it no longer than this: then it is lost, whether the work is done or not. There is no watchdog then.
    ///
    /// # Errors
    ///
    /// When it is longer than 24 h, or shorter than 10 ms: less is eaten up by the drift that is allowed for.
    pub fn lease(mut self, length: Duration) -> Result<Self, InvalidInput> {
        self.terms = Terms { lease: long_enough(length)?, is_kept: false };
        Ok(self)
    }

    /// Renews a lease of this length for as long as it is held, instead of the 30 s: a holder that dies is noticed after
    /// this time.
    ///
    /// # Errors
    ///
    /// As [`lease`](Self::lease).
    pub fn watchdog(mut self, length: Duration) -> Result<Self, InvalidInput> {
        self.terms = Terms { lease: long_enough(length)?, is_kept: true };
        Ok(self)
    }

    /// Takes the lock if a majority of the servers gives it at this moment; `None` otherwise.
    ///
    /// # Errors
    ///
    /// [`LockError::NoQuorum`] when so many servers do not answer that it cannot be known.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_lock(&self) -> Result<Option<QuorumGuard>, LockError> {
        let began = self.members.clock.monotonic();
        self.try_once(began).await
    }

    /// Takes the lock, and tries again and again if others have it.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`] when it took longer than [`wait`](Self::wait). [`LockError::NoQuorum`] when at the first
    /// attempt no majority of the servers answers; somebody who waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn lock(&self) -> Result<QuorumGuard, LockError> {
        let _counted = Counted::new(self.metrics());
        let Some(at_most) = self.wait else { return self.keep_trying().await };
        let in_time = tokio::time::timeout(at_most, self.keep_trying()).await;
        in_time.unwrap_or_else(|_| {
            self.metrics().timed_out.increment(1);
            Err(LockError::TimedOut { name: self.name.clone(), waited: at_most })
        })
    }

    fn metrics(&self) -> &Metrics {
        &self.members.metrics
    }

    async fn keep_trying(&self) -> Result<QuorumGuard, LockError> {
        let began = self.members.clock.monotonic();
        let (mut pause, longest) = PAUSES;
        let mut has_waited = false;
        loop {
            match self.try_once(began).await {
                Ok(Some(guard)) => return Ok(guard),
                Ok(None) => {}
                Err(LockError::NoQuorum { .. }) if has_waited => {}
                Err(why) => return Err(why),
            }
            has_waited = true;
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// One attempt: the lock on a majority, then its fence on a majority.
    async fn try_once(&self, began: Moment) -> Result<Option<QuorumGuard>, LockError> {
        let Self { members, name, terms, .. } = self;
        let token = Token::random();
        let attempt = Attempt::new(token, terms.lease);
        let sent_at = members.clock.monotonic();
        // From here on it gives back whatever it has when it is dropped.
        let held = guard::Held::new(members, name, token);
        let votes = members.ask_for(name, attempt, &held).await;
        if votes.granted.len() < members.majority() {
            held.give_back();
            return if votes.failed > members.len() - members.majority() {
                Err(LockError::NoQuorum { name: name.clone(), answered: members.len() - votes.failed })
            } else {
                Ok(None)
            };
        }
        let highest = votes.granted.iter().map(|(_, fence)| *fence).max().unwrap_or(Fence::NONE);
        let knowing = votes.granted.iter().filter(|(_, fence)| *fence == highest).count();
        if knowing < members.majority() && !members.raise(name, token, highest).await {
            held.give_back();
            return Ok(None);
        }
        let trusted_until = sent_at + terms.lease.length().saturating_sub(drift(terms.lease));
        let now = members.clock.monotonic();
        if now >= trusted_until {
            // It took so long that nothing is left of it.
            held.give_back();
            return Ok(None);
        }
        self.metrics().wait.record(now.since(began).as_secs_f64());
        Ok(Some(QuorumGuard::begin(held, highest, trusted_until, *terms)))
    }

    /// What each of the servers says of it, in the order in which they were given.
    pub async fn status(&self) -> Vec<MemberStatus> {
        self.members.status(&self.name).await
    }

    /// Takes the lock from whoever holds it, on all servers that answer. The old holder learns of it with its next renewal
    /// or release, at the latest when its lease ends. The answer is a fence above its own.
    ///
    /// # Errors
    ///
    /// [`LockError::NoQuorum`] when fewer than a majority answer.
    pub async fn force_release(&self) -> Result<Fence, LockError> {
        tracing::warn!(name = %self.name, "a lock is taken away by force, on a quorum of servers");
        self.members.break_all(&self.name).await
    }
}

fn long_enough(length: Duration) -> Result<Lease, InvalidInput> {
    if length < Duration::from_millis(10) {
        let problem = format!("{length:?} is eaten up by the drift that is allowed for; 10 ms is the least");
        return Err(InvalidInput::new("lease", problem));
    }
    Lease::new(length)
}

/// What one server says to an attempt.
fn vote(answer: &Acquire) -> Option<Fence> {
    match answer {
        Acquire::Granted { fences, .. } => Some(fences.last),
        _ => None,
    }
}

impl fmt::Debug for QuorumMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumMutex")
            .field("name", &self.name)
            .field("terms", &self.terms)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
