//! At most once per period, whoever asks.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::{LockError, LockLost};
use super::guard::MutexGuard;
use super::mutex::Mutex;
use super::polling::{FinishedAnyway, Try};
use crate::clock::Moment;
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Fence, IfTaken, Lease, MutexStatus};

/// Something that is done at most once per period, over all processes that use the same store: a nightly report, a clean-up
/// that every instance of a service has on its schedule. What ShedLock does.
///
/// A period begins with a turn. Who asks before it is over is told when the next one may begin, by the store's clock, so it
/// does not matter that the clocks of the processes differ. A turn that takes longer than the period keeps the others out
/// until it is over: there are never two at the same time.
///
/// It is the mutex `once:<name>`, kept for the period (the minimum hold) also when the work is done sooner.
///
/// ```
/// use std::time::Duration;
/// use lockgate::{Gate, lock::Ran};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let report = gate.once("report", Duration::from_secs(3600))?;
///
/// assert_eq!(report.run(async { "written" }).await?, Ran::Done("written"));
/// match report.run(async { "written twice" }).await? {
///     Ran::NotDue { next_in } => println!("again in {next_in:?}"),
///     Ran::Done(_) => unreachable!(),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Once {
    mutex: Mutex,
    desk: Arc<Desk>,
    every: Lease,
}

/// What came of [`Once::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran<T> {
    /// It was this one's turn, and the work is done.
    Done(T),
    /// Somebody else's turn was in this period, or is.
    NotDue {
        /// When the next may begin, if that one's work is done by then.
        next_in: Duration,
    },
}

impl Once {
    pub(crate) fn new(desk: Arc<Desk>, name: &Name, every: Duration) -> Result<Self, InvalidInput> {
        let every = Lease::new(every).map_err(|why| InvalidInput::new("every", why.problem))?;
        let name = Name::new("name", format!("once:{name}"))?;
        let mutex = Mutex::new(Arc::clone(&desk), name).cohort(None).watchdog(every.length())?;
        Ok(Self { mutex, desk, every })
    }

    /// When the process whose turn it is dies, another one may begin after this time, in the same period. Without it a turn
    /// counts as soon as it has begun, and what died with its process waits for the next period.
    ///
    /// # Errors
    ///
    /// When it is shorter than 1 ms or longer than the period.
    pub fn again_after_a_crash(mut self, after: Duration) -> Result<Self, InvalidInput> {
        if after > self.every.length() {
            let problem = format!("{after:?} is longer than the period of {:?}", self.every.length());
            return Err(InvalidInput::new("after", problem));
        }
        self.mutex = self.mutex.watchdog(after)?;
        Ok(self)
    }

    /// Does `work`, if nobody's turn was in this period.
    ///
    /// # Errors
    ///
    /// When the store does not answer, and then the work has not begun; [`LockError::Lost`] when the turn could no longer be
    /// trusted before the work was done, and then it was dropped where it stood.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work; the turn counts.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<Ran<T>, LockError> {
        let turn = match self.turn().await? {
            Ran::Done(turn) => turn,
            Ran::NotDue { next_in } => return Ok(Ran::NotDue { next_in }),
        };
        let done = turn.guard()?.run(work).await?;
        turn.finish().await;
        Ok(Ran::Done(done))
    }

    /// The same for work that may fail: then the turn is given back, and whoever asks next may try.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work; the turn counts.
    pub async fn try_run<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Ran<Result<T, E>>, LockError> {
        let turn = match self.turn().await? {
            Ran::Done(turn) => turn,
            Ran::NotDue { next_in } => return Ok(Ran::NotDue { next_in }),
        };
        let done = turn.guard()?.run(work).await?;
        match &done {
            Ok(_) => turn.finish().await,
            Err(_) => turn.give_back().await?,
        }
        Ok(Ran::Done(done))
    }

    /// Begins a turn, for work that is not one future.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, a turn that it may have got is given back.
    pub async fn turn(&self) -> Result<Ran<Turn>, LockError> {
        self.mutex.wish.settle_in()?;
        Ok(match self.mutex.wish.try_once(IfTaken::Leave).await? {
            Try::Got(guard) => {
                let (began, desk) = (self.desk.clock.monotonic(), Arc::clone(&self.desk));
                Ran::Done(Turn { guard: Some(MutexGuard(guard)), began, every: self.every, desk })
            }
            Try::Taken { lease_left } => Ran::NotDue { next_in: lease_left },
        })
    }

    /// Whether a turn was in this period, as the store knows it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<MutexStatus, StoreError> {
        self.mutex.status().await
    }

    /// Forgets that a turn was in this period, so that the next one may begin at once; one that is under way is lost.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn force_release(&self) -> Result<Fence, StoreError> {
        self.mutex.force_release().await
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("mutex", &self.mutex).field("every", &self.every).finish_non_exhaustive()
    }
}

/// One turn. It counts for its period however it ends, unless it is [given back](Self::give_back).
#[must_use = "a turn that is dropped is over, and counts"]
pub struct Turn {
    /// Nothing when it is over.
    guard: Option<MutexGuard>,
    began: Moment,
    every: Lease,
    desk: Arc<Desk>,
}

impl Turn {
    fn guard(&self) -> Result<&MutexGuard, LockError> {
        self.guard.as_ref().ok_or(LockError::ShuttingDown)
    }

    /// The fence of this turn: higher than that of every turn before it.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.guard.as_ref().map_or(Fence::NONE, MutexGuard::fence)
    }

    /// Whether it can still be trusted that no other turn has begun. See [`Guard::check`](super::Guard::check).
    ///
    /// # Errors
    ///
    /// [`LockLost`].
    pub fn check(&self) -> Result<(), LockLost> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check())
    }

    /// The work is done. The next turn may begin when the period is over.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, it goes on in the background.
    pub async fn finish(mut self) {
        if let Some(ending) = self.ending() {
            FinishedAnyway::new(&self.desk, ending).await;
        }
    }

    /// The work is not done: whoever asks next may begin a turn at once.
    ///
    /// # Errors
    ///
    /// When the store does not answer. It goes on in the background then.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, it goes on in the background.
    pub async fn give_back(mut self) -> Result<(), LockError> {
        let Some(guard) = self.guard.take() else { return Ok(()) };
        guard.release().await.map(drop)
    }

    /// Keeps it in the store for the rest of the period, and no longer.
    fn ending(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let guard = self.guard.take()?;
        let rest = (self.began + self.every.length()).since(self.desk.clock.monotonic());
        Some(guard.leave_for(rest))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(ending) = self.ending() {
            self.desk.spawn(ending);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("guard", &self.guard).field("every", &self.every).finish_non_exhaustive()
    }
}
