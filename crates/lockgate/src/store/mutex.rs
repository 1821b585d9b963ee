//! The words of the mutex operations.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use super::EarId;
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// For how long the last holder's token and fence are remembered after a release, so that a re-sent release finds
/// itself done, and fences keep rising even if the store's clock stands still.
pub(crate) const RELEASED_KEPT: Duration = Duration::from_secs(60);

/// For how long a queue is remembered after the last word from anybody in it.
#[cfg(feature = "redis")]
pub(crate) const QUEUE_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many fences a grant reserves at the most, and one that is pushed to a waiter always: the next holders of the
/// same process take theirs from them. Far fewer than the microseconds that a grant takes, because the fence of a lock
/// that the store has forgotten begins again at the store's time.
pub const FENCE_BLOCK: u64 = 64;

/// How many locks one call may renew.
pub const MAX_RENEW_BATCH: usize = 512;

/// How many mutexes may be taken together.
pub const MAX_TOGETHER: usize = 100;

/// Who asks for a lock: 128 bits, new for every attempt, never reused. *The holder is my token* means success, which
/// makes a re-sent call harmless. Its upper half says whom to tell when the lock is given to it.
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

    /// A token that nobody can guess, for somebody who hears by `ear`.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    pub fn for_ear(ear: EarId) -> Self {
        let lower_half = Self::random().0 & u128::from(u64::MAX);
        Self(u128::from(ear.bits()) << 64 | lower_half)
    }

    /// The same, with a mark in it by which whoever lends the lock out knows it again.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    pub fn marked_for_ear(ear: EarId, mark: LoanMark) -> Self {
        let room_for_it = u128::from(LoanMark::MASK) << LoanMark::SHIFT;
        Self(Self::for_ear(ear).0 & !room_for_it | u128::from(mark.0) << LoanMark::SHIFT)
    }

    /// The mark that it was made with; of every other token, some mark.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the mark is among the lower bits")]
    pub const fn mark(self) -> LoanMark {
        LoanMark::new((self.0 >> LoanMark::SHIFT) as u64)
    }

    /// All of it.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The token with these bits: for tests and for tokens that come back from a client.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Whom to tell when something is given to this token.
    #[must_use]
    pub const fn ear(self) -> EarId {
        EarId::from_bits((self.0 >> 64) as u64)
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    #[must_use]
    pub fn parse(hexadecimal: &str) -> Option<Self> {
        u128::from_str_radix(hexadecimal, 16).ok().map(Self)
    }
}

#[cfg(feature = "durable")]
impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "durable")]
impl<'de> serde::Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a token"))
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

    pub(crate) const MIN: Lease = Lease(Duration::from_millis(1));

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

/// Fences that belong to one grant: `first`, and those after it up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    /// Above every fence given out for this mutex before.
    pub first: Fence,
    /// The highest that this grant may use.
    pub last: Fence,
}

/// What an attempt to take a mutex does when somebody else has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    /// Nothing.
    Leave,
    /// Wants to hear when the mutex is free: [`News::Freed`](super::News::Freed), once. If it gets the mutex, the news are
    /// told when it gives it back: others of its process may want to hear them.
    Watch,
    /// Waits in the queue; when its turn comes, the mutex is given to it, and it hears
    /// [`News::Granted`](super::News::Granted).
    Queue,
    /// The same for one that has been told that it waits, and wants to know how it stands. If it is no longer in the queue, it
    /// was at the head of it when the mutex was given to it and it did not hear of it in time: so it goes to the head.
    QueueAgain,
}

/// One attempt to take a mutex. Asked again, it means the same attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Who asks; new for every attempt.
    pub token: Token,
    /// For how long, if it is free. A waiter in the queue gets the store's claim lease first.
    pub lease: Lease,
    /// How many fences to reserve: 1 to [`FENCE_BLOCK`].
    pub fences: u64,
    /// The highest fence that the caller knows of, at most [`Fence::MAX_SEEN`].
    pub fence_seen: Fence,
    /// What to do when it is taken.
    pub if_taken: IfTaken,
}

impl Attempt {
    /// An attempt that takes one fence, has seen none, and leaves when the mutex is taken.
    #[must_use]
    pub const fn new(token: Token, lease: Lease) -> Self {
        Self { token, lease, fences: 1, fence_seen: Fence::NONE, if_taken: IfTaken::Leave }
    }

    /// Refuses what no store can do.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        check_seen(self.fence_seen)?;
        check_fences(1, self.fences)
    }
}

/// Refuses a fence that nobody can have seen.
pub(crate) fn check_seen(fence: Fence) -> Result<(), InvalidInput> {
    if fence <= Fence::MAX_SEEN {
        return Ok(());
    }
    let problem = format!("{fence} is above {}, so no store gave it out", Fence::MAX_SEEN);
    Err(InvalidInput::new("fence_seen", problem))
}

