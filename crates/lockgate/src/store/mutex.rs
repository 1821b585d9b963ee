//! The words of the mutex operations.

use std::fmt;
use std::time::Duration;

use crate::error::InvalidInput;

/// For how long the last holder's token and fence are remembered after a release or the end of a lease, so that a
/// re-sent release finds itself done, and fences keep rising even if the store's clock stands still.
pub(crate) const RELEASED_KEPT: Duration = Duration::from_secs(60);

/// Who asks for a lock: 128 bits, new for every attempt, never reused. *The holder is my token* means success, which
/// makes a re-sent call harmless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u128);

impl Token {
    /// A token that nobody can guess.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "without randomness no token is safe, and no caller can put it right"
    )]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(u128::from_le_bytes(bytes))
    }

    /// The token with these bits: for tests and for tokens that come back from a client.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    /// Whoever knows the token can release the lock, so logs get the beginning only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:08x}…)", self.0 >> 96)
    }
}

/// A number that rises with every grant of one lock. Whatever is protected by the lock refuses a smaller one than it
/// has seen: that is how a holder that was paused beyond its lease does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// The highest fence that a caller may claim to have seen. Scripts count in doubles, exact up to 2^53; the rest
    /// is room for the grants to come.
    pub const MAX_SEEN: Fence = Fence((1 << 53) - (1 << 32));

    /// Below every fence that is given out: nothing seen yet.
    pub const NONE: Fence = Fence(0);

    /// The fence with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be stored beside what the lock protects.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For how long a lock is given: 1 ms to 24 h, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease(Duration);

impl Lease {
    /// The longest lease. A holder that needs longer renews.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// A lease of this length; parts of a millisecond are cut off.
    ///
    /// # Errors
    ///
    /// When it is shorter than 1 ms or longer than [`Lease::MAX`].
    pub fn new(length: Duration) -> Result<Self, InvalidInput> {
        let whole_millis = Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        if whole_millis.is_zero() || whole_millis > Self::MAX {
            return Err(InvalidInput::new("lease", format!("{length:?} is not between 1 ms and 24 h")));
        }
        Ok(Self(whole_millis))
    }

    /// The length.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.0
    }
}

/// Refuses a fence that no store can rise above.
pub(crate) fn check_fence_seen(fence_seen: Fence) -> Result<(), InvalidInput> {
    if fence_seen > Fence::MAX_SEEN {
        let problem = format!("{fence_seen} is above {}, so no store gave it out", Fence::MAX_SEEN);
        return Err(InvalidInput::new("fence_seen", problem));
    }
    Ok(())
}

/// The answer to [`Store::mutex_acquire`](super::Store::mutex_acquire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// The token holds the mutex.
    Granted {
        /// Above every fence given out for this mutex before.
        fence: Fence,
        /// What is left of the lease by the store's clock at the time of the answer. Count it from *before* the
        /// request was sent.
        lease_left: Duration,
    },
    /// Another token holds the mutex.
    Taken {
        /// When its lease ends unless it is renewed, by the store's clock.
        lease_left: Duration,
    },
}

/// The answer to [`Store::mutex_renew`](super::Store::mutex_renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renew {
    /// The lease has begun anew.
    Renewed,
    /// The token does not hold the mutex, or no longer.
    NotHeld,
}

/// The answer to [`Store::mutex_release`](super::Store::mutex_release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The mutex is free again, by this call or by an earlier one with the same token.
    Released,
    /// The token does not hold the mutex: its lease had ended, or it was released before and somebody else came.
    NotHeld,
}
