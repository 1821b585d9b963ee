//! The locks for programs that are not asynchronous.
//!
//! **Promise:** the same locks, by the same code: whoever waits here and whoever awaits elsewhere stand in one line. What
//! goes on in the background (renewals, news) runs in a thread of its own. A guard that is dropped has given the lock back
//! when the drop returns, unless the store does not answer: then its lease ends it.
//!
//! ```
//! use std::time::Duration;
//! use lockgate::blocking::Gate;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::open("memory")?; // or redis://…
//! {
//!     let guard = gate.mutex("order:42")?.wait(Duration::from_secs(3)).lock()?;
//!     println!("mine, with fence {}", guard.fence());
//! } // given back
//!
//! // Everything else of Lockgate, in the same way:
//! use lockgate::stock::{Issue, Terms};
//! let coupon = gate.asynchronous().coupon("welcome")?;
//! gate.block_on(coupon.open(&Terms::new(100)?))?;
//! assert_eq!(gate.block_on(coupon.issue("alice"))?, Issue::Issued { seq: 1, remaining: 99 });
//! # Ok(())
//! # }
//! ```
//!
//! # Panics
//!
//! Everything here that waits panics when it is called from asynchronous code, where waiting would stop all other tasks:
//! use [`lockgate::Gate`](crate::Gate) there. A guard may be dropped anywhere; in asynchronous code, and in a thread that a
//! runtime keeps for blocking work, it is given back in the background.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::config::Config;
use crate::error::{InvalidInput, OpenError, StoreError};
use crate::lock::{
    self, Cohort, LockError, LockLost, MultiGuard, MutexGuard, Owner, PermitGuard, QuorumGuard, Ran,
    ReadGuard, Released, Waiting, WriteGuard,
};
use crate::store::{LatchSet, LatchStatus};

/// The thread in which everything asynchronous runs. Whoever drops the last handle to it ends it.
struct Engine(Option<Runtime>);

impl Engine {
    fn start() -> Result<Arc<Self>, OpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("lockgate")
            .enable_all()
            .build()
            .map_err(|why| {
                OpenError::Config(format!("no thread could be started ({why}); raise the limits"))
            })?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    #[expect(clippy::expect_used, reason = "it is taken when it is dropped, and not before")]
    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("the runtime is there")
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime().block_on(future)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // It may be dropped in asynchronous code, where nobody may wait.
            runtime.shutdown_background();
        }
    }
}

/// A store, opened: see [`lockgate::Gate`](crate::Gate).
#[derive(Clone)]
pub struct Gate {
    gate: crate::Gate,
    engine: Arc<Engine>,
}

impl Gate {
    /// Opens the store at `url` with the default configuration.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Config::default())
    }

    /// Opens the store at `url`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open_with(url: &str, config: &Config) -> Result<Self, OpenError> {
        let engine = Engine::start()?;
        let gate = engine.block_on(crate::Gate::open_with(url, config))?;
        Ok(Self { gate, engine })
    }

    /// The same gate for asynchronous code. What it returns is waited for with [`block_on`](Self::block_on).
    #[must_use]
    pub fn asynchronous(&self) -> &crate::Gate {
        &self.gate
    }

    /// Waits for something asynchronous.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.engine.block_on(future)
    }

    fn with<T>(&self, recipe: T) -> Blocking<T> {
        Blocking { recipe, engine: Arc::clone(&self.engine) }
    }

    /// See [`lockgate::Gate::mutex`](crate::Gate::mutex).
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn mutex(&self, name: impl AsRef<str>) -> Result<Blocking<lock::Mutex>, InvalidInput> {
        Ok(self.with(self.gate.mutex(name)?))
    }

    /// See [`lockgate::Gate::rw_lock`](crate::Gate::rw_lock).
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> Result<Blocking<lock::RwLock>, InvalidInput> {
        Ok(self.with(self.gate.rw_lock(name)?))
    }

    /// See [`lockgate::Gate::semaphore`](crate::Gate::semaphore).
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB, or the number is not between 1 and a million.
    pub fn semaphore(
        &self,
        name: impl AsRef<str>,
        permits: u32,
    ) -> Result<Blocking<lock::Semaphore>, InvalidInput> {
        Ok(self.with(self.gate.semaphore(name, permits)?))
    }

    /// See [`lockgate::Gate::multi_lock`](crate::Gate::multi_lock).
    ///
    /// # Errors
    ///
    /// When there are none or more than a hundred, or a name is empty or longer than 16 KiB.
    pub fn multi_lock<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Blocking<lock::MultiLock>, InvalidInput> {
        Ok(self.with(self.gate.multi_lock(names)?))
    }

    /// See [`lockgate::Gate::count_down_latch`](crate::Gate::count_down_latch).
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn count_down_latch(
        &self,
        name: impl AsRef<str>,
    ) -> Result<Blocking<lock::CountDownLatch>, InvalidInput> {
        Ok(self.with(self.gate.count_down_latch(name)?))
    }

    /// See [`lockgate::Gate::once`](crate::Gate::once).
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB, or the period is not between 1 ms and 24 h.
    pub fn once(&self, name: impl AsRef<str>, every: Duration) -> Result<Blocking<lock::Once>, InvalidInput> {
        Ok(self.with(self.gate.once(name, every)?))
    }

    /// Lets nobody wait for a lock any more, and returns when every lock that was dropped has been given back.
    pub fn shutdown(&self) {
        self.block_on(self.gate.shutdown());
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("blocking::Gate").field(&self.gate).finish()
    }
}

