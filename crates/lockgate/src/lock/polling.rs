//! Getting the lock from the store by trying: once, when told that it is free, or again and again.
//!
//! **Promise:** a try that is dropped while it is under way goes on by itself and gives back what it gets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use super::desk::Desk;
use super::error::LockError;
use super::guard::Guard;
use super::hand_off::can_be_relied_on;
use super::news::Registry;
use super::room::{Grant, Room};
use super::wish::Wish;
use crate::jitter::jittered;
use crate::store::{Acquire, Attempt, IfTaken};

/// A message that gets lost costs a watcher no more than this, or the holder's lease if that is shorter.
const WATCH_AT_MOST: Duration = Duration::from_secs(5);

/// How often a watcher tries that hears nothing.
const TRY_WITHOUT_NEWS: Duration = Duration::from_millis(250);

/// What one try came to.
pub(super) enum Try {
    Got(Guard),
    Taken { lease_left: Duration },
}

impl Wish {
    /// Tries once.
    ///
    /// # Cancel safety
    ///
    /// The try goes on without the caller, and what it gets is given back.
    pub(super) async fn try_once(&self, if_taken: IfTaken) -> Result<Try, LockError> {
        let (sender, receiver) = oneshot::channel();
        let wish = self.clone();
        let attempt = async move {
            // Nobody there to take it: dropping the guard gives it back.
            let _ = sender.send(wish.ask(if_taken).await);
        };
        FinishedAnyway::new(&self.desk, attempt).await;
        receiver.await.unwrap_or(Err(LockError::ShuttingDown))
    }

    async fn ask(&self, if_taken: IfTaken) -> Result<Try, LockError> {
        let Self { desk, lock, share, terms, owner, .. } = self;
        // Whoever drops a guard and tries again must not meet itself.
        desk.dropped_is_given_back(lock).await?;
        let room = Room::private(desk, lock, self.mark);
        let token = room.token();
        let expecting = Registry::expect(desk, token);
        let attempt = Attempt { if_taken, ..Attempt::new(token, terms.lease) };
        let sent_at = desk.clock.monotonic();
        match desk.acquire(lock, &attempt, *share).await {
            Ok(Acquire::Granted { fences, lease_left }) => {
                let trusted_until = sent_at + lease_left;
                match can_be_relied_on(desk, lock, &token, trusted_until).await {
                    Ok(true) => {}
                    Ok(false) => {
                        desk.release_in_background(lock.clone(), token);
                        return Ok(Try::Taken { lease_left: Duration::ZERO });
                    }
                    Err(why) => {
                        desk.release_in_background(lock.clone(), token);
                        return Err(why.into());
                    }
                }
                let Some((mut outcome, _)) = room.enter(*share, *terms, owner.clone()) else {
                    return Err(LockError::ShuttingDown);
                };
                let (others_wait, is_claim) = (false, false);
                let share = *share;
                room.begin_tenure(Grant { expecting, share, fences, trusted_until, others_wait, is_claim });
                outcome.try_recv().unwrap_or(Err(LockError::ShuttingDown)).map(Try::Got)
            }
            Ok(Acquire::Taken { lease_left } | Acquire::Queued { lease_left, .. }) => {
                Ok(Try::Taken { lease_left })
            }
            Ok(Acquire::Never { total }) => Err(super::room::beyond(lock, share.permits, total).into()),
            Err(why) => {
                // It may have happened all the same.
                desk.release_in_background(lock.clone(), token);
                Err(why.into())
            }
        }
    }

    /// One more try of somebody who keeps trying. Who has begun to wait sees an outage of the store through (`None`): its time
    /// is what ends its waiting.
    async fn try_or_see_through(
        &self,
        if_taken: IfTaken,
        has_waited: &mut bool,
    ) -> Result<Option<Try>, LockError> {
        match self.try_once(if_taken).await {
            Err(LockError::Store(why)) if *has_waited => {
                tracing::warn!(%why, name = %self.lock.name(), "cannot try for the lock; trying again");
                Ok(None)
            }
            outcome => {
                *has_waited = true;
                outcome.map(Some)
            }
        }
    }

    /// Tries whenever it is told that the lock is free, and at the end of the holder's lease.
    pub(super) async fn watch(&self) -> Result<Guard, LockError> {
        let mut has_waited = false;
        loop {
            // Without it (it may be forbidden, or down), all there is are tries.
            let hears = tokio::time::timeout(TRY_WITHOUT_NEWS, self.desk.listening()).await.is_ok();
            // First the place among the watchers, then the try: what becomes free in between is heard.
            let watching = Registry::watch(&self.desk, self.lock.name());
            let lease_left = match self.try_or_see_through(IfTaken::Watch, &mut has_waited).await? {
                Some(Try::Got(guard)) => {
                    watching.has_been_of_use();
                    return Ok(guard);
                }
                Some(Try::Taken { lease_left }) => lease_left,
                None => TRY_WITHOUT_NEWS,
            };
            let latest = self.desk.clock.monotonic()
                + lease_left.min(if hears { WATCH_AT_MOST } else { TRY_WITHOUT_NEWS })
                + Duration::from_millis(1);
            watching.woken(latest).await;
            watching.has_been_of_use();
            if self.desk.is_closing() {
                return Err(LockError::ShuttingDown);
            }
        }
    }

    /// Tries again and again, with pauses that double, give or take a half.
    pub(super) async fn spin(&self, first: Duration, longest: Duration) -> Result<Guard, LockError> {
        let mut pause = first.max(Duration::from_micros(100));
        let mut has_waited = false;
        loop {
            if let Some(Try::Got(guard)) = self.try_or_see_through(IfTaken::Leave, &mut has_waited).await? {
                return Ok(guard);
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(longest.max(first));
            if self.desk.is_closing() {
                return Err(LockError::ShuttingDown);
            }
        }
    }
}

/// A future that goes on in the background when it is dropped before its end.
pub(super) struct FinishedAnyway<'a, F: Future<Output = ()> + Send + 'static> {
    desk: &'a Desk,
    future: Option<Pin<Box<F>>>,
}

impl<'a, F: Future<Output = ()> + Send + 'static> FinishedAnyway<'a, F> {
    pub(super) fn new(desk: &'a Desk, future: F) -> Self {
        Self { desk, future: Some(Box::pin(future)) }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Future for FinishedAnyway<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.future else { return Poll::Ready(()) };
        let outcome = future.as_mut().poll(context);
        if outcome.is_ready() {
            self.future = None;
        }
        outcome
    }
}

impl<F: Future<Output = ()> + Send + 'static> Drop for FinishedAnyway<'_, F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.desk.spawn(future);
        }
    }
}
