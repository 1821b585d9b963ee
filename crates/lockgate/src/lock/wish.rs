//! What somebody wants of a lock, and how it gets it: the part that all kinds of locks have in common.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::desk::Desk;
use super::error::LockError;
use super::guard::{self, Guard};
use super::hand_off;
use super::metrics::Counted;
use super::owner::Owner;
use super::polling::{FinishedAnyway, Try};
use super::room::{Outcome, Room};
use super::terms::{Cohort, Terms};
use crate::store::{IfTaken, LoanMark, Lock, Share};

/// Something that somebody wants.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) desk: Arc<Desk>,
    pub(super) lock: Lock,
    pub(super) share: Share,
    pub(super) terms: Terms,
    /// How long to wait for it, at the most.
    pub(super) wait: Option<Duration>,
    pub(super) cohort: Option<Cohort>,
    pub(super) owner: Option<Owner>,
    /// What its token is marked with, if nobody else takes part in it.
    pub(super) mark: Option<LoanMark>,
}

/// How long to wait for a lock and how long to hold it: said in the same way for every kind.
macro_rules! says_how_long {
    ($name:ident) => {
        impl $name {
            /// Waits no longer than this. Without it, a wait lasts for as long as it takes.
            #[must_use]
            pub fn wait(mut self, at_most: Duration) -> Self {
                self.wish.wait = Some(at_most);
                self
            }

            /// Holds it no longer than this: then it is lost, whether the work is done or not. There is no watchdog then.
            ///
            /// # Errors
            ///
            /// When it is shorter than 1 ms or longer than 24 h.
            pub fn lease(mut self, length: Duration) -> Result<Self, InvalidInput> {
                self.wish.terms = Terms { lease: Lease::new(length)?, is_kept: false };
                Ok(self)
            }

            /// Renews a lease of this length for as long as it is held, instead of the 30 s: a holder that dies is noticed
            /// after this time.
            ///
            /// # Errors
            ///
            /// When it is shorter than 1 ms or longer than 24 h.
            pub fn watchdog(mut self, length: Duration) -> Result<Self, InvalidInput> {
                self.wish.terms = Terms { lease: Lease::new(length)?, is_kept: true };
                Ok(self)
            }

            /// How long the waiters of this process may pass the lock on among themselves; `None` switches it off: then every
            /// waiter has a place of its own in the store's queue, and it is first come, first served among all processes.
            /// All who use one name in one process should say the same: the first one decides for as long as somebody holds
            /// it or waits.
            #[must_use]
            pub fn cohort(mut self, cohort: impl Into<Option<Cohort>>) -> Self {
                self.wish.cohort = cohort.into();
                self
            }
        }
    };
}

pub(super) use says_how_long;

impl Wish {
    pub(super) fn new(desk: Arc<Desk>, lock: Lock, share: Share) -> Self {
        let (terms, cohort) = (Terms::default(), Some(Cohort::default()));
        Self { desk, lock, share, terms, wait: None, cohort, owner: None, mark: None }
    }

    /// To be called before every wait.
    pub(super) fn settle_in(&self) -> Result<(), LockError> {
        if self.desk.is_closing() {
            return Err(LockError::ShuttingDown);
        }
        self.desk.settle_in();
        Ok(())
    }

    /// Takes part in what the owner holds already, if it holds it.
    pub(super) fn enter_again(&self) -> Option<Guard> {
        guard::enter_again(&self.desk, &self.lock, self.owner.as_ref()?)
    }

    /// Takes it if it can be had at this moment and nobody waits for it.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub(super) async fn try_take(&self) -> Result<Option<Guard>, LockError> {
        // What is lent out is nobody's here.
        if self.mark.is_none()
            && let Some(room) = self.desk.room_in_use(&self.lock)
        {
            if let Some(guard) = room.try_enter(self.share, self.terms, self.owner.clone()) {
                return Ok(Some(guard));
            }
            // If this process has all of it, or somebody here waits for it, the store need not be asked.
            if room.has_all() || room.is_waited_for() {
                return Ok(None);
            }
        }
        Ok(match self.try_once(IfTaken::Leave).await? {
            Try::Got(guard) => Some(guard),
            Try::Taken { .. } => None,
        })
    }

    /// Takes it, and stands in line for it if others have it.
    pub(super) async fn take(&self) -> Outcome {
        self.in_time(self.stand_in_line(false)).await
    }

    /// Waits for a turn no longer than the wish says.
    pub(super) async fn in_time(&self, turn: impl Future<Output = Outcome>) -> Outcome {
        let metrics = self.desk.metrics.of(&self.lock);
        let timed_out = |waited| {
            metrics.timed_out.increment(1);
            LockError::TimedOut { name: self.lock.name().clone(), waited }
        };
        let turn = async {
            let _counted = Counted::new(metrics);
            turn.await
        };
        let turn = turn.instrument(tracing::debug_span!("lock", name = %self.lock.name()));
        match self.wait {
            None => turn.await,
            Some(Duration::ZERO) => self.try_take().await?.ok_or_else(|| timed_out(Duration::ZERO)),
            Some(at_most) => {
                tokio::time::timeout(at_most, turn).await.unwrap_or_else(|_| Err(timed_out(at_most)))
            }
        }
    }

    /// Where one stands in line for it.
    pub(super) fn room(&self) -> Arc<Room> {
        match self.cohort {
            Some(cohort) => self.desk.room(&self.lock, cohort),
            None => Room::private(&self.desk, &self.lock, self.mark),
        }
    }

    /// Who `has_waited` before, for something else, sees an outage of the store through from the start.
    pub(super) async fn stand_in_line(&self, has_waited: bool) -> Outcome {
        loop {
            let room = self.room();
            // A room that closes at this moment has been replaced by another one.
            let Some((outcome, must_seek)) = room.enter(self.share, self.terms, self.owner.clone()) else {
                continue;
            };
            let mut place = Place { room: Arc::clone(&room), outcome, is_served: false };
            if must_seek {
                match self.lock {
                    // It ends when this waiter is served.
                    Lock::Mutex(_) => {
                        FinishedAnyway::new(&self.desk, hand_off::seek(room, None, has_waited)).await;
                    }
                    // This waiter may be served before, by what is here.
                    Lock::Pool(_) => self.desk.spawn(hand_off::seek(room, None, has_waited)),
                }
            }
            return place.served().await;
        }
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