/// Several independent servers: see [`lockgate::lock::Quorum`](lock::Quorum).
#[derive(Clone)]
pub struct Quorum {
    quorum: lock::Quorum,
    engine: Arc<Engine>,
}

impl Quorum {
    /// Opens the servers at these URLs, with the default configuration.
    ///
    /// # Errors
    ///
    /// See [`lock::Quorum::open_with`].
    pub fn open<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self, OpenError> {
        Self::open_with(urls, &Config::default())
    }

    /// Opens the servers at these URLs.
    ///
    /// # Errors
    ///
    /// See [`lock::Quorum::open_with`].
    pub fn open_with<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        config: &Config,
    ) -> Result<Self, OpenError> {
        let engine = Engine::start()?;
        let quorum = engine.block_on(lock::Quorum::open_with(urls, config))?;
        Ok(Self { quorum, engine })
    }

    /// The mutex called `name`.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn mutex(&self, name: impl AsRef<str>) -> Result<Blocking<lock::QuorumMutex>, InvalidInput> {
        let engine = Arc::clone(&self.engine);
        Ok(Blocking { recipe: self.quorum.mutex(name)?, engine })
    }
}

impl fmt::Debug for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("blocking::Quorum").field(&self.quorum).finish()
    }
}

/// A recipe for a lock whose methods wait. What can be asked without waiting is that of the recipe itself.
#[derive(Clone)]
pub struct Blocking<T> {
    recipe: T,
    engine: Arc<Engine>,
}

impl<T> Deref for Blocking<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.recipe
    }
}

impl<T: fmt::Debug> fmt::Debug for Blocking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blocking").field(&self.recipe).finish()
    }
}

impl<T> Blocking<T> {
    fn held<G: GivesBack>(&self, guard: G) -> Held<G> {
        Held { guard: Some(guard), engine: Arc::clone(&self.engine) }
    }

    fn map(self, change: impl FnOnce(T) -> T) -> Self {
        Self { recipe: change(self.recipe), engine: self.engine }
    }

    fn try_map<E>(self, change: impl FnOnce(T) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { recipe: change(self.recipe)?, engine: self.engine })
    }
}

