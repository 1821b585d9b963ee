//! A lock that is held on a majority of servers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::super::error::{LockError, LockLost};
use super::super::guard::Released;
use super::super::terms::Terms;
use super::drift;
use super::members::Members;
use crate::clock::Moment;
use crate::key::Name;
use crate::store::{Fence, Lease, Token};

/// Whatever a token may have on the servers: given back when this is dropped.
pub(super) struct Held {
    members: Arc<Members>,
    name: Name,
    token: Token,
    /// Whether it is given back: what a server gives after that goes back at once.
    is_given_back: Arc<AtomicBool>,
}

impl Held {
    pub(super) fn new(members: &Arc<Members>, name: &Name, token: Token) -> Self {
        Self { members: Arc::clone(members), name: name.clone(), token, is_given_back: Arc::default() }
    }

    /// Says whether it is given back.
    pub(super) fn end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_given_back)
    }

    /// Now, and without anybody who waits for it.
    pub(super) fn give_back(self) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_given_back.swap(true, Ordering::AcqRel) {
            drop(self.members.give_back(&self.name, self.token));
        }
    }
}

/// What the guard and its watchdog share.
struct Shared {
    members: Arc<Members>,
    name: Name,
    token: Token,
    lease: Lease,
    since: Moment,
    /// In nanoseconds of our clock.
    trusted_until: AtomicU64,
    is_lost: AtomicBool,
    is_over: AtomicBool,
    changed: Notify,
}

impl Shared {
    fn trusted_until(&self) -> Moment {
        Moment::from_nanos(self.trusted_until.load(Ordering::Acquire))
    }

    /// Once lost, always lost.
    fn is_trusted(&self) -> bool {
        if self.is_lost.load(Ordering::Acquire) {
            return false;
        }
        let is_trusted = self.members.clock.monotonic() < self.trusted_until();
        if !is_trusted && !self.is_lost.swap(true, Ordering::AcqRel) {
            tracing::warn!(name = %self.name, "a lock on a quorum of servers was lost");
            self.members.metrics.lost.increment(1);
            self.changed.notify_waiters();
        }
        is_trusted
    }

    async fn lost(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_trusted() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.members.clock.sleep_until(self.trusted_until()) => {}
            }
        }
    }
}

/// A mutex that is held on a majority of servers, until it is released or dropped, or lost.
#[must_use = "a guard that is dropped at once gives the lock back at once"]
pub struct QuorumGuard {
    shared: Arc<Shared>,
    held: Option<Held>,
    fence: Fence,
}

impl QuorumGuard {
    pub(super) fn begin(held: Held, fence: Fence, trusted_until: Moment, terms: Terms) -> Self {
        let members = Arc::clone(&held.members);
        let shared = Arc::new(Shared {
            name: held.name.clone(),
            token: held.token,
            lease: terms.lease,
            since: members.clock.monotonic(),
            trusted_until: AtomicU64::new(trusted_until.as_nanos()),
            is_lost: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            changed: Notify::new(),
            members,
        });
        if terms.is_kept {
            tokio::spawn(keep(Arc::clone(&shared)));
        }
        Self { shared, held: Some(held), fence }
    }

    /// Which lock.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.shared.name
    }

    /// The fence of this grant: higher than that of every grant before it.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// How long the lock can be trusted, unless it is renewed meanwhile; zero when it is lost.
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        if !self.shared.is_trusted() {
            return Duration::ZERO;
        }
        self.shared.trusted_until().since(self.shared.members.clock.monotonic())
    }

    /// Whether the lock is still held, at this moment. Reads a clock, asks nobody. Once lost, always lost.
    ///
    /// # Errors
    ///
    /// [`LockLost`].
    pub fn check(&self) -> Result<(), LockLost> {
        if self.shared.is_trusted() { Ok(()) } else { Err(LockLost { name: self.name().clone() }) }
    }

    /// Returns when the lock is lost. Never returns if it is released in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn lost(&self) {
        self.shared.lost().await;
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

    /// Gives the lock back on all servers, and returns when a majority has taken it. Call it **after** what was done under
    /// the lock is committed.
    ///
    /// # Errors
    ///
    /// [`LockError::NoQuorum`] when no majority answers. The release goes on in the background then; the lease ends it at
    /// the latest.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, the release goes on in the background.
    pub async fn release(mut self) -> Result<Released, LockError> {
        let was_trusted = self.shared.is_trusted();
        let Some(held) = self.held.take() else { return Ok(Released::WasLost) };
        held.is_given_back.store(true, Ordering::Release);
        let given_back = held.members.give_back(&held.name, held.token);
        if !given_back.await {
            return Err(LockError::NoQuorum { name: self.name().clone(), answered: 0 });
        }
        Ok(if was_trusted { Released::Released } else { Released::WasLost })
    }
}

impl Drop for QuorumGuard {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.is_over.store(true, Ordering::Release);
        shared.changed.notify_waiters();
        let held_for = shared.members.clock.monotonic().since(shared.since);
        shared.members.metrics.hold.record(held_for.as_secs_f64());
    }
}

/// The watchdog: renews when a third of the lease has passed, and tries again until it is over.
async fn keep(shared: Arc<Shared>) {
    let lease = shared.lease.length();
    loop {
        let due = shared.trusted_until() - lease * 2 / 3;
        let over = shared.changed.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if shared.is_over.load(Ordering::Acquire) || !shared.is_trusted() {
            return;
        }
        tokio::select! {
            () = over => continue,
            () = shared.members.clock.sleep_until(due) => {}
        }
        let sent_at = shared.members.clock.monotonic();
        if shared.members.renew(&shared.name, shared.token, shared.lease).await {
            if !shared.is_trusted() {
                // Answered too late: it must not be unsaid that it is lost.
                return;
            }
            let until = sent_at + lease.saturating_sub(drift(shared.lease));
            shared.trusted_until.fetch_max(until.as_nanos(), Ordering::AcqRel);
            shared.members.metrics.renewals.increment(1);
        } else {
            tokio::time::sleep(lease / 20).await;
        }
    }
}

impl fmt::Debug for QuorumGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumGuard")
            .field("name", self.name())
            .field("fence", &self.fence)
            .field("lease_left", &self.lease_left())
            .finish_non_exhaustive()
    }
}
