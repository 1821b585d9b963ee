//! The lock that one at a time may hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::LockError;
use super::guard::MutexGuard;
use super::owner::Owner;
use super::terms::{Cohort, Terms, Waiting};
use super::wish::{Wish, says_how_long};
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Fence, Lease, Lock, MutexStatus, Share};

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
    pub(super) wish: Wish,
    waiting: Waiting,
}

/// What a holder takes of a mutex: all of it.
pub(super) const WHOLE: Share = Share { permits: 1, of: 1 };

impl Mutex {
    pub(crate) fn new(desk: Arc<Desk>, name: Name) -> Self {
        Self { wish: Wish::new(desk, Lock::Mutex(name), WHOLE), waiting: Waiting::default() }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.wish.lock.name()
    }

    /// How to wait.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Takes part in what `owner` holds already; the lock is given back when the last guard has gone.
    #[must_use]
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.wish.owner = Some(owner.clone());
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
        self.wish.settle_in()?;
        if let Some(guard) = self.enter_again() {
            return Ok(Some(guard));
        }
        Ok(self.wish.try_take().await?.map(MutexGuard))
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
        self.wish.settle_in()?;
        if let Some(guard) = self.enter_again() {
            return Ok(guard);
        }
        let wish = &self.wish;
        let guard = match self.waiting {
            Waiting::HandOff => wish.take().await,
            Waiting::Notify => wish.in_time(wish.watch()).await,
            Waiting::Spin { first, longest } => wish.in_time(wish.spin(first, longest)).await,
        };
        guard.map(MutexGuard)
    }

    /// Who holds it and who waits, as the store knows it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<MutexStatus, StoreError> {
        self.wish.desk.store.mutex_read(self.name()).await
    }

    /// Takes the lock from whoever holds it, and gives it to the next waiter. The old holder learns of it with its next
    /// renewal or release, at the latest when its lease ends. The answer is a fence above its own: write it where fences are
    /// checked, and the old holder is shut out at once.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn force_release(&self) -> Result<Fence, StoreError> {
        tracing::warn!(name = %self.name(), "a lock is taken away by force");
        self.wish.desk.store.mutex_break(self.name()).await
    }

    /// Takes part in what the owner holds already, if it holds it.
    pub(crate) fn enter_again(&self) -> Option<MutexGuard> {
        self.wish.enter_again().map(MutexGuard)
    }
}

says_how_long!(Mutex);

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("name", self.name())
            .field("terms", &self.wish.terms)
            .field("wait", &self.wish.wait)
            .field("waiting", &self.waiting)
            .field("cohort", &self.wish.cohort)
            .finish_non_exhaustive()
    }
}