/// How the recipe of a lock is varied: as the recipe itself says.
macro_rules! varied {
    ($recipe:ident: $($method:ident($($value:ident: $kind:ty)?) $(-> $fallible:ident)?),+) => {
        impl Blocking<lock::$recipe> { $(varied!(@ $recipe $method ($($value: $kind)?) $($fallible)?);)+ }
    };
    (@ $recipe:ident $method:ident ($value:ident: $kind:ty)) => {
        #[doc = concat!("See [`", stringify!($recipe), "::", stringify!($method), "`](lock::", stringify!($recipe), "::", stringify!($method), ").")]
        #[must_use]
        pub fn $method(self, $value: $kind) -> Self {
            self.map(|recipe| recipe.$method($value))
        }
    };
    (@ $recipe:ident $method:ident ($value:ident: $kind:ty) fallible) => {
        #[doc = concat!("See [`", stringify!($recipe), "::", stringify!($method), "`](lock::", stringify!($recipe), "::", stringify!($method), ").")]
        ///
        /// # Errors
        ///
        /// When the value is out of its bounds.
        pub fn $method(self, $value: $kind) -> Result<Self, InvalidInput> {
            self.try_map(|recipe| recipe.$method($value))
        }
    };
}

varied!(Mutex: wait(at_most: Duration), lease(length: Duration) -> fallible, watchdog(length: Duration) -> fallible,
    cohort(cohort: Option<Cohort>), waiting(waiting: Waiting), owned_by(owner: &Owner));
varied!(RwLock: wait(at_most: Duration), lease(length: Duration) -> fallible, watchdog(length: Duration) -> fallible,
    cohort(cohort: Option<Cohort>), owned_by(owner: &Owner));
varied!(Semaphore: wait(at_most: Duration), lease(length: Duration) -> fallible, watchdog(length: Duration) -> fallible,
    cohort(cohort: Option<Cohort>));
varied!(MultiLock: wait(at_most: Duration), lease(length: Duration) -> fallible, watchdog(length: Duration) -> fallible,
    owned_by(owner: &Owner));
varied!(QuorumMutex: wait(at_most: Duration), lease(length: Duration) -> fallible, watchdog(length: Duration) -> fallible);
varied!(CountDownLatch: wait_at_most(time: Duration));
varied!(Once: again_after_a_crash(after: Duration) -> fallible);

/// What waits for a guard: as the method of the same name of the recipe itself.
macro_rules! takes {
    ($recipe:ident: $($method:ident($($value:ident: $kind:ty)?) -> $guard:ident),+; $($try_method:ident($($try_value:ident: $try_kind:ty)?) -> $try_guard:ident),+) => {
        impl Blocking<lock::$recipe> {
            $(
                #[doc = concat!("Waits: see [`", stringify!($recipe), "::", stringify!($method), "`](lock::", stringify!($recipe), "::", stringify!($method), ").")]
                ///
                /// # Errors
                ///
                /// As there.
                pub fn $method(&self $(, $value: $kind)?) -> Result<Held<$guard>, LockError> {
                    Ok(self.held(self.engine.block_on(self.recipe.$method($($value)?))?))
                }
            )+
            $(
                #[doc = concat!("See [`", stringify!($recipe), "::", stringify!($try_method), "`](lock::", stringify!($recipe), "::", stringify!($try_method), ").")]
                ///
                /// # Errors
                ///
                /// As there.
                pub fn $try_method(&self $(, $try_value: $try_kind)?) -> Result<Option<Held<$try_guard>>, LockError> {
                    Ok(self.engine.block_on(self.recipe.$try_method($($try_value)?))?.map(|guard| self.held(guard)))
                }
            )+
        }
    };
}

takes!(Mutex: lock() -> MutexGuard; try_lock() -> MutexGuard);
takes!(RwLock: read() -> ReadGuard, write() -> WriteGuard; try_read() -> ReadGuard, try_write() -> WriteGuard);
takes!(Semaphore: acquire() -> PermitGuard, acquire_many(permits: u32) -> PermitGuard;
    try_acquire() -> PermitGuard, try_acquire_many(permits: u32) -> PermitGuard);
takes!(MultiLock: lock() -> MultiGuard; try_lock() -> MultiGuard);
takes!(QuorumMutex: lock() -> QuorumGuard; try_lock() -> QuorumGuard);

impl Blocking<lock::Semaphore> {
    /// See [`Semaphore::set_permits`](lock::Semaphore::set_permits).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_permits(&self, permits: u32) -> Result<(), StoreError> {
        self.engine.block_on(self.recipe.set_permits(permits))
    }
}

