//! A lock that is held.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::{LockError, LockLost};
use super::owner::Owner;
use super::room::GivenBack;
use super::tenure::Tenure;
use crate::clock::Moment;
use crate::key::Name;
use crate::store::{Acquire, Attempt, EarId, Fence, Lease, Lock, Release, Token};

/// How often the store is told for how long to keep what nobody holds any more, if it does not answer.
const KEEP_ATTEMPTS: u32 = 5;

/// One holder's time with the lock: shared by its guards, of which there are several only when an owner has entered
/// again.
pub(super) struct Hold {
    tenure: Arc<Tenure>,
    /// [`Fence::NONE`] for one who shares the lock with others.
    fence: Fence,
    /// Tells it from all others of this process.
    number: u64,
    /// How many permits it has of those of its tenure.
    permits: AtomicU32,
    /// Where it stands among the holders of its tenure.
    place: AtomicUsize,
    since: Moment,
    lease: Lease,
    /// When its lease ends, in nanoseconds; `u64::MAX` when the watchdog keeps it.
    until: AtomicU64,
    /// How many guards there are.
    guards: AtomicUsize,
    was_taken_away: AtomicBool,
    owner: Option<Owner>,
    cancellation: OnceLock<CancellationToken>,
}

/// What a holder gets.
pub(super) struct Given {
    pub(super) fence: Fence,
    pub(super) permits: u32,
    pub(super) lease: Lease,
    pub(super) until: Option<Moment>,
    pub(super) owner: Option<Owner>,
}

impl Hold {
    pub(super) fn new(tenure: &Arc<Tenure>, now: Moment, given: Given) -> Arc<Self> {
        let Given { fence, permits, lease, until, owner } = given;
        let hold = Arc::new(Self {
            tenure: Arc::clone(tenure),
            fence,
            number: tenure.desk.keeper.new_id(),
            permits: AtomicU32::new(permits),
            place: AtomicUsize::new(0),
            since: now,
            lease,
            until: AtomicU64::new(until.map_or(u64::MAX, Moment::as_nanos)),
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

    pub(super) fn lock(&self) -> &Lock {
        &self.tenure.lock
    }

    fn name(&self) -> &Name {
        self.lock().name()
    }

    #[cfg(all(test, feature = "testing"))]
    pub(super) fn fence(&self) -> Fence {
        self.fence
    }

    pub(super) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }

    /// How many permits it has. Changes only under the lock of its room.
    pub(super) fn permits(&self) -> u32 {
        self.permits.load(Ordering::Acquire)
    }

    pub(super) fn keep_only(&self, permits: u32) {
        self.permits.store(permits, Ordering::Release);
    }

    pub(super) fn place(&self) -> usize {
        self.place.load(Ordering::Acquire)
    }

    pub(super) fn stand_at(&self, place: usize) {
        self.place.store(place, Ordering::Release);
    }

    pub(super) fn lease(&self) -> Lease {
        self.lease
    }

    /// When its lease ends; nothing when the watchdog keeps it.
    pub(super) fn until(&self) -> Option<Moment> {
        let until = self.until.load(Ordering::Acquire);
        (until != u64::MAX).then(|| Moment::from_nanos(until))
    }

    /// From now on its lease ends then.
    pub(super) fn end_at(&self, until: Moment) {
        self.until.store(until.as_nanos(), Ordering::Release);
        self.tenure.lost.notify_waiters();
    }

    /// Until when it can be trusted, as things stand.
    fn deadline(&self) -> Moment {
        let trusted = self.tenure.trusted_until();
        self.until().map_or(trusted, |until| until.min(trusted))
    }

    pub(super) fn is_trusted(&self) -> bool {
        let is_ours = self.tenure.is_held() && !self.was_taken_away.load(Ordering::Acquire);
        is_ours && self.tenure.desk.clock.monotonic() < self.deadline()
    }

    /// Whether its lease is over, whatever the tenure has left.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.until().is_some_and(|until| now >= until)
    }

    /// It belongs to somebody else now.
    pub(super) fn take_away(&self) {
        self.was_taken_away.store(true, Ordering::Release);
        self.tenure.lost.notify_waiters();
    }

    /// One more guard, unless the last one has gone already.
    fn enter_again(self: &Arc<Self>) -> Option<Guard> {
        let more = |guards: usize| (guards > 0).then_some(guards + 1);
        self.guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Guard { hold: Arc::clone(self), is_armed: true })
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
            self.tenure.desk.owners.forget(owner, self);
        }
    }

    /// The last guard has gone.
    fn end(self: &Arc<Self>) -> GivenBack {
        self.forget_owner();
        let desk = &self.tenure.desk;
        let held_for = desk.clock.monotonic().since(self.since);
        desk.metrics.of(self.lock()).hold.record(held_for.as_secs_f64());
        self.tenure.room.give_back(self)
    }
}

/// Takes part in what `owner` holds of `lock`, if it holds it.
pub(super) fn enter_again(desk: &super::desk::Desk, lock: &Lock, owner: &Owner) -> Option<Guard> {
    let hold = desk.owners.hold_of(lock, owner)?;
    if hold.is_trusted() { hold.enter_again() } else { None }
}

/// What every lock that is held can be asked, until it is released or dropped, or lost.
///
/// **A lease can be outlived.** A process that is paused, or cut off from the store, may believe that it holds the lock
/// when others have it already. The guard knows its deadline, counted so that it errs on the safe side:
/// [`check`](Self::check) asks, [`lost`](Self::lost) waits for it, [`run`](Self::run) stops the work then. Between a check
/// and a write there is still time to be paused in; what must never happen is therefore prevented where it is written, by
/// the fence of an exclusive lock ([`MutexGuard::fence`], [`WriteGuard::fence`]).
#[must_use = "a guard that is dropped at once gives the lock back at once"]
pub struct Guard {
    hold: Arc<Hold>,
    is_armed: bool,
}

