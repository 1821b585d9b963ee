//! Waiting until so many things are done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::LockError;
use super::metrics::Counted;
use super::news::Registry;
use super::polling::FinishedAnyway;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Answer, LatchSet, LatchStatus, Token};

/// A message that gets lost costs a waiter no more than this.
const ASK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// How often somebody asks who hears nothing.
const ASK_WITHOUT_NEWS: Duration = Duration::from_millis(250);

/// How often a call is made that gets no answer.
const ATTEMPTS: u32 = 5;

/// A count that goes down to zero, once, in all processes that use the same store; whoever waits goes on then.
///
/// Each [count-down](Self::count_down) counts exactly once, whatever answers get lost. A latch is forgotten a day after it
/// was last set or counted down.
///
/// ```
/// use lockgate::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let parts = gate.count_down_latch("import:2026-11-16")?;
/// parts.set(2).await?;
/// for part in ["customers", "orders"] {
///     let parts = parts.clone();
///     tokio::spawn(async move {
///         println!("{part} imported");
///         parts.count_down().await
///     });
/// }
/// parts.wait().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CountDownLatch {
    desk: Arc<Desk>,
    name: Name,
    at_most: Option<Duration>,
}

impl CountDownLatch {
    pub(crate) fn new(desk: Arc<Desk>, name: Name) -> Self {
        Self { desk, name, at_most: None }
    }

    /// The latch's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// [Waits](Self::wait) no longer than this.
    #[must_use]
    pub fn wait_at_most(mut self, time: Duration) -> Self {
        self.at_most = Some(time);
        self
    }

    /// Lets it count down from `count`, if there is no such latch or it has reached zero: then it is a new round. Otherwise
    /// nothing changes, and the answer says how it stands.
    ///
    /// # Errors
    ///
    /// When the store does not answer for a while, or the count is not between 1 and 100,000.
    pub async fn set(&self, count: u32) -> Result<LatchSet, StoreError> {
        // The same token every time, so that it is one round.
        let round = Token::for_ear(self.desk.ear);
        until_answered(|| self.desk.store.latch_set(&self.name, count, &round)).await
    }

    /// Counts down by one; says how it stands then. What is counted is the round that it is in when this is called.
    ///
    /// # Errors
    ///
    /// [`LockError::NoLatch`] when nobody has set it. When the store does not answer for a while: then it may or may not
    /// have counted.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, it counts all the same.
    pub async fn count_down(&self) -> Result<LatchStatus, LockError> {
        self.settle_in()?;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let this = self.clone();
        let counting = async move {
            // Nobody need be there to hear it.
            let _ = sender.send(this.count_once().await);
        };
        FinishedAnyway::new(&self.desk, counting).await;
        receiver.await.unwrap_or(Err(LockError::ShuttingDown))
    }

    /// The round is asked for first, and the token is the same every time: so a repetition counts neither twice nor in
    /// the next round.
    async fn count_once(&self) -> Result<LatchStatus, LockError> {
        let (store, token) = (&self.desk.store, Token::for_ear(self.desk.ear));
        let status = until_answered(|| store.latch_read(&self.name)).await?;
        let round = status.ok_or_else(|| self.is_not_there())?.round;
        let counted = until_answered(|| store.latch_count_down(&self.name, &token, &round)).await?;
        counted.ok_or_else(|| self.is_not_there())
    }

    /// How it stands; nothing when nobody has set it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<Option<LatchStatus>, StoreError> {
        self.desk.store.latch_read(&self.name).await
    }

    /// Returns when it has reached zero; at once when it has already.
    ///
    /// # Errors
    ///
    /// [`LockError::NoLatch`] when nobody has set it. [`LockError::TimedOut`] when it took longer than
    /// [`wait_at_most`](Self::wait_at_most). When the store does not answer at the first attempt, that error; somebody who
    /// waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn wait(&self) -> Result<(), LockError> {
        self.settle_in()?;
        let metrics = &self.desk.metrics.latch;
        let _counted = Counted::new(metrics);
        let began = self.desk.clock.monotonic();
        let outcome = match self.at_most {
            None => self.wait_for_zero().await,
            Some(at_most) => match tokio::time::timeout(at_most, self.wait_for_zero()).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    metrics.timed_out.increment(1);
                    Err(LockError::TimedOut { name: self.name.clone(), waited: at_most })
                }
            },
        };
        metrics.wait.record(self.desk.clock.monotonic().since(began).as_secs_f64());
        outcome
    }

    async fn wait_for_zero(&self) -> Result<(), LockError> {
        let hears = Registry::hear_latch(&self.desk, &self.name);
        let mut waits_for = None;
        loop {
            let news = hears.bell.notified();
            tokio::pin!(news);
            // First the ear, then the question: what happens in between is heard.
            news.as_mut().enable();
            match self.status().await {
                Ok(None) => return Err(self.is_not_there()),
                // Set anew, it has been at zero in between.
                Ok(Some(status)) if waits_for.is_some_and(|round| round != status.round) => return Ok(()),
                Ok(Some(LatchStatus { remaining: 0, .. })) => return Ok(()),
                Ok(Some(status)) => waits_for = Some(status.round),
                Err(why) if waits_for.is_none() => return Err(why.into()),
                Err(why) => tracing::warn!(%why, name = %self.name, "cannot ask for a latch; trying again"),
            }
            if self.desk.is_closing() {
                return Err(LockError::ShuttingDown);
            }
            // Who has just begun to listen may have missed something, and is woken to ask once more.
            self.desk.begin_to_listen();
            let hears_it = self.desk.is_listening();
            let latest = if hears_it { ASK_AT_LEAST_EVERY } else { ASK_WITHOUT_NEWS };
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep(latest) => {}
            }
        }
    }

    fn settle_in(&self) -> Result<(), LockError> {
        if self.desk.is_closing() {
            return Err(LockError::ShuttingDown);
        }
        self.desk.settle_in();
        Ok(())
    }

    fn is_not_there(&self) -> LockError {
        LockError::NoLatch { name: self.name.clone() }
    }
}

/// Asks until there is an answer, a few times: every call here may be repeated.
async fn until_answered<'a, T>(call: impl Fn() -> Answer<'a, T>) -> Result<T, StoreError> {
    for attempt in 1..ATTEMPTS {
        match call().await {
            Err(StoreError::Unavailable(_) | StoreError::UnknownOutcome(_)) => {
                tokio::time::sleep(Duration::from_millis(100) * attempt).await;
            }
            answer => return answer,
        }
    }
    call().await
}

impl fmt::Debug for CountDownLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountDownLatch")
            .field("name", &self.name)
            .field("at_most", &self.at_most)
            .finish_non_exhaustive()
    }
}
