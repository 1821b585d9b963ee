//! A lock that is held.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::{LockError, LockLost};
use super::owner::Owner;
use super::room::GivenBack;
use super::tenure::Tenure;
use crate::clock::Moment;
use crate::key::Name;
use crate::store::{Fence, Release};

/// One holder's time with the lock: shared by its guards, of which there are several only when an owner has entered
/// again.
pub(super) struct Hold {
    tenure: Arc<Tenure>,
    fence: Fence,
    since: Moment,
    /// When its lease ends; nothing when the watchdog keeps it.
    until: Option<Moment>,
    /// How many guards there are.
    guards: AtomicUsize,
    was_taken_away: AtomicBool,
    owner: Option<Owner>,
    cancellation: OnceLock<CancellationToken>,
}

impl Hold {
    pub(super) fn new(
        tenure: &Arc<Tenure>,
        fence: Fence,
        since: Moment,
        until: Option<Moment>,
        owner: Option<Owner>,
    ) -> Arc<Self> {
        let hold = Arc::new(Self {
            tenure: Arc::clone(tenure),
            fence,
            since,
            until,
            guards: AtomicUsize::new(1),
            was_taken_away: AtomicBool::new(false),
            owner,
            cancellation: OnceLock::new(),
        });
        if let Some(owner) = &hold.owner {
            tenure.desk.owners.remember(owner, &hold);
        }
        hold
    }

    pub(super) fn name(&self) -> &Name {
        &self.tenure.name
    }

    /// Until when it can be trusted, as things stand.
    fn deadline(&self) -> Moment {
        let trusted = self.tenure.trusted_until();
        self.until.map_or(trusted, |until| until.min(trusted))
    }

    pub(super) fn is_trusted(&self) -> bool {
        let is_ours = self.tenure.is_held() && !self.was_taken_away.load(Ordering::Acquire);
        is_ours && self.tenure.desk.clock.monotonic() < self.deadline()
    }

    /// Whether its lease is over, whatever the tenure has left.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// It belongs to somebody else now.
    pub(super) fn take_away(&self) {
        self.was_taken_away.store(true, Ordering::Release);
        self.tenure.lost.notify_waiters();
    }

    /// One more guard, unless the last one has gone already.
    fn enter_again(self: &Arc<Self>) -> Option<MutexGuard> {
        let more = |guards: usize| (guards > 0).then_some(guards + 1);
        self.guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(MutexGuard { hold: Arc::clone(self), is_armed: true })
    }

    async fn lost(&self) {
        loop {
            let told = self.tenure.lost.notified();
            tokio::pin!(told);
            // From here on nothing is missed.
            told.as_mut().enable();
            if !self.is_trusted() {
                return;
            }
            tokio::select! {
                () = told => {}
                () = self.tenure.desk.clock.sleep_until(self.deadline()) => {}
            }
        }
    }

    fn forget_owner(&self) {
        if let Some(owner) = &self.owner {
            self.tenure.desk.owners.forget(self.name(), owner, self);
        }
    }

    /// The last guard has gone.
    fn end(self: &Arc<Self>) -> GivenBack {
        self.forget_owner();
        let desk = &self.tenure.desk;
        desk.metrics.hold.record(desk.clock.monotonic().since(self.since).as_secs_f64());
        self.tenure.room.give_back(self)
    }
}

/// Takes part in what `owner` holds of `name`, if it holds it.
pub(super) fn enter_again(desk: &super::desk::Desk, name: &Name, owner: &Owner) -> Option<MutexGuard> {
    let hold = desk.owners.hold_of(name, owner)?;
    if hold.is_trusted() { hold.enter_again() } else { None }
}

/// A lock that is held, until it is [released](MutexGuard::release) or dropped, or lost.
///
/// **A lease can be outlived.** A process that is paused, or cut off from the store, may believe that it holds the lock
/// when others have it already. The guard knows its deadline, counted so that it errs on the safe side:
/// [`check`](Self::check) asks, [`lost`](Self::lost) waits for it, [`run`](Self::run) stops the work then. Between a check
/// and a write there is still time to be paused in; what must never happen is therefore prevented where it is written, by
/// the [`fence`](Self::fence).
#[must_use = "a guard that is dropped at once gives the lock back at once"]
pub struct MutexGuard {
    hold: Arc<Hold>,
    is_armed: bool,
}

/// What [`MutexGuard::release`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// The lock was held until now, and is free or the next waiter's.
    Released,
    /// The same owner has other guards: the lock is still held.
    StillHeld,
    /// The lock had been lost before.
    WasLost,
}

impl MutexGuard {
    pub(super) fn new(hold: &Arc<Hold>) -> Self {
        Self { hold: Arc::clone(hold), is_armed: true }
    }

    /// Gives up this guard, which nobody ever had, without giving the lock back.
    pub(super) fn disarm(mut self) {
        self.is_armed = false;
        self.hold.forget_owner();
    }

