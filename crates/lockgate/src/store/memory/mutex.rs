//! The mutex operations, in memory.
//!
//! | `holder` | deadline | means | an acquire by another token |
//! | --- | --- | --- | --- |
//! | `Some` | ahead | held | is told how long |
//! | `Some` | passed | the lease ran out, nobody came since | gets it |
//! | `None` | – | released by `last_released` | gets it (that token itself does not: its call is late) |
//! | no entry | – | never held, or forgotten | gets it |

use std::collections::HashMap;
use std::time::Duration;

use super::Now;
use crate::clock::Moment;
use crate::key::Name;
use crate::store::mutex::RELEASED_KEPT;
use crate::store::{Acquire, Fence, Lease, Release, Renew, Token};

#[derive(Debug)]
struct Entry {
    holder: Option<Token>,
    last_released: Option<Token>,
    fence: Fence,
    /// When the lease ends; after a release, when it was released.
    deadline: Moment,
}

impl Entry {
    fn is_held(&self, now: Now) -> bool {
        self.holder.is_some() && self.deadline > now.monotonic
    }

    /// Whether Redis would have let it expire.
    fn is_forgotten(&self, now: Now) -> bool {
        self.deadline + RELEASED_KEPT <= now.monotonic
    }

    fn was_released_by(&self, token: Token, now: Now) -> bool {
        self.last_released == Some(token) && !self.is_forgotten(now)
    }

    fn is_held_by(&self, token: Token, now: Now) -> bool {
        self.holder == Some(token) && self.deadline > now.monotonic
    }
}

/// All mutexes that are held or were held a short while ago.
#[derive(Debug, Default)]
pub(super) struct Mutexes {
    entries: HashMap<Name, Entry>,
    /// At this size, entries that nobody needs any more are thrown away.
    sweep_at: usize,
}

impl Mutexes {
    /// Throws away what is forgotten. Doubling the threshold makes it a constant cost per acquire.
    fn sweep(&mut self, now: Now) {
        if self.entries.len() < self.sweep_at {
            return;
        }
        self.entries.retain(|_, entry| !entry.is_forgotten(now));
        self.sweep_at = (self.entries.len() * 2).max(1_024);
    }
}

pub(super) fn mutex_acquire(
    mutexes: &mut Mutexes,
    now: Now,
    mutex: &Name,
    token: Token,
    lease: Lease,
    fence_seen: Fence,
) -> Acquire {
    mutexes.sweep(now);
    let previous = mutexes.entries.get(mutex);
    if let Some(entry) = previous.filter(|entry| entry.is_held(now)) {
        let lease_left = entry.deadline.since(now.monotonic);
        return match entry.is_held_by(token, now) {
            true => Acquire::Granted { fence: entry.fence, lease_left },
            false => Acquire::Taken { lease_left },
        };
    }
    if previous.is_some_and(|entry| entry.was_released_by(token, now)) {
        return Acquire::Taken { lease_left: Duration::ZERO };
    }
    let above = previous.map_or(Fence::NONE, |entry| entry.fence).max(fence_seen);
    let fence = Fence::new((above.get() + 1).max(now.wall.as_micros()));
    let deadline = now.monotonic + lease.length();
    let entry = Entry { holder: Some(token), last_released: None, fence, deadline };
    mutexes.entries.insert(mutex.clone(), entry);
    Acquire::Granted { fence, lease_left: lease.length() }
}

pub(super) fn mutex_renew(
    mutexes: &mut Mutexes,
    now: Now,
    mutex: &Name,
    token: Token,
    lease: Lease,
) -> Renew {
    match mutexes.entries.get_mut(mutex) {
        Some(entry) if entry.is_held_by(token, now) => {
            entry.deadline = now.monotonic + lease.length();
            Renew::Renewed
        }
        _ => Renew::NotHeld,
    }
}

pub(super) fn mutex_release(mutexes: &mut Mutexes, now: Now, mutex: &Name, token: Token) -> Release {
    match mutexes.entries.get_mut(mutex) {
        Some(entry) if entry.is_held_by(token, now) => {
            entry.holder = None;
            entry.last_released = Some(token);
            entry.deadline = now.monotonic;
            Release::Released
        }
        Some(entry) if entry.was_released_by(token, now) => Release::Released,
        _ => Release::NotHeld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn mutexes_that_nobody_needs_any_more_take_no_memory() {
        let clock = Clock::fake();
        let mut mutexes = Mutexes::default();
        for number in 0..100_000_u32 {
            let now = Now { monotonic: clock.monotonic(), wall: clock.wall() };
            let name = Name::new("mutex", number.to_string()).unwrap();
            let lease = Lease::new(Duration::from_secs(1)).unwrap();
            mutex_acquire(&mut mutexes, now, &name, Token::from_bits(1), lease, Fence::NONE);
            clock.advance(Duration::from_secs(1));
        }
        assert!(mutexes.entries.len() <= 1_024, "{} are kept", mutexes.entries.len());
    }
}
