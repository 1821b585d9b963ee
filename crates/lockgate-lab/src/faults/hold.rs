//! A lock in a worker's hand, with everything that is asked and answered written down.
//!
//! The judge must know for how long a holder *believes* to hold the lock, and nobody but its guard knows that. So beliefs
//! are written down too, as renewals: a holder that asks its guard at `t` and is told that 300 ms are left has reason to
//! trust the lock until `t` + 300 ms, and not a nanosecond longer. The acquire itself, which may have waited for long,
//! claims nothing.

use std::io;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::lock::{Mutex, MutexGuard, Released};
use lockgate::testing::history::{
    Acquire, AcquireAnswer, FencedWrite, Pending, Recorder, Release, ReleaseAnswer, Renew, RenewAnswer,
    WriteAnswer,
};

use super::Failure;
use super::register::Register;

/// A belief that took longer to write down may be older than it looks, and says nothing.
const FRESH: Duration = Duration::from_millis(1);

/// What every task of a worker needs.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) mutex: Mutex,
    pub(super) lock: String,
    pub(super) register: Register,
    pub(super) recorder: Recorder,
    pub(super) clock: Clock,
}

pub(super) struct Hold {
    tools: Tools,
    guard: MutexGuard,
    fence: u64,
}

impl Tools {
    /// To be called before asking for the lock.
    pub(super) fn asks(&self) -> io::Result<Pending<Acquire>> {
        self.recorder.invoke(Acquire { lock: self.lock.clone(), lease_ms: 0 })
    }

    /// The lock was given.
    pub(super) fn has_it(&self, asked: Pending<Acquire>, guard: MutexGuard) -> io::Result<Hold> {
        let fence = guard.fence().get();
        asked.ok(AcquireAnswer::Acquired { fence })?;
        let hold = Hold { tools: self.clone(), guard, fence };
        hold.believe()?;
        Ok(hold)
    }
}

impl Hold {
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    pub(super) async fn lost(&self) {
        self.guard.lost().await;
    }

    /// Asks the guard, and writes down for how long it trusts the lock.
    pub(super) fn believe(&self) -> io::Result<bool> {
        let began = self.tools.clock.monotonic();
        let left = self.guard.lease_left().saturating_sub(FRESH);
        let lease_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let (lock, fence) = (self.tools.lock.clone(), self.fence);
        let belief = self.tools.recorder.invoke(Renew { lock, fence, lease_ms })?;
        if self.guard.check().is_err() {
            belief.ok(RenewAnswer::Lost)?;
            return Ok(false);
        }
        if self.tools.clock.monotonic().since(began) < FRESH {
            belief.ok(RenewAnswer::Renewed)?;
        } else {
            belief.unknown()?;
        }
        Ok(true)
    }

    /// Writes to what the lock protects; says whether it was let.
    pub(super) async fn write(&self) -> Result<bool, Failure> {
        let (resource, fence) = (self.tools.lock.clone(), self.fence);
        let write = self.tools.recorder.invoke(FencedWrite { resource, fence })?;
        let accepted = self.tools.register.write(&self.tools.lock, fence).await?;
        write.ok(if accepted { WriteAnswer::Accepted } else { WriteAnswer::Refused })?;
        Ok(accepted)
    }

    fn gives_back(&self) -> io::Result<Pending<Release>> {
        self.tools.recorder.invoke(Release { lock: self.tools.lock.clone(), fence: self.fence })
    }

    /// Gives it back and waits for the answer; says it in a word.
    pub(super) async fn release(self) -> io::Result<&'static str> {
        let release = self.gives_back()?;
        match self.guard.release().await {
            Ok(Released::Released) => release.ok(ReleaseAnswer::Released).map(|()| "released"),
            Ok(_) => release.ok(ReleaseAnswer::NotHeld).map(|()| "was-lost"),
            Err(_) => release.unknown().map(|()| "unanswered"),
        }
    }

    /// Gives it back without waiting for anything.
    pub(super) fn let_go(self) -> io::Result<()> {
        let release = self.gives_back()?;
        drop(self.guard);
        release.unknown()
    }
}
