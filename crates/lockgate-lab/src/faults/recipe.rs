//! What a worker may want of a lock of any kind, and what it has in its hand then.

use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{
    Guard, LockError, MultiGuard, MutexGuard, PermitGuard, ReadGuard, Released, WriteGuard,
};
use serde::{Deserialize, Serialize};

use super::Failure;
use super::orders::{Orders, Policy};

/// What may be wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Want {
    /// All of it, as a mutex.
    Mutex,
    /// To read, as a read-write lock.
    Read,
    /// To write, as a read-write lock.
    Write,
    /// So many permits, as a semaphore that has so many.
    Permits { count: u32, of: u32 },
    /// Mutexes with these names: one alone, or several at once, in the order in which they are given.
    Names(Vec<String>),
}

/// What of a lock is taken and who waits, as the store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) taken: u64,
    pub(super) waiting: u64,
}

impl Standing {
    pub(super) const FREE: Standing = Standing { taken: 0, waiting: 0 };
}

impl Want {
    pub(super) fn names<const N: usize>(names: [&str; N]) -> Self {
        Want::Names(names.map(str::to_owned).to_vec())
    }

    /// The names of what nobody else may have at the same time; none, if it is shared with others.
    pub(super) fn exclusive<'a>(&'a self, lock: &'a str) -> Vec<&'a str> {
        match self {
            Want::Mutex | Want::Write => vec![lock],
            Want::Read | Want::Permits { .. } => Vec::new(),
            Want::Names(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// How the lock stands that it is about.
    pub(super) async fn standing(&self, gate: &Gate, lock: &str) -> Result<Standing, Failure> {
        let pool = match self {
            Want::Read | Want::Write => gate.rw_lock(lock)?.status().await?,
            Want::Permits { of, .. } => gate.semaphore(lock, *of)?.status().await?,
            Want::Mutex => return of_mutexes(gate, &[lock.to_owned()]).await,
            Want::Names(names) => return of_mutexes(gate, names).await,
        };
        Ok(Standing { taken: pool.taken, waiting: pool.waiting })
    }
}

async fn of_mutexes(gate: &Gate, names: &[String]) -> Result<Standing, Failure> {
    let mut all = Standing::FREE;
    for (_, status) in gate.multi_lock(names)?.status().await? {
        all.taken += u64::from(status.holder.is_some());
        all.waiting += status.waiting;
    }
    Ok(all)
}

/// How a worker takes what it wants.
#[derive(Clone)]
pub(super) struct Recipe {
    gate: Gate,
    lock: String,
    policy: Policy,
    lease: Duration,
    is_kept: bool,
}

/// On the terms of a recipe: how long it is held, and whether waiters of one process stand in line together.
macro_rules! on_terms {
    ($recipe:expr, $lock:expr) => {{
        let lock =
            if $recipe.is_kept { $lock.watchdog($recipe.lease)? } else { $lock.lease($recipe.lease)? };
        if $recipe.policy == Policy::Cohort { lock } else { lock.cohort(None) }
    }};
}

impl Recipe {
    pub(super) fn new(gate: Gate, orders: &Orders) -> Self {
        let Orders { lock, policy, lease, is_kept, .. } = orders.clone();
        Self { gate, lock, policy, lease, is_kept }
    }

    /// The same for another lock.
    pub(super) fn for_lock(&self, lock: String) -> Self {
        Self { lock, ..self.clone() }
    }

    pub(super) fn lock(&self) -> &str {
        &self.lock
    }

    /// Waits for it. Dropping it drops the wait.
    pub(super) async fn take(&self, want: &Want) -> Result<Held, LockError> {
        Ok(match want {
            Want::Mutex => Held::Mutex(self.mutex(&self.lock).await?),
            Want::Read => Held::Read(on_terms!(self, self.gate.rw_lock(&self.lock)?).read().await?),
            Want::Write => Held::Write(on_terms!(self, self.gate.rw_lock(&self.lock)?).write().await?),
            Want::Permits { count, of } => {
                let semaphore = on_terms!(self, self.gate.semaphore(&self.lock, *of)?);
                Held::Permits(semaphore.acquire_many(*count).await?)
            }
            Want::Names(names) => match names.as_slice() {
                [name] => Held::Mutex(self.mutex(name).await?),
                names => Held::Names(on_terms!(self, self.gate.multi_lock(names)?).lock().await?),
            },
        })
    }

    async fn mutex(&self, name: &str) -> Result<MutexGuard, LockError> {
        let mutex = self.policy.apply(self.gate.mutex(name)?);
        let mutex = if self.is_kept { mutex.watchdog(self.lease)? } else { mutex.lease(self.lease)? };
        mutex.lock().await
    }
}

/// A lock of any kind that is held.
pub(super) enum Held {
    Mutex(MutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(PermitGuard),
    Names(MultiGuard),
}

enum Guards<'a> {
    One(&'a Guard),
    Many(&'a MultiGuard),
}

impl Held {
    fn guards(&self) -> Guards<'_> {
        match self {
            Held::Mutex(guard) => Guards::One(guard),
            Held::Read(guard) => Guards::One(guard),
            Held::Write(guard) => Guards::One(guard),
            Held::Permits(guard) => Guards::One(guard),
            Held::Names(guard) => Guards::Many(guard),
        }
    }

    /// What it holds alone, and with which fences.
    pub(super) fn fences(&self) -> Vec<(String, u64)> {
        match self {
            Held::Mutex(guard) => vec![(guard.name().as_str().to_owned(), guard.fence().get())],
            Held::Write(guard) => vec![(guard.name().as_str().to_owned(), guard.fence().get())],
            Held::Read(_) | Held::Permits(_) => Vec::new(),
            Held::Names(guard) => {
                guard.fences().map(|(name, fence)| (name.as_str().to_owned(), fence.get())).collect()
            }
        }
    }

    pub(super) fn lease_left(&self) -> Duration {
        match self.guards() {
            Guards::One(guard) => guard.lease_left(),
            Guards::Many(guard) => guard.lease_left(),
        }
    }

    /// Whether it can be trusted at this moment.
    pub(super) fn is_trusted(&self) -> bool {
        match self.guards() {
            Guards::One(guard) => guard.check().is_ok(),
            Guards::Many(guard) => guard.check().is_ok(),
        }
    }

    pub(super) async fn lost(&self) {
        match self.guards() {
            Guards::One(guard) => guard.lost().await,
            Guards::Many(guard) => guard.lost().await,
        }
    }

    pub(super) async fn release(self) -> Result<Released, LockError> {
        match self {
            Held::Mutex(guard) => guard.release().await,
            Held::Read(guard) => guard.release().await,
            Held::Write(guard) => guard.release().await,
            Held::Permits(guard) => guard.release().await,
            Held::Names(guard) => guard.release().await,
        }
    }
}
