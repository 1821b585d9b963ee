//! A lock in a worker's hand, with everything that is asked and answered written down.
//!
//! The judge must know for how long a holder *believes* to hold the lock, and nobody but its guard knows that. So beliefs
//! are written down too, as renewals: a holder that asks its guard at `t` and is told that 300 ms are left has reason to
//! trust the lock until `t` + 300 ms, and not a nanosecond longer. The acquire itself, which may have waited for long,
//! claims nothing.

use std::io;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::lock::Released;
use lockgate::testing::history::{
    Acquire, AcquireAnswer, FencedWrite, Pending, Recorder, Release, ReleaseAnswer, Renew, RenewAnswer,
    WriteAnswer,
};

use super::Failure;
use super::recipe::{Held, Recipe, Want};
use super::register::Register;
use super::shares::{Share, Shares, Weight};

/// A belief that took longer to write down may be older than it looks, and says nothing.
const FRESH: Duration = Duration::from_millis(1);

/// What every task of a worker needs.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) recipe: Recipe,
    pub(super) wants: Vec<Want>,
    /// Whether some of its tasks stop waiting after a moment.
    pub(super) gives_up: bool,
    pub(super) register: Register,
    pub(super) recorder: Recorder,
    pub(super) shares: Shares,
    pub(super) clock: Clock,
}

/// Something that was asked for.
pub(super) struct Asked {
    pending: Vec<Pending<Acquire>>,
    weight: Option<Weight>,
}

pub(super) struct Hold {
    tools: Tools,
    held: Held,
    /// What it holds alone. What it shares with others is the other judge's.
    fences: Vec<(String, u64)>,
    share: Option<Share>,
}

impl Tools {
    /// To be called before asking for the lock.
    pub(super) fn asks(&self, want: &Want) -> io::Result<Asked> {
        let mut names = want.exclusive(self.recipe.lock());
        // As the guard names them.
        names.sort_unstable();
        let ask = |name: &str| self.recorder.invoke(Acquire { lock: name.to_owned(), lease_ms: 0 });
        Ok(Asked {
            pending: names.into_iter().map(ask).collect::<io::Result<_>>()?,
            weight: Weight::of(want),
        })
    }

    /// The lock was given.
    pub(super) fn has_it(&self, asked: Asked, held: Held) -> io::Result<Hold> {
        let fences = held.fences();
        for (asked, (_, fence)) in asked.pending.into_iter().zip(&fences) {
            asked.ok(AcquireAnswer::Acquired { fence: *fence })?;
        }
        let share = asked.weight.map(|weight| self.shares.begin(weight));
        let hold = Hold { tools: self.clone(), held, fences, share };
        hold.believe()?;
        Ok(hold)
    }
}

impl Asked {
    /// No answer came.
    pub(super) fn unknown(self) -> io::Result<()> {
        self.pending.into_iter().try_for_each(Pending::unknown)
    }
}

impl Hold {
    /// The highest of its fences; 0, if it has none.
    pub(super) fn fence(&self) -> u64 {
        self.fences.iter().map(|(_, fence)| *fence).max().unwrap_or(0)
    }

    pub(super) async fn lost(&self) {
        self.held.lost().await;
    }

    /// Asks the guard, and writes down for how long it trusts the lock.
    pub(super) fn believe(&self) -> io::Result<bool> {
        if let Some(share) = &self.share {
            share.believe(&self.held)?;
        }
        for (lock, fence) in &self.fences {
            self.believe_in(lock, *fence)?;
        }
        Ok(self.held.is_trusted())
    }

    fn believe_in(&self, lock: &str, fence: u64) -> io::Result<()> {
        let began = self.tools.clock.monotonic();
        let left = self.held.lease_left().saturating_sub(FRESH);
        let lease_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let belief = self.tools.recorder.invoke(Renew { lock: lock.to_owned(), fence, lease_ms })?;
        if !self.held.is_trusted() {
            belief.ok(RenewAnswer::Lost)
        } else if self.tools.clock.monotonic().since(began) < FRESH {
            belief.ok(RenewAnswer::Renewed)
        } else {
            belief.unknown()
        }
    }

    /// Writes to what the lock protects; says whether it was let everywhere. Who shares a lock does not write.
    pub(super) async fn write(&self) -> Result<bool, Failure> {
        let mut accepted_all = true;
        for (lock, fence) in &self.fences {
            let write = self.tools.recorder.invoke(FencedWrite { resource: lock.clone(), fence: *fence })?;
            let accepted = self.tools.register.write(lock, *fence).await?;
            write.ok(if accepted { WriteAnswer::Accepted } else { WriteAnswer::Refused })?;
            accepted_all &= accepted;
        }
        Ok(accepted_all)
    }

    fn gives_back(&self) -> io::Result<Vec<Pending<Release>>> {
        if let Some(share) = &self.share {
            share.end()?;
        }
        let give_back = |(lock, fence): &(String, u64)| {
            self.tools.recorder.invoke(Release { lock: lock.clone(), fence: *fence })
        };
        self.fences.iter().map(give_back).collect()
    }

    /// Goes on as a reader, if it writes; nothing when it was lost.
    pub(super) async fn downgrade(self) -> io::Result<Option<Hold>> {
        let Held::Write(_) = &self.held else { return Ok(Some(self)) };
        self.gives_back()?.into_iter().try_for_each(Pending::unknown)?;
        let Hold { tools, held: Held::Write(guard), .. } = self else { return Ok(None) };
        let Ok(guard) = guard.downgrade().await else { return Ok(None) };
        let share = Some(tools.shares.begin(Weight::READER));
        let hold = Hold { tools, held: Held::Read(guard), fences: Vec::new(), share };
        hold.believe()?;
        Ok(Some(hold))
    }

    /// Gives it back and waits for the answer; says it in a word.
    pub(super) async fn release(self) -> io::Result<&'static str> {
        let mut releases = self.gives_back()?.into_iter();
        match self.held.release().await {
            Ok(Released::Released) => {
                releases.try_for_each(|release| release.ok(ReleaseAnswer::Released)).map(|()| "released")
            }
            // Of several, nobody says which.
            Ok(_) if self.fences.len() > 1 => releases.try_for_each(Pending::unknown).map(|()| "was-lost"),
            Ok(_) => releases.try_for_each(|release| release.ok(ReleaseAnswer::NotHeld)).map(|()| "was-lost"),
            Err(_) => releases.try_for_each(Pending::unknown).map(|()| "unanswered"),
        }
    }

    /// Gives it back without waiting for anything.
    pub(super) fn let_go(self) -> io::Result<()> {
        let releases = self.gives_back()?;
        drop(self.held);
        releases.into_iter().try_for_each(Pending::unknown)
    }
}
