//! Lockgate is what stands between a crowd and something limited.
//!
//! ```
//! use lockgate::{Gate, stock::{Issue, Terms}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::open("memory").await?; // or redis://…
//!
//! let guard = gate.mutex("order:42")?.lock().await?; // waits for its turn
//! println!("mine, with fence {}", guard.fence());
//! guard.release().await?;
//!
//! let coupon = gate.coupon("welcome")?;
//! coupon.open(&Terms::new(100)?).await?;
//! assert_eq!(coupon.issue("alice").await?, Issue::Issued { seq: 1, remaining: 99 });
//! assert_eq!(coupon.issue("alice").await?, Issue::AlreadyIssued { seq: 1 });
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! | where | what |
//! | --- | --- |
//! | [`Gate`] | the front door: opens a store, hands out the gates |
//! | [`lock`] | who may act *now*? Mutex, read-write lock, semaphore, several at once, quorum, latch, once per period |
//! | `blocking` | (feature `blocking`) the locks for programs that are not asynchronous |
//! | [`mod@locked`] | what `#[locked]` (feature `macros`) calls |
//! | [`stock`] | who gets *one of N*? Coupons, deals, orders, holds |
//! | [`mod@line`] | who is *next*? A fair waiting room, with tickets and passes |
//! | `line::pass` | (feature `pass`) the proof that somebody was admitted, which anybody can check |
//! | `ledger` | (features `postgres`, `mysql`, `sqlite`) what was *decided*, durably? Every change in SQL, audit, the way back |
//! | [`store`] | the contract that both stores keep, with the operations of all gates; [`store::memory`] and [`store::redis`] keep it |
//! | `fencing` | (features `postgres`, `mysql`, `sqlite`) the database refuses a holder that lost its lock |
//! | [`config`] | what can be set when a gate is opened |
//! | [`error`] | what it means when there is no answer |
//! | [`key`] | names, and how they become keys |
//! | [`clock`] | the two clocks, and times |
//! | `testing` | (feature `testing`) what it takes to test Lockgate, or a store of your own |
//!
//! # The tour
//!
//! - **A denial is an answer.** *Sold out* and *taken* are variants of an `Ok`. An `Err` means that the store did not
//!   answer, and its variant says whether something may have happened nevertheless.
//! - **Every decision is one atomic step of the store**, by the store's clock. Nothing is decided between two calls.
//! - **Every call may be repeated** with the same arguments and never happens twice; so a lost answer costs only the
//!   repetition.
//! - **A future may be dropped.** The call may then have happened or not; asking again finds out, and a lock that was
//!   taken for nobody ends with its lease. *Cancel safety* says what it means for each call.
//!
//! # Features
//!
//! - `macros` (default): the attribute `#[locked]`.
//! - `redis` (default): the store for more than one process.
//! - `blocking`: the locks for programs that are not asynchronous.
//! - `durable`: the embedded store with its journal on disk.
//! - `pass`: signing, publishing and verifying the passes of a line.
//! - `postgres`, `mysql` (also for MariaDB), `sqlite`: fencing and the ledger in that database, with sqlx 0.9.
//! - `testing`: conformance suite, fake clock, breakable store, history checker, real services, fault proxy.

#[cfg(feature = "blocking")]
pub mod blocking;
pub mod clock;
mod coalesce;
pub mod config;
pub mod error;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub mod fencing;
mod gate;
mod jitter;
pub mod key;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub mod ledger;
pub mod line;
pub mod lock;
pub mod locked;
pub mod stock;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::gate::Gate;

/// The attribute that puts an async function under a lock.
///
/// ```
/// use lockgate::lock::LockError;
/// use lockgate::{Gate, locked};
///
/// struct Shop {
///     name: String,
///     gate: Gate,
/// }
///
/// impl Shop {
///     /// Never two orders of one user at a time.
///     #[locked(key = "shop:{self.name}:{user}", gate = self.gate, wait = "3s", lease = "5s")]
///     async fn order(&self, user: &str) -> Result<u64, LockError> {
///         Ok(1)
///     }
/// }
/// ```
#[cfg(feature = "macros")]
pub use lockgate_macros::locked;

/// The Rust in the README and in the docs is tested with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeIsTested;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/choosing.md")]
struct ChoosingIsTested;
