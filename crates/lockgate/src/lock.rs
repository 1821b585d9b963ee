//! Who may act *now*? Locks that many processes share.
//!
//! | | who holds it | fence |
//! | --- | --- | --- |
//! | [`Mutex`] | one | yes |
//! | [`RwLock`] | many who read, or one who writes | of writers |
//! | [`Semaphore`] | as many as there are permits | – |
//! | [`MultiLock`] | one, several mutexes at once | one for each |
//! | [`QuorumMutex`] | one, on a majority of independent servers | yes |
//! | [`Once`] | one per period, whoever asks | yes |
//! | [`CountDownLatch`] | nobody: all wait until a count is zero | – |
//!
//! **Promise:** at most as many holders at a time as there may be, by the store's clock; every exclusive grant has a fence above
//! all before it; waiters are served in the order in which they came (but for a quorum); a holder or a waiter that dies delays
//! the others by a bounded time; a wait that is dropped leaves nothing behind.
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
//! mutex, rw, semaphore, multi     the recipes: what is wanted
//!  wish         how it is got: try, wait, and how long
//!  ├ hand_off       by the store's queue, for a room
//!  │   room         the waiters of one process for one lock; passes it on among them
//!  │     stay       one tenure of a room, and who holds what under it
//!  │     readers    those who came in under the tenure of a writer
//!  └ polling        by trying: when told that it is free (notify), or again and again (spin)
//! guard         a lock that is held: fence, check, lost, run, release
//! tenure        what the store has given to this process under one token
//! keeper        the watchdog: renews tenures in batches, and ends those that can no longer be trusted
//! news          who waits for what the store tells without being asked
//! owner         who may enter again
//! desk          all that the locks of one gate share
//! once, latch   on top of a mutex; beside it
//! quorum        several stores, and nothing of the above but the words
//! ```

mod desk;
mod error;
#[cfg(test)]
#[cfg(feature = "testing")]
mod fixture;
mod guard;
mod hand_off;
mod keeper;
mod latch;
mod lending;
mod metrics;
mod multi;
mod mutex;
mod news;
mod once;
mod owner;
mod polling;
mod quorum;
mod readers;
mod room;
mod rw;
mod semaphore;
mod stay;
mod tenure;
mod terms;
mod wish;

pub(crate) use self::desk::Desk;
#[cfg(any(test, feature = "testing"))]
pub use self::desk::Traces;
pub use self::error::{LockError, LockLost};
pub use self::guard::{Guard, HoldId, MutexGuard, PermitGuard, ReadGuard, Released, WriteGuard};
pub use self::latch::CountDownLatch;
pub use self::lending::Loan;
pub use self::multi::{MultiGuard, MultiLock};
pub use self::mutex::Mutex;
pub use self::once::{Once, Ran, Turn};
pub use self::owner::Owner;
pub use self::quorum::{MemberStatus, Quorum, QuorumGuard, QuorumMutex};
pub use self::rw::RwLock;
pub use self::semaphore::Semaphore;
pub use self::terms::{Cohort, Waiting};