    /// Which lock.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.hold.name()
    }

    /// The fence of this grant: higher than that of every grant before it. Store it beside what the lock protects, and
    /// refuse smaller ones there.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold.fence
    }

    /// How long the lock can be trusted, unless it is renewed meanwhile; zero when it is lost.
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        if !self.hold.is_trusted() {
            return Duration::ZERO;
        }
        self.hold.deadline().since(self.hold.tenure.desk.clock.monotonic())
    }

    /// Whether the lock is still held, at this moment. Reads a clock, asks nobody. Once lost, always lost.
    ///
    /// # Errors
    ///
    /// [`LockLost`].
    pub fn check(&self) -> Result<(), LockLost> {
        if self.hold.is_trusted() {
            return Ok(());
        }
        let tenure = &self.hold.tenure;
        if tenure.is_held() && tenure.desk.clock.monotonic() >= tenure.trusted_until() {
            // The clock says so, and it must not be unsaid by a renewal that is answered late.
            tenure.lose("the lease ran out");
        }
        Err(LockLost { name: self.name().clone() })
    }

    /// Returns when the lock is lost. Never returns if it is released in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn lost(&self) {
        self.hold.lost().await;
    }

    /// A token that is cancelled when the lock is lost, to hand to whatever works under it.
    pub fn cancellation_token(&self) -> CancellationToken {
        let begin_watching = || {
            let (token, hold) = (CancellationToken::new(), Arc::downgrade(&self.hold));
            let (to_cancel, desk) = (token.clone(), Arc::clone(&self.hold.tenure.desk));
            desk.handle().spawn(async move {
                // It must not keep the lock alive, so it looks at it from time to time.
                while let Some(hold) = hold.upgrade() {
                    let left = hold.deadline().since(hold.tenure.desk.clock.monotonic());
                    let longest = left.min(Duration::from_secs(1));
                    let is_lost =
                        tokio::time::timeout(longest, hold.lost()).await.is_ok() || !hold.is_trusted();
                    let was_released = hold.guards.load(Ordering::Acquire) == 0;
                    if was_released && !hold.was_taken_away.load(Ordering::Acquire) {
                        return;
                    }
                    if is_lost {
                        return to_cancel.cancel();
                    }
                }
            });
            token
        };
        self.hold.cancellation.get_or_init(begin_watching).clone()
    }

    /// Does `work` for as long as the lock is held: when it is lost, the work is dropped where it stands.
    ///
    /// # Errors
    ///
    /// [`LockLost`], when the lock was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, LockLost> {
        self.check()?;
        tokio::select! {
            biased;
            () = self.lost() => Err(LockLost { name: self.name().clone() }),
            done = work => Ok(done),
        }
    }

    /// Gives the lock back and says what happened. Call it **after** what was done under the lock is committed.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The release goes on in the background then; the lease ends it at the latest.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, the release goes on in the background.
    pub async fn release(mut self) -> Result<Released, LockError> {
        self.is_armed = false;
        if self.hold.guards.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(Released::StillHeld);
        }
        match self.hold.end() {
            GivenBack::PassedOn => Ok(Released::Released),
            GivenBack::WasLost => Ok(Released::WasLost),
            GivenBack::ToRelease(tenure) => release_now(&tenure).await,
        }
    }
}

/// Tells the store, and waits for its answer.
async fn release_now(tenure: &Arc<Tenure>) -> Result<Released, LockError> {
    let (desk, name, token) = (Arc::clone(&tenure.desk), tenure.name.clone(), tenure.token);
    let unanswered = ReleaseWhenDropped { tenure: Some(Arc::clone(tenure)) };
    let answer = desk.store.mutex_release(&name, &token).await;
    match answer {
        Ok(Release::Released | Release::Left) => {
            unanswered.was_answered();
            Ok(Released::Released)
        }
        Ok(Release::NotHeld) => {
            unanswered.was_answered();
            desk.metrics.lost.increment(1);
            Ok(Released::WasLost)
        }
        Err(why) => Err(why.into()),
    }
}

/// Goes on with a release for which nobody waits any more.
struct ReleaseWhenDropped {
    tenure: Option<Arc<Tenure>>,
}

impl ReleaseWhenDropped {
    fn was_answered(mut self) {
        self.tenure = None;
    }
}

impl Drop for ReleaseWhenDropped {
    fn drop(&mut self) {
        if let Some(tenure) = self.tenure.take() {
            tenure.desk.release_in_background(tenure.name.clone(), tenure.token);
        }
    }
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        if !self.is_armed || self.hold.guards.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if let GivenBack::ToRelease(tenure) = self.hold.end() {
            tenure.desk.release_dropped(tenure.name.clone(), tenure.token);
        }
    }
}

impl fmt::Debug for MutexGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("name", self.name())
            .field("fence", &self.fence())
            .field("lease_left", &self.lease_left())
            .finish()
    }
}
