//! Who may act *now*? A mutex that many processes share.
//!
//! **Promise:** at most one holder at a time, by the store's clock; every grant has a fence above all before it; waiters
//! are served in the order in which they came; a holder or a waiter that dies delays the others by a bounded time; a
//! wait that is dropped leaves nothing behind.
//!
//! **Not promised:** that a holder notices in time that it has lost the lock. No lock with a lease can promise that:
//!
//! ```text
//! A: lock (lease 5 s) … paused for 6 s …                      write ← would destroy what B wrote
//! B:                    waits … gets the lock … write, release
//! ```
//!
//! A's guard knows it as soon as A runs again, and says so when asked. What happens between the question and the write
//! can only be prevented where it is written: by the [fence](MutexGuard::fence).
//!
//! ```text
//! mutex      the recipe: try, wait, and how
//!  ├ hand_off    by the store's queue, for a room
//!  │   room      the waiters of one process for one name; passes the lock on among them
//!  └ polling     by trying: when told that it is free (notify), or again and again (spin)
//! guard      a lock that is held: fence, check, lost, run, release
//! tenure     what the store has given to this process under one token
//! keeper     the watchdog: renews tenures in batches, and ends those that can no longer be trusted
//! news       who waits for what the store tells without being asked
//! owner      who may enter again
//! desk       all that the locks of one gate share
//! ```

mod desk;
mod error;
#[cfg(test)]
#[cfg(feature = "testing")]
mod fixture;
mod guard;
mod hand_off;
mod keeper;
mod metrics;
mod mutex;
mod news;
mod owner;
mod polling;
mod room;
mod tenure;
mod terms;

pub(crate) use self::desk::Desk;
#[cfg(any(test, feature = "testing"))]
pub use self::desk::Traces;
pub use self::error::{LockError, LockLost};
pub use self::guard::{MutexGuard, Released};
pub use self::mutex::Mutex;
pub use self::owner::Owner;
pub use self::terms::{Cohort, Waiting};
