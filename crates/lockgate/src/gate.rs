//! The front door: opens a store and hands out the gates.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::error::{InvalidInput, OpenError, StoreError};
use crate::key::Name;
use crate::line::{Line, Lines};
use crate::lock::{CountDownLatch, Desk, MultiGuard, MultiLock, Mutex, MutexGuard, Once, RwLock, Semaphore};
use crate::stock::{Counter, Coupon, Deal, Order, Sku};
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// A store, opened. Cheap to clone; all clones share its connections.
///
/// A gate belongs to the runtime in which its first lock is asked for, and a line to the one in which it is first used: what goes
/// on in the background (renewals, releases, letting lines go on) runs there, and ends with it.
///
/// ```
/// use lockgate::{Gate, stock::{Issue, Terms}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let coupon = gate.coupon("welcome")?;
/// coupon.open(&Terms::new(100)?).await?;
/// assert_eq!(coupon.issue("alice").await?, Issue::Issued { seq: 1, remaining: 99 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    store: Arc<dyn Store>,
    desk: Arc<Desk>,
    counter: Arc<Counter>,
    lines: Arc<Lines>,
}

impl Gate {
    /// Opens the store at `url` with the default configuration.
    ///
    /// `memory` is the embedded store, `sqlite:<file>` the same with its journal on disk (feature `durable`); `redis://`, `rediss://`, `redis+sentinel://` and `redis+cluster://` need the
    /// feature `redis`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Config::default()).await
    }

    /// Opens the store at `url`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub async fn open_with(url: &str, config: &Config) -> Result<Self, OpenError> {
        if url == "memory" {
            return Ok(Self::on_with(Arc::new(MemoryStore::with(config)), config));
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            return Self::open_journal(path.strip_prefix("//").unwrap_or(path), config);
        }
        #[cfg(feature = "redis")]
        {
            Ok(Self::on_with(Arc::new(crate::store::redis::RedisStore::connect(url, config).await?), config))
        }
        #[cfg(not(feature = "redis"))]
        {
            Err(OpenError::Config(format!(
                "the store URL {:?} needs the feature `redis`, which this program was built without; use `memory`",
                crate::error::without_secrets(url)
            )))
        }
    }

    #[cfg(feature = "durable")]
    fn open_journal(path: &str, config: &Config) -> Result<Self, OpenError> {
        if path.is_empty() {
            return Err(OpenError::Config(
                "a journal needs a file, as in sqlite:/var/lib/lockgate/journal.db".into(),
            ));
        }
        Ok(Self::on_with(Arc::new(MemoryStore::open(path, config)?), config))
    }

    #[cfg(not(feature = "durable"))]
    fn open_journal(_: &str, _: &Config) -> Result<Self, OpenError> {
        Err(OpenError::Config(
            "a journal on disk needs the feature `durable`, which this program was built without; use `memory`".into(),
        ))
    }

    /// A gate on a store that is open already, with the default configuration.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self::on_with(store, &Config::default())
    }

    /// A gate on a store that is open already. The configuration's claim lease and clock must be those of the store.
    #[must_use]
    pub fn on_with(store: Arc<dyn Store>, config: &Config) -> Self {
        let desk = Desk::new(Arc::clone(&store), config.clock.clone(), config.claim);
        let counter = Counter::new(Arc::clone(&store), config);
        let lines = Lines::new(Arc::clone(&store), config);
        Self { store, desk, counter, lines }
    }

    /// The store behind the gates.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The mutex called `name`: see [`Mutex`].
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn mutex(&self, name: impl AsRef<str>) -> Result<Mutex, InvalidInput> {
        Ok(Mutex::new(Arc::clone(&self.desk), Name::new("mutex", name)?))
    }

    /// The read-write lock called `name`: see [`RwLock`]. Its names are not those of mutexes.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> Result<RwLock, InvalidInput> {
        Ok(RwLock::new(Arc::clone(&self.desk), Name::new("rw_lock", name)?))
    }

    /// The semaphore called `name`, with so many permits unless [another number](Semaphore::set_permits) was set: see
    /// [`Semaphore`].
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB, or the number is not between 1 and a million.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Result<Semaphore, InvalidInput> {
        Semaphore::new(Arc::clone(&self.desk), Name::new("semaphore", name)?, permits)
    }

    /// Several mutexes, to be taken together: see [`MultiLock`].
    ///
    /// # Errors
    ///
    /// When there are none or more than a hundred, or a name is empty or longer than 16 KiB.
    pub fn multi_lock<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<MultiLock, InvalidInput> {
        let names = names.into_iter().map(|name| Name::new("mutex", name)).collect::<Result<_, _>>()?;
        MultiLock::new(Arc::clone(&self.desk), names)
    }

    /// All of these, held together.
    pub(crate) fn multi_guard(&self, guards: Vec<MutexGuard>) -> MultiGuard {
        MultiGuard::of(Arc::clone(&self.desk), guards)
    }

    /// What is called `name` is done at most once in every such period: see [`Once`].
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB, or the period is not between 1 ms and 24 h.
    pub fn once(&self, name: impl AsRef<str>, every: Duration) -> Result<Once, InvalidInput> {
        Once::new(Arc::clone(&self.desk), &Name::new("once", name)?, every)
    }

    /// The latch called `name`: see [`CountDownLatch`].
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn count_down_latch(&self, name: impl AsRef<str>) -> Result<CountDownLatch, InvalidInput> {
        Ok(CountDownLatch::new(Arc::clone(&self.desk), Name::new("latch", name)?))
    }

    /// The line called `name`: see [`Line`].
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn line(&self, name: impl AsRef<str>) -> Result<Line, InvalidInput> {
        Ok(Line::new(&self.lines, Name::new("line", name)?))
    }

    /// Lets nobody wait for a lock any more, and returns when every lock that was dropped has been given back. Guards that
    /// are still held stay valid, and are given back when they are dropped. Lines are left to whoever else serves them. Call it
    /// before the runtime ends.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, the gate stays closed, and the releases go on.
    pub async fn shutdown(&self) {
        self.lines.shut_down().await;
        self.desk.shut_down().await;
    }

    /// Makes this the gate of every [`#[locked]`](mod@crate::locked) function that names none. The last call counts.
    pub fn make_default(&self) {
        crate::locked::make_default(self.clone());
    }

    /// What this gate's locks have in memory.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn lock_traces(&self) -> crate::lock::Traces {
        self.desk.traces()
    }

    /// The coupon called `name`: one per user. It need not exist yet.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn coupon(&self, name: impl AsRef<str>) -> Result<Coupon, InvalidInput> {
        Ok(Coupon::new(Arc::clone(&self.counter), Name::new("coupon", name)?))
    }

    /// The deal called `name`: some per user. It need not exist yet.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn deal(&self, name: impl AsRef<str>) -> Result<Deal, InvalidInput> {
        Ok(Deal::new(Arc::clone(&self.counter), Name::new("deal", name)?))
    }

    /// The article called `name`, to be taken in orders. It need not exist yet.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn sku(&self, name: impl AsRef<str>) -> Result<Sku, InvalidInput> {
        Ok(Sku::new(Arc::clone(&self.counter), Name::new("sku", name)?, None))
    }

    /// The article called `name` of a group. On a cluster, only articles of one group are sure to live in one partition, so
    /// that one order takes from all of them in one step. The group is a part of the article's name.
    ///
    /// # Errors
    ///
    /// When a name is empty or longer than 16 KiB.
    pub fn sku_of(&self, group: impl AsRef<str>, name: impl AsRef<str>) -> Result<Sku, InvalidInput> {
        let group = Name::new("group", group)?;
        Ok(Sku::new(Arc::clone(&self.counter), Name::new("sku", name)?, Some(group)))
    }

    /// An order of `user`, empty so far.
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB.
    pub fn order(&self, user: impl AsRef<str>) -> Result<Order, InvalidInput> {
        Ok(Order::new(Arc::clone(&self.counter), Name::new("user", user)?))
    }

    /// Resolves what orders over several partitions of a cluster have left behind whose process died on the way, and answers
    /// in how many places: an order that was placed is made whole, any other is given back. An order is left alone for its
    /// [deadline](crate::config::Config::order_deadline).
    ///
    /// For a background task, about once a second: it asks every partition once. Any number of processes may do so at the
    /// same time. An order that comes out short also does so by itself, for what it is short of.
    ///
    /// # Errors
    ///
    /// When the store did not answer: the first error that was met. What could be resolved, was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the rest for the next time.
    pub async fn resolve_orders(&self) -> Result<u64, StoreError> {
        crate::stock::resolve_all(self.store.as_ref()).await
    }
}