/// Refuses mutexes that no store can give together.
pub(crate) fn check_together(wishes: &[(Name, Attempt)]) -> Result<(), InvalidInput> {
    if !(1..=MAX_TOGETHER).contains(&wishes.len()) {
        let problem = format!("{} at once; 1 to {MAX_TOGETHER} are allowed", wishes.len());
        return Err(InvalidInput::new("wishes", problem));
    }
    let mut names = HashSet::with_capacity(wishes.len());
    if let Some((twice, _)) = wishes.iter().find(|(name, _)| !names.insert(name)) {
        return Err(InvalidInput::new("wishes", format!("{twice} is among them twice; ask for it once")));
    }
    wishes.iter().try_for_each(|(_, attempt)| attempt.check())
}

/// Refuses more fences than a grant may reserve.
fn check_fences(least: u64, fences: u64) -> Result<(), InvalidInput> {
    if (least..=FENCE_BLOCK).contains(&fences) {
        return Ok(());
    }
    Err(InvalidInput::new("fences", format!("{fences} is not between {least} and {FENCE_BLOCK}")))
}

/// The answer to [`Store::mutex_acquire`](super::Store::mutex_acquire) and
/// [`Store::mutex_yield`](super::Store::mutex_yield).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// The token holds the mutex.
    Granted {
        /// The fences of this grant.
        fences: Fences,
        /// What is left of the lease by the store's clock at the time of the answer. Count it from *before* the
        /// request was sent.
        lease_left: Duration,
    },
    /// Another token holds the mutex.
    Taken {
        /// When its lease ends unless it is renewed, by the store's clock. Of several holders: the first.
        lease_left: Duration,
    },
    /// Another token holds the mutex, and this one waits in the queue.
    Queued {
        /// How many are before it.
        ahead: u64,
        /// When the holder's lease ends unless it is renewed, by the store's clock.
        lease_left: Duration,
        /// The store's time at the answer: with it, the time of a later grant can be understood.
        now: Timestamp,
    },
    /// More permits are wanted than there are. A mutex never answers this.
    Never {
        /// How many there are.
        total: u32,
    },
}

/// One lock to be renewed by [`Store::mutex_renew`](super::Store::mutex_renew).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Which mutex.
    pub mutex: Name,
    /// Who holds it.
    pub token: Token,
    /// How long the lease is that begins now.
    pub lease: Lease,
    /// How many more fences to reserve: 0 to [`FENCE_BLOCK`].
    pub fences: u64,
}

/// Refuses a batch that no store can renew.
pub(crate) fn check_renewals(renewals: &[Renewal]) -> Result<(), InvalidInput> {
    check_batch_of(renewals.iter().map(|renewal| renewal.fences))
}

/// Refuses more renewals than one call may make, or one that wants too many fences.
pub(crate) fn check_batch_of(mut fences: impl ExactSizeIterator<Item = u64>) -> Result<(), InvalidInput> {
    if fences.len() > MAX_RENEW_BATCH {
        let problem = format!("{} at once; at most {MAX_RENEW_BATCH} are allowed", fences.len());
        return Err(InvalidInput::new("renewals", problem));
    }
    fences.try_for_each(|fences| check_fences(0, fences))
}

/// The answer to one [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renew {
    /// The lease has begun anew.
    Renewed {
        /// The fences that were asked for, if any; the rest of the earlier ones may still be used before them.
        fences: Option<Fences>,
        /// Whether somebody waits for this mutex. May say so a while after the last one left.
        others_wait: bool,
    },
    /// The token does not hold the mutex, or no longer.
    NotHeld,
}

/// The answer to [`Store::mutex_release`](super::Store::mutex_release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The mutex is free again or belongs to the next waiter, by this call or by an earlier one with the same token.
    Released,
    /// The token was waiting in the queue, and is no longer.
    Left,
    /// The token does not hold the mutex: its lease had ended, or it was released before and somebody else came.
    NotHeld,
}

/// By what a lender knows for whom a lock was: 40 bits. What is left of the token is enough to tell one loan from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoanMark(u64);

impl LoanMark {
    const MASK: u64 = (1 << 40) - 1;
    const SHIFT: u32 = 24;

    /// The mark with the lower 40 of these bits.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits & Self::MASK)
    }
}

/// How a mutex stands: the answer to [`Store::mutex_read`](super::Store::mutex_read).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutexStatus {
    /// Who holds it.
    pub holder: Option<Holder>,
    /// The highest fence that is known to be given out, or [`Fence::NONE`].
    pub fence: Fence,
    /// How many wait in the queue. Those who watch or spin are not known to the store.
    pub waiting: u64,
    /// The first of them, in their order: at most [`MutexStatus::MAX_LISTED`].
    pub first_waiting: Vec<Token>,
}

/// Who holds a mutex, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The holder's token.
    pub token: Token,
    /// What is left of its lease, by the store's clock.
    pub lease_left: Duration,
}

impl MutexStatus {
    /// How many waiters are listed at the most.
    pub const MAX_LISTED: usize = 100;
}