impl Blocking<lock::CountDownLatch> {
    /// See [`CountDownLatch::set`](lock::CountDownLatch::set).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set(&self, count: u32) -> Result<LatchSet, StoreError> {
        self.engine.block_on(self.recipe.set(count))
    }

    /// See [`CountDownLatch::count_down`](lock::CountDownLatch::count_down).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn count_down(&self) -> Result<LatchStatus, LockError> {
        self.engine.block_on(self.recipe.count_down())
    }

    /// Waits: see [`CountDownLatch::wait`](lock::CountDownLatch::wait).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait(&self) -> Result<(), LockError> {
        self.engine.block_on(self.recipe.wait())
    }
}

impl Blocking<lock::Once> {
    /// Does `work`, if nobody's turn was in this period: see [`Once::run`](lock::Once::run). Work that is not asynchronous
    /// cannot be stopped in the middle: look at [`Turn::check`](lock::Turn::check) before what must not be done twice.
    ///
    /// # Errors
    ///
    /// As there; the work has not begun.
    pub fn run<T>(&self, work: impl FnOnce(&lock::Turn) -> T) -> Result<Ran<T>, LockError> {
        match self.engine.block_on(self.recipe.turn())? {
            Ran::Done(turn) => {
                let done = work(&turn);
                self.engine.block_on(turn.finish());
                Ok(Ran::Done(done))
            }
            Ran::NotDue { next_in } => Ok(Ran::NotDue { next_in }),
        }
    }
}

/// A lock that is held. What it can be asked is what its guard can be asked: [`MutexGuard`], [`ReadGuard`], [`WriteGuard`],
/// [`PermitGuard`], [`MultiGuard`], [`QuorumGuard`].
#[must_use = "a guard that is dropped at once gives the lock back at once"]
pub struct Held<G: GivesBack> {
    /// Nothing when it is given back.
    guard: Option<G>,
    engine: Arc<Engine>,
}

impl<G: GivesBack> Held<G> {
    /// Gives the lock back and says what happened. Call it **after** what was done under the lock is committed.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The release goes on in the background then; the lease ends it at the latest.
    pub fn release(mut self) -> Result<Released, LockError> {
        match self.guard.take() {
            Some(guard) => self.engine.block_on(guard.give_back()),
            None => Ok(Released::WasLost),
        }
    }
}

impl Held<WriteGuard> {
    /// Goes on as a reader: see [`WriteGuard::downgrade`].
    ///
    /// # Errors
    ///
    /// [`LockLost`], when the lock was lost before.
    #[expect(clippy::expect_used, reason = "it is taken by what consumes it")]
    pub fn downgrade(mut self) -> Result<Held<ReadGuard>, LockLost> {
        let guard = self.guard.take().expect("the guard is there");
        let guard = self.engine.block_on(guard.downgrade())?;
        Ok(Held { guard: Some(guard), engine: Arc::clone(&self.engine) })
    }
}

impl<G: GivesBack> Deref for Held<G> {
    type Target = G;

    #[expect(clippy::expect_used, reason = "it is taken by what consumes it")]
    fn deref(&self) -> &G {
        self.guard.as_ref().expect("the guard is there")
    }
}

impl<G: GivesBack> Drop for Held<G> {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        if Handle::try_current().is_ok() {
            // Nobody may wait here; dropping it gives it back in the background.
            let _inside = self.engine.runtime().enter();
            return drop(guard);
        }
        if let Err(why) = self.engine.block_on(guard.give_back()) {
            tracing::warn!(%why, "the release got no answer; the lease ends the lock at the latest");
        }
    }
}

impl<G: GivesBack + fmt::Debug> fmt::Debug for Held<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.guard).finish()
    }
}

/// A guard of any kind.
pub trait GivesBack: sealed::Sealed {
    /// Gives the lock back.
    fn give_back(self) -> impl Future<Output = Result<Released, LockError>>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! gives_back {
    ($($guard:ident),+) => { $(
        impl sealed::Sealed for $guard {}

        impl GivesBack for $guard {
            fn give_back(self) -> impl Future<Output = Result<Released, LockError>> {
                self.release()
            }
        }
    )+ };
}

gives_back!(MutexGuard, ReadGuard, WriteGuard, PermitGuard, MultiGuard, QuorumGuard);