/// What the release of a guard did.
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

impl Guard {
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

    pub(super) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// From now on it is held no longer than that.
    pub(super) fn end_at(&self, until: Moment) {
        self.hold.tenure.room.end_at(&self.hold, until);
    }

    /// Whether another guard of the same owner holds it too.
    pub(super) fn is_shared_with_its_owner(&self) -> bool {
        self.hold.guards.load(Ordering::Acquire) > 1
    }

    fn fence(&self) -> Fence {
        self.hold.fence
    }

    fn id(&self) -> HoldId {
        HoldId { ear: self.hold.tenure.desk.ear, number: self.hold.number }
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

    pub(super) async fn release(mut self) -> Result<Released, LockError> {
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
    let (desk, token) = (Arc::clone(&tenure.desk), tenure.token);
    let unanswered = ReleaseWhenDropped { tenure: Some(Arc::clone(tenure)) };
    let answer = desk.release(&tenure.lock, &token).await;
    match answer {
        Ok(Release::Released | Release::Left) => {
            unanswered.was_answered();
            Ok(Released::Released)
        }
        Ok(Release::NotHeld) => {
            unanswered.was_answered();
            desk.metrics.of(&tenure.lock).lost.increment(1);
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
            tenure.desk.release_in_background(tenure.lock.clone(), tenure.token);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_armed || self.hold.guards.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if let GivenBack::ToRelease(tenure) = self.hold.end() {
            tenure.desk.release_dropped(tenure.lock.clone(), tenure.token);
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("lock", self.hold.lock())
            .field("lease_left", &self.lease_left())
            .finish()
    }
}

/// Tells one who shares a lock from all others who do: for logs. Unlike a fence it says nothing about who came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HoldId {
    ear: EarId,
    number: u64,
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ear, self.number)
    }
}

/// A kind of guard: what it is, and that it can be released. What it can be asked is [`Guard`]'s.
macro_rules! guards {
    ($($(#[$doc:meta])+ $name:ident),+) => { $(
        $(#[$doc])+
        #[must_use = "a guard that is dropped at once gives the lock back at once"]
        pub struct $name(pub(super) Guard);

        impl $name {
            /// Gives the lock back and says what happened. Call it **after** what was done under the lock is committed.
            ///
            /// # Errors
            ///
            /// When the store does not answer. The release goes on in the background then; the lease ends it at the latest.
            ///
            /// # Cancel safety
            ///
            /// When it is dropped, the release goes on in the background.
            pub async fn release(self) -> Result<Released, LockError> {
                self.0.release().await
            }
        }

        impl Deref for $name {
            type Target = Guard;

            fn deref(&self) -> &Guard {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    )+ };
}

guards! {
    /// A [mutex](super::Mutex) that is held. What it can be asked: see [`Guard`].
    MutexGuard,
    /// A [read-write lock](super::RwLock) that is held for reading, with others. What it can be asked: see [`Guard`].
    ReadGuard,
    /// A [read-write lock](super::RwLock) that is held for writing. What it can be asked: see [`Guard`].
    WriteGuard,
    /// Permits of a [semaphore](super::Semaphore) that are held. What they can be asked: see [`Guard`].
    PermitGuard
}

impl MutexGuard {
    /// The fence of this grant: higher than that of every grant before it. Store it beside what the lock protects, and
    /// refuse smaller ones there.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.fence()
    }
}

impl MutexGuard {
    /// Ends it without giving it back to the store; nothing if it is lost, or goes on here.
    pub(super) fn let_go(self) -> Option<Arc<Tenure>> {
        let mut guard = self.0;
        guard.is_armed = false;
        if guard.hold.guards.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        match guard.hold.end() {
            GivenBack::ToRelease(tenure) => Some(tenure),
            GivenBack::PassedOn | GivenBack::WasLost => None,
        }
    }

    /// Ends it, and lets the store keep it for so long without anybody who holds it.
    pub(super) async fn leave_for(self, rest: Duration) {
        // Nothing left of it: being dropped gives it back.
        let Ok(lease) = Lease::new(rest) else { return };
        let Some(tenure) = self.let_go() else { return };
        let Lock::Mutex(name) = &tenure.lock else { return };
        let desk = &tenure.desk;
        // Under another token: a renewal that is still under way must not change what is left.
        let rest = Attempt::new(Token::for_ear(desk.ear), lease);
        for attempt in 1..=KEEP_ATTEMPTS {
            match desk.store.mutex_yield(name, &tenure.token, &rest).await {
                Ok(Acquire::Granted { .. }) => return,
                // Somebody waits for this mutex, by its name, and has it now.
                Ok(_) => return desk.release_until_answered(&tenure.lock, rest.token).await,
                Err(why) if attempt == KEEP_ATTEMPTS => {
                    tracing::warn!(%name, %why, "the end of a period could not be set; it ends with the lease");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100) * attempt).await,
            }
        }
    }
}

impl WriteGuard {
    /// The fence of this grant: higher than that of every writer before it. Store it beside what the lock protects, and
    /// refuse smaller ones there.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.fence()
    }
}

impl ReadGuard {
    /// Tells this reader from all others. Readers do not exclude each other, so they have no fence.
    #[must_use]
    pub fn id(&self) -> HoldId {
        self.0.id()
    }
}

impl PermitGuard {
    /// Tells this holder from all others. Holders do not exclude each other, so they have no fence.
    #[must_use]
    pub fn id(&self) -> HoldId {
        self.0.id()
    }

    /// How many permits it holds.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.0.hold.permits()
    }
}
