//! What a store tells a process without being asked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Fences, Pool, Token};
use crate::clock::Timestamp;
use crate::key::Name;

/// Who hears: one per process (and gate), 64 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EarId(u64);

impl EarId {
    /// An ear that is nobody else's.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    pub fn random() -> Self {
        Token::random().ear()
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for EarId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for EarId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EarId({self})")
    }
}

/// Something that can be held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// A mutex.
    Mutex(Name),
    /// Permits of a pool.
    Pool(Pool),
}

impl Lock {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Lock::Mutex(name) | Lock::Pool(Pool { name, .. }) => name,
        }
    }
}

/// Something that a process should know. Told at most once, and sometimes not at all: whoever waits for it also asks,
/// now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A mutex, or permits, were given to a token of this process that was waiting in the queue.
    Granted {
        /// What was given.
        lock: Lock,
        /// The waiter.
        token: Token,
        /// The fences of this grant.
        fences: Fences,
        /// When it was granted, by the store's clock.
        granted_at: Timestamp,
        /// For how long, from then on: the claim lease.
        lease: Duration,
    },
    /// A mutex that somebody watched is free.
    Freed(Name),
    /// A token of this process that was waiting in a queue no longer is, and should ask why.
    Ask(Token),
    /// A latch has reached zero.
    Opened(Name),
    /// From now on news are heard. There may have been some before, so everything that is waited for must be asked.
    Listening,
}

/// What hears the news. It must be quick: the next news waits for it.
pub trait Listener: Send + Sync + 'static {
    /// Takes the news.
    fn hear(&self, news: News);
}

/// A listener's place in the store. Dropping it ends it.
pub struct Hearing {
    is_listening: watch::Receiver<bool>,
    _ends_when_dropped: Box<dyn Send + Sync>,
}

impl Hearing {
    pub(crate) fn new(
        is_listening: watch::Receiver<bool>,
        ends_when_dropped: impl Send + Sync + 'static,
    ) -> Self {
        Self { is_listening, _ends_when_dropped: Box::new(ends_when_dropped) }
    }

    /// Whether news are heard at this moment, as far as is known.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        *self.is_listening.borrow()
    }

    /// Returns when news are heard.
    pub async fn listening(&self) {
        // An error means that nobody will ever tell: then nothing is heard, for ever.
        if self.is_listening.clone().wait_for(|is_listening| *is_listening).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").field("is_listening", &self.is_listening()).finish_non_exhaustive()
    }
}

/// A listener, shared.
pub(crate) type SharedListener = Arc<dyn Listener>;
