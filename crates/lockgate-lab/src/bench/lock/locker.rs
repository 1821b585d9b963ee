//! How each contender locks: one [`Locker`] per task.

use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::lock::{Mutex, MutexGuard, Waiting};
use lockgate::store::Token;
use redis::aio::MultiplexedConnection;

use super::{Failure, Orders, Way};
use crate::bench::{NAMESPACE, raw_client};

const LEASE: Duration = Duration::from_secs(10);

/// The least that a lock must do: see whose it is, then delete it.
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// Somebody who locks and unlocks.
pub(super) enum Locker {
    Raw(Box<RawLocker>),
    Rslock { manager: rslock::LockManager, key: String, held: Option<rslock::Lock> },
    Ours { mutex: Mutex, held: Option<MutexGuard>, drops: bool },
}

pub(super) struct RawLocker {
    connection: MultiplexedConnection,
    key: String,
    token: String,
    release: redis::Script,
    retry_after: Option<Duration>,
}

/// One for each task of this process; they share one connection, as the tasks of a program do.
pub(super) async fn lockers(orders: &Orders) -> Result<Vec<Locker>, Failure> {
    let crowd = orders.crowd;
    let name = |task: usize| match crowd.is_contended && orders.way != Way::Raw {
        true => "one".to_owned(),
        false => format!("{}-{task}", orders.process),
    };
    let tasks = 0..crowd.tasks;
    match orders.way {
        Way::Raw | Way::Every50Ms => {
            let connection = raw_client(&orders.redis)?.get_multiplexed_async_connection().await?;
            let retry_after = (orders.way == Way::Every50Ms).then_some(Duration::from_millis(50));
            Ok(tasks.map(|task| raw(&connection, &name(task), retry_after)).collect())
        }
        Way::Rslock => {
            let manager = rslock::LockManager::from_clients(vec![raw_client(&orders.redis)?]);
            let locker = |task| {
                let (manager, key) = (manager.clone(), format!("{NAMESPACE}:rslock:{}", name(task)));
                Locker::Rslock { manager, key, held: None }
            };
            Ok(tasks.map(locker).collect())
        }
        way => ours(way, orders, tasks.map(name)).await,
    }
}

fn raw(connection: &MultiplexedConnection, name: &str, retry_after: Option<Duration>) -> Locker {
    Locker::Raw(Box::new(RawLocker {
        connection: connection.clone(),
        key: format!("{NAMESPACE}:raw:{name}"),
        token: String::new(),
        release: redis::Script::new(COMPARE_AND_DELETE),
        retry_after,
    }))
}

async fn ours(
    way: Way,
    orders: &Orders,
    names: impl Iterator<Item = String>,
) -> Result<Vec<Locker>, Failure> {
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    let gate = Gate::open_with(&orders.redis, &config).await?;
    let mut lockers = Vec::new();
    for name in names {
        let mutex = gate.mutex(name)?;
        let mutex = match way {
            Way::Spin => mutex.waiting(Waiting::spin()),
            Way::Notify => mutex.waiting(Waiting::Notify),
            Way::HandOff => mutex.cohort(None),
            _ => mutex,
        };
        // In a crowd guards are dropped, as most programs do it. Alone, the release is waited for, as the limit does; and
        // who tries again by itself would otherwise try before its own release.
        let drops = orders.crowd.is_contended && matches!(way, Way::HandOff | Way::HandOffWithCohort);
        lockers.push(Locker::Ours { mutex, held: None, drops });
    }
    Ok(lockers)
}

impl Locker {
    pub(super) async fn lock(&mut self) -> Result<(), Failure> {
        match self {
            Locker::Raw(raw) => raw.lock().await,
            Locker::Rslock { manager, key, held } => {
                // It gives up after a few attempts; a crowd does not.
                while held.is_none() {
                    *held = manager.lock(key.as_bytes(), LEASE).await.ok();
                }
                Ok(())
            }
            Locker::Ours { mutex, held, .. } => {
                *held = Some(mutex.lock().await?);
                Ok(())
            }
        }
    }

    pub(super) async fn unlock(&mut self) -> Result<(), Failure> {
        match self {
            Locker::Raw(raw) => raw.unlock().await,
            Locker::Rslock { manager, held, .. } => {
                if let Some(lock) = held.take() {
                    manager.unlock(&lock).await;
                }
                Ok(())
            }
            Locker::Ours { held, drops: true, .. } => {
                drop(held.take());
                Ok(())
            }
            Locker::Ours { held, drops: false, .. } => {
                if let Some(guard) = held.take() {
                    guard.release().await?;
                }
                Ok(())
            }
        }
    }
}

impl RawLocker {
    async fn lock(&mut self) -> Result<(), Failure> {
        self.token = Token::random().to_string();
        loop {
            let mut set = redis::cmd("SET");
            set.arg(&self.key).arg(&self.token).arg("NX").arg("PX").arg(LEASE.as_millis().to_string());
            if set.query_async(&mut self.connection).await? {
                return Ok(());
            }
            let Some(pause) = self.retry_after else { return Err("the raw lock was not ours".into()) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn unlock(&mut self) -> Result<(), Failure> {
        let released: bool =
            self.release.key(&self.key).arg(&self.token).invoke_async(&mut self.connection).await?;
        if released { Ok(()) } else { Err("the raw lock was not ours".into()) }
    }
}
