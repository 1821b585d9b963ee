//! The lock that so many may hold at a time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::LockError;
use super::guard::PermitGuard;
use super::rw::{break_pool, pool_of, pool_status};
use super::terms::{Cohort, Terms};
use super::wish::{Wish, says_how_long};
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Fence, Lease, Lock, Pool, PoolKind, PoolStatus, Share};

/// So many permits, in all processes that use the same store.
///
/// This is a recipe, cheap to make and to clone; the semaphore itself is its name in the store.
///
/// - **Leased**, as a [`Mutex`](super::Mutex): the permits of a process that dies come back when their lease ends.
/// - **First come, first served**, whatever each wants: as long as the first in line waits for many, those behind it wait
///   too, so that [`acquire_many`](Self::acquire_many) never starves.
/// - **The number can be changed** while it is in use: see [`set_permits`](Self::set_permits).
///
/// ```
/// use lockgate::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let exports = gate.semaphore("exports", 3)?;
///
/// let one = exports.acquire().await?;
/// let two = exports.acquire_many(2).await?;
/// assert!(exports.try_acquire().await?.is_none());
/// two.release().await?;
/// one.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    wish: Wish,
}

says_how_long!(Semaphore);

impl Semaphore {
    pub(crate) fn new(desk: Arc<Desk>, name: Name, permits: u32) -> Result<Self, InvalidInput> {
        let share = Share { permits: 1, of: permits };
        share.check()?;
        let lock = Lock::Pool(Pool { kind: PoolKind::Semaphore, name });
        Ok(Self { wish: Wish::new(desk, lock, share) })
    }

    /// The semaphore's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.wish.lock.name()
    }

    /// Takes one permit, and waits for it if there is none.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`] when it took longer than [`wait`](Self::wait). When the store does not answer at the first
    /// attempt, that error; somebody who waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its place goes to those behind it, and what it may have got at that moment is passed on.
    pub async fn acquire(&self) -> Result<PermitGuard, LockError> {
        self.acquire_many(1).await
    }

    /// Takes so many permits at once, and waits until there are enough.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); and [`InvalidInput`] when it is none, or more than there are.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its place goes to those behind it, and what it may have got at that moment is passed on.
    pub async fn acquire_many(&self, permits: u32) -> Result<PermitGuard, LockError> {
        let wish = self.wish_for(permits)?;
        wish.settle_in()?;
        wish.take().await.map(PermitGuard)
    }

    /// Takes one permit if there is one and nobody waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_acquire(&self) -> Result<Option<PermitGuard>, LockError> {
        self.try_acquire_many(1).await
    }

    /// Takes so many permits at once if there are enough and nobody waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire); and [`InvalidInput`] when it is none, or more than there are.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_acquire_many(&self, permits: u32) -> Result<Option<PermitGuard>, LockError> {
        let wish = self.wish_for(permits)?;
        wish.settle_in()?;
        Ok(wish.try_take().await?.map(PermitGuard))
    }

    /// How many there are is the store's to say, if somebody has set their number.
    fn wish_for(&self, permits: u32) -> Result<Wish, InvalidInput> {
        let share = Share { permits, of: self.wish.share.of };
        share.check()?;
        Ok(Wish { share, ..self.wish.clone() })
    }

    /// Sets how many permits there are, for everybody and from now on, whatever number they give when they ask. When there
    /// are fewer than before, nobody loses any: they are not given out again when they come back. A process that passes
    /// permits on among its own waiters learns of it within the cohort's time. Somebody who waits for more than there are
    /// gets an error.
    ///
    /// The number stays until it is set anew, or [left to the users](Self::reset_permits) again.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the number is not between 1 and a million.
    pub async fn set_permits(&self, permits: u32) -> Result<(), StoreError> {
        self.wish.desk.store.permit_resize(pool_of(&self.wish)?, Some(permits)).await
    }

    /// Leaves it to the users again to say how many permits there are, as soon as nobody uses them.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn reset_permits(&self) -> Result<(), StoreError> {
        self.wish.desk.store.permit_resize(pool_of(&self.wish)?, None).await
    }

    /// How many permits there are, who holds some and who waits, as the store knows it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<PoolStatus, StoreError> {
        pool_status(&self.wish).await
    }

    /// Takes the permits from all who hold some, and gives them to the next waiters. The old holders learn of it with their
    /// next renewal or release, at the latest when their leases end.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn force_release(&self) -> Result<Fence, StoreError> {
        break_pool(&self.wish).await
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("name", self.name())
            .field("permits", &self.wish.share.of)
            .field("terms", &self.wish.terms)
            .field("wait", &self.wish.wait)
            .field("cohort", &self.wish.cohort)
            .finish_non_exhaustive()
    }
}
