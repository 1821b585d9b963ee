//! The lock that one at a time may hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::desk::Desk;
use super::error::LockError;
use super::guard::{self, MutexGuard};
use super::hand_off;
use super::owner::Owner;
use super::polling::{FinishedAnyway, Try, Wish};
use super::room::{Outcome, Room};
use super::terms::{Cohort, Terms, WATCHDOG_LEASE, Waiting};
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Fence, IfTaken, Lease, MutexStatus};

/// A lock that at most one holder has at a time, in all processes that use the same store.
///
/// This is a recipe, cheap to make and to clone; the lock itself is its name in the store.
///
/// - **Leased.** With [`lease`](Self::lease) it ends by itself after that time. Without, it is held as long as the guard
///   lives: 30 s, renewed by a watchdog every 10 s.
/// - **Fenced.** Every grant carries a [`fence`](MutexGuard::fence) above all before it.
/// - **First come, first served**, by default: see [`Waiting`] and [`Cohort`].
/// - **Reentrant by explicit [owner](Self::owned_by)**, and not otherwise: the same task locking twice waits for itself.
///
/// ```
/// use std::time::Duration;
/// use lockgate::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let mutex = gate.mutex("order:42")?.wait(Duration::from_secs(3)).lease(Duration::from_secs(5))?;
///
/// let guard = mutex.lock().await?;
/// assert!(mutex.try_lock().await?.is_none());
/// // … write, with guard.fence() beside it …
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Mutex {
    desk: Arc<Desk>,
    name: Name,
    terms: Terms,
    wait: Option<Duration>,
    waiting: Waiting,
    cohort: Option<Cohort>,
    owner: Option<Owner>,
}

impl Mutex {
    pub(crate) fn new(desk: Arc<Desk>, name: Name) -> Self {
        let lease = Lease::new(WATCHDOG_LEASE).unwrap_or(Lease::MIN);
        let terms = Terms { lease, is_kept: true };
        let (waiting, cohort) = (Waiting::default(), Some(Cohort::default()));
        Self { desk, name, terms, wait: None, waiting, cohort, owner: None }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Waits no longer than this. Without it, [`lock`](Self::lock) waits for as long as it takes.
    #[must_use]
    pub fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Holds it no longer than this: then it is lost, whether the work is done or not. There is no watchdog then.
    ///
    /// # Errors
    ///
    /// When it is shorter than 1 ms or longer than 24 h.
    pub fn lease(mut self, length: Duration) -> Result<Self, InvalidInput> {
        self.terms = Terms { lease: Lease::new(length)?, is_kept: false };
        Ok(self)
    }

    /// Renews a lease of this length for as long as it is held, instead of the 30 s: a holder that dies is noticed after
    /// this time.
    ///
    /// # Errors
    ///
    /// When it is shorter than 1 ms or longer than 24 h.
    pub fn watchdog(mut self, length: Duration) -> Result<Self, InvalidInput> {
        self.terms = Terms { lease: Lease::new(length)?, is_kept: true };
        Ok(self)
    }

    /// How to wait.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// How long the waiters of this process may pass the lock on among themselves; `None` switches it off: then every
    /// waiter has a place of its own in the store's queue, and it is first come, first served among all processes. Means
    /// something with [`Waiting::HandOff`] only. All who use one name in one process should say the same: the first one
    /// decides for as long as somebody holds it or waits.
    #[must_use]
    pub fn cohort(mut self, cohort: impl Into<Option<Cohort>>) -> Self {
        self.cohort = cohort.into();
        self
    }

    /// Takes part in what `owner` holds already; the lock is given back when the last guard has gone.
    #[must_use]
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Takes the lock if nobody holds it and nobody waits for it; `None` otherwise.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, a lock that it may have got is given back.
    pub async fn try_lock(&self) -> Result<Option<MutexGuard>, LockError> {
        self.settle_in()?;
        if let Some(guard) = self.enter_again() {
            return Ok(Some(guard));
        }
        // If somebody in this process has it or waits for it, the store need not be asked.
        if self.desk.room_in_use(&self.name).is_some() {
            return Ok(None);
        }
        Ok(match self.wish().try_once(IfTaken::Leave).await? {
            Try::Got(guard) => Some(guard),
            Try::Taken { .. } => None,
        })
    }

    /// Takes the lock, and waits for it if others have it.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`] when it took longer than [`wait`](Self::wait). When the store does not answer at the first
    /// attempt, that error; somebody who waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its place goes to those behind it, and a lock that it may have got at that moment is passed on.
    pub async fn lock(&self) -> Result<MutexGuard, LockError> {
        self.settle_in()?;
        if let Some(guard) = self.enter_again() {
            return Ok(guard);
        }
        let span = tracing::debug_span!("lock", name = %self.name);
        let waiting = self.wait_for_turn().instrument(span);
        let Some(at_most) = self.wait else { return waiting.await };
        let outcome = if at_most.is_zero() {
            return self.try_lock().await?.ok_or_else(|| self.timed_out(at_most));
        } else {
            tokio::time::timeout(at_most, waiting).await
        };
        outcome.unwrap_or_else(|_| Err(self.timed_out(at_most)))
    }

    fn timed_out(&self, waited: Duration) -> LockError {
        self.desk.metrics.timed_out.increment(1);
        LockError::TimedOut { name: self.name.clone(), waited }
    }

    async fn wait_for_turn(&self) -> Outcome {
        let _counted = Counted::new(&self.desk);
        match self.waiting {
            Waiting::HandOff => self.stand_in_line().await,
            Waiting::Notify => self.wish().watch().await,
            Waiting::Spin { first, longest } => self.wish().spin(first, longest).await,
        }
    }

    async fn stand_in_line(&self) -> Outcome {
        loop {
            let room = match self.cohort {
                Some(cohort) => self.desk.room(&self.name, cohort),
                None => Room::private(&self.desk, &self.name),
            };
            // A room that closes at this moment has been replaced by another one.
            let Some((outcome, must_seek)) = room.enter(self.terms, self.owner.clone()) else { continue };
            let mut place = Place { room: Arc::clone(&room), outcome, is_served: false };
            if must_seek {
                FinishedAnyway::new(&self.desk, hand_off::seek(room, None, false)).await;
            }
            return place.served().await;
        }
    }

    /// Who holds it and who waits, as the store knows it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<MutexStatus, StoreError> {
        self.desk.store.mutex_read(&self.name).await
    }

