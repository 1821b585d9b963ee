//! The lock that many may hold for reading, or one for writing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::{LockError, LockLost};
use super::guard::{Guard, ReadGuard, WriteGuard};
use super::owner::Owner;
use super::readers;
use super::terms::{Cohort, Terms};
use super::wish::{Wish, says_how_long};
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Fence, Lease, Lock, Pool, PoolKind, PoolStatus, Share, WRITER};

const ONE_READER: Share = Share { permits: 1, of: WRITER };
const WRITING: Share = Share { permits: WRITER, of: WRITER };

/// A lock that many hold for reading at the same time, or one for writing, in all processes that use the same store.
///
/// This is a recipe, cheap to make and to clone; the lock itself is its name in the store.
///
/// - **First come, first served.** A run of readers enters together. A writer waits for the readers before it, and nobody
///   who comes after it overtakes it: neither readers nor writers starve.
/// - **Leased**, as a [`Mutex`](super::Mutex): by a watchdog, or for a [fixed time](Self::lease). A reader that dies keeps
///   writers waiting until its lease ends.
/// - Writers are **fenced**. Readers do not exclude each other, so they have an [id](ReadGuard::id).
/// - **No upgrade**: two readers who want to write would wait for each other for ever. [Downgrading](WriteGuard::downgrade)
///   works, and lets nobody write in between.
/// - **Reentrant by explicit [owner](Self::owned_by)**: a nested read takes part in what the owner holds, even while a
///   writer waits.
///
/// ```
/// use lockgate::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let prices = gate.rw_lock("prices")?;
///
/// let (one, other) = (prices.read().await?, prices.read().await?);
/// assert!(prices.try_write().await?.is_none());
/// drop((one, other));
///
/// let writer = prices.write().await?;
/// println!("writing, with fence {}", writer.fence());
/// let reader = writer.downgrade().await?;
/// assert!(prices.try_read().await?.is_some());
/// reader.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RwLock {
    wish: Wish,
}

says_how_long!(RwLock);

impl RwLock {
    pub(crate) fn new(desk: Arc<Desk>, name: Name) -> Self {
        let lock = Lock::Pool(Pool { kind: PoolKind::RwLock, name });
        Self { wish: Wish::new(desk, lock, ONE_READER) }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.wish.lock.name()
    }

    /// Takes part in what `owner` holds already; the lock is given back when the last guard has gone.
    #[must_use]
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.wish.owner = Some(owner.clone());
        self
    }

    /// Takes it for reading, and waits for its turn if somebody writes or waits to write.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`] when it took longer than [`wait`](Self::wait). When the store does not answer at the first
    /// attempt, that error; somebody who waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its place goes to those behind it, and what it may have got at that moment is passed on.
    pub async fn read(&self) -> Result<ReadGuard, LockError> {
        self.wish.settle_in()?;
        if let Some(guard) = self.wish.enter_again() {
            return Ok(ReadGuard(guard));
        }
        self.wish.take().await.map(ReadGuard)
    }

    /// Takes it for reading if nobody writes and nobody waits; `None` otherwise. With [cohort](Self::cohort), a reader joins
    /// those of its process for a moment although a writer of another process waits already.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_read(&self) -> Result<Option<ReadGuard>, LockError> {
        self.wish.settle_in()?;
        if let Some(guard) = self.wish.enter_again() {
            return Ok(Some(ReadGuard(guard)));
        }
        Ok(self.wish.try_take().await?.map(ReadGuard))
    }

    /// Takes it for writing, and waits for its turn if others have it.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); and [`LockError::Upgrade`] when the same [owner](Self::owned_by) holds it for reading.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its place goes to those behind it, and what it may have got at that moment is passed on.
    pub async fn write(&self) -> Result<WriteGuard, LockError> {
        self.wish.settle_in()?;
        if let Some(guard) = self.write_again()? {
            return Ok(guard);
        }
        self.writing().take().await.map(WriteGuard)
    }

    /// Takes it for writing if nobody holds it and nobody waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down; and [`LockError::Upgrade`] when the same
    /// [owner](Self::owned_by) holds it for reading.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_write(&self) -> Result<Option<WriteGuard>, LockError> {
        self.wish.settle_in()?;
        if let Some(guard) = self.write_again()? {
            return Ok(Some(guard));
        }
        Ok(self.writing().try_take().await?.map(WriteGuard))
    }

    fn writing(&self) -> Wish {
        Wish { share: WRITING, ..self.wish.clone() }
    }

    /// Takes part in what the owner writes already. Who only reads cannot write.
    fn write_again(&self) -> Result<Option<WriteGuard>, LockError> {
        let Some(guard) = self.wish.enter_again() else { return Ok(None) };
        if is_writer(&guard) {
            return Ok(Some(WriteGuard(guard)));
        }
        Err(LockError::Upgrade { name: self.name().clone() })
    }

    /// Who holds it and who waits, as the store knows it: the readers of one process may be one there.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<PoolStatus, StoreError> {
        pool_status(&self.wish).await
    }

    /// Takes the lock from all who hold it, and gives it to the next waiters. The old holders learn of it with their next
    /// renewal or release, at the latest when their leases end. The answer is a fence above all writers' before.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn force_release(&self) -> Result<Fence, StoreError> {
        break_pool(&self.wish).await
    }
}

fn is_writer(guard: &Guard) -> bool {
    guard.hold().permits() == WRITER
}

/// How the pool behind a wish stands.
pub(super) async fn pool_status(wish: &Wish) -> Result<PoolStatus, StoreError> {
    wish.desk.store.permit_read(pool_of(wish)?).await
}

/// Takes the pool behind a wish from all who hold something of it.
pub(super) async fn break_pool(wish: &Wish) -> Result<Fence, StoreError> {
    tracing::warn!(name = %wish.lock.name(), "a lock is taken away by force");
    wish.desk.store.permit_break(pool_of(wish)?, None).await
}

pub(super) fn pool_of(wish: &Wish) -> Result<&Pool, StoreError> {
    match &wish.lock {
        Lock::Pool(pool) => Ok(pool),
        Lock::Mutex(_) => Err(StoreError::Refused("a mutex has no permits".into())),
    }
}

impl WriteGuard {
    /// Goes on as a reader. Readers come in, and nobody writes in between. While the same owner holds other write guards, it
    /// stays a writer.
    ///
    /// # Errors
    ///
    /// [`LockLost`], when the lock was lost before.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, the lock is given back.
    pub async fn downgrade(self) -> Result<ReadGuard, LockLost> {
        self.check()?;
        let guard = self.0;
        if guard.is_shared_with_its_owner() {
            return Ok(ReadGuard(guard));
        }
        let tenure = Arc::clone(guard.hold().tenure());
        if tenure.room.downgrade(guard.hold()) {
            let telling = readers::tell_the_store(Arc::clone(&tenure));
            super::polling::FinishedAnyway::new(&tenure.desk, telling).await;
        }
        guard.check()?;
        Ok(ReadGuard(guard))
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock")
            .field("name", self.name())
            .field("terms", &self.wish.terms)
            .field("wait", &self.wish.wait)
            .field("cohort", &self.wish.cohort)
            .finish_non_exhaustive()
    }
}