    /// Takes the lock from whoever holds it, and gives it to the next waiter. The old holder learns of it with its next
    /// renewal or release, at the latest when its lease ends. The answer is a fence above its own: write it where fences are
    /// checked, and the old holder is shut out at once.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn force_release(&self) -> Result<Fence, StoreError> {
        tracing::warn!(name = %self.name, "a lock is taken away by force");
        self.desk.store.mutex_break(&self.name).await
    }

    fn settle_in(&self) -> Result<(), LockError> {
        if self.desk.is_closing() {
            return Err(LockError::ShuttingDown);
        }
        self.desk.settle_in();
        Ok(())
    }

    /// Takes part in what the owner holds already, if it holds it.
    pub(crate) fn enter_again(&self) -> Option<MutexGuard> {
        guard::enter_again(&self.desk, &self.name, self.owner.as_ref()?)
    }

    fn wish(&self) -> Wish {
        let (desk, name) = (Arc::clone(&self.desk), self.name.clone());
        Wish { desk, name, terms: self.terms, owner: self.owner.clone() }
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("name", &self.name)
            .field("terms", &self.terms)
            .field("wait", &self.wait)
            .field("waiting", &self.waiting)
            .field("cohort", &self.cohort)
            .finish_non_exhaustive()
    }
}

/// A place in a room.
struct Place {
    room: Arc<Room>,
    outcome: oneshot::Receiver<Outcome>,
    is_served: bool,
}

impl Place {
    async fn served(&mut self) -> Outcome {
        let outcome = (&mut self.outcome).await;
        self.is_served = true;
        outcome.unwrap_or(Err(LockError::ShuttingDown))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_served {
            // First the channel, so that the room sees that nobody is there.
            self.outcome.close();
            // A guard that is in it already passes the lock on when it is dropped with the channel.
            if self.outcome.try_recv().is_err() {
                self.room.one_has_gone_away();
            }
        }
    }
}

/// Counts a waiter for as long as it waits.
struct Counted<'a>(&'a Desk);

impl<'a> Counted<'a> {
    fn new(desk: &'a Desk) -> Self {
        desk.metrics.waiting.increment(1);
        Self(desk)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.metrics.waiting.decrement(1);
    }
}
