//! Taking a mutex that nobody else wants, and giving it back: what a lock costs when there is no crowd.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::store::{Acquire, Attempt, Lease, Release, Store, Token};
use redis::aio::MultiplexedConnection;

use super::frame::{Case, Contender, Role, Turn, Worker};
use super::{Failure, NAMESPACE, raw_client};

const LEASE: Duration = Duration::from_secs(10);

/// The least that a lock must do: see whose it is, then delete it.
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

pub(super) async fn cases(url: &str, tasks: Option<usize>) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for tasks in tasks.map_or(vec![1, 16], |tasks| vec![tasks]) {
        cases.push(Case {
            name: "lock, uncontended: acquire and release, a key per task".into(),
            tasks,
            contenders: vec![
                Box::new(RawLimit::connect(url).await?),
                Box::new(Rslock::connect(url)?),
                Box::new(Ours::connect(url).await?),
            ],
        });
    }
    Ok(cases)
}

/// `SET NX PX` and compare-and-delete over one multiplexed connection: no fence, no queue, nothing to spare.
struct RawLimit {
    connection: MultiplexedConnection,
}

impl RawLimit {
    async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { connection: raw_client(url)?.get_multiplexed_async_connection().await? })
    }
}

impl Contender for RawLimit {
    fn name(&self) -> &'static str {
        "raw SET NX PX + compare-and-delete"
    }

    fn role(&self) -> Role {
        Role::Limit
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["set", "eval", "evalsha"]
    }

    fn worker(&self, number: usize) -> Box<dyn Worker> {
        Box::new(RawWorker {
            connection: self.connection.clone(),
            key: format!("{NAMESPACE}:raw:{number}"),
            release: redis::Script::new(COMPARE_AND_DELETE),
        })
    }
}

struct RawWorker {
    connection: MultiplexedConnection,
    key: String,
    release: redis::Script,
}

impl Worker for RawWorker {
    fn work(&mut self) -> Turn<'_> {
        Box::pin(async {
            let token = Token::random().to_string();
            let mut set = redis::cmd("SET");
            set.arg(&self.key).arg(&token).arg("NX").arg("PX").arg(LEASE.as_millis().to_string());
            let taken: bool = set.query_async(&mut self.connection).await?;
            let released: bool =
                self.release.key(&self.key).arg(&token).invoke_async(&mut self.connection).await?;
            if taken && released { Ok(1) } else { Err("the raw lock was not ours".into()) }
        })
    }
}

/// The crate `rslock`, with one server.
struct Rslock {
    manager: rslock::LockManager,
}

impl Rslock {
    fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { manager: rslock::LockManager::from_clients(vec![raw_client(url)?]) })
    }
}

impl Contender for Rslock {
    fn name(&self) -> &'static str {
        "rslock 0.10"
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["set", "eval", "evalsha", "script|load"]
    }

    fn worker(&self, number: usize) -> Box<dyn Worker> {
        Box::new(RslockWorker { manager: self.manager.clone(), key: format!("{NAMESPACE}:rslock:{number}") })
    }
}

struct RslockWorker {
    manager: rslock::LockManager,
    key: String,
}

impl Worker for RslockWorker {
    fn work(&mut self) -> Turn<'_> {
        Box::pin(async {
            let lock = self.manager.lock(self.key.as_bytes(), LEASE).await.map_err(|why| why.to_string())?;
            self.manager.unlock(&lock).await;
            Ok(1)
        })
    }
}

/// The store's own acquire and release.
struct Ours {
    store: Arc<dyn Store>,
}

impl Ours {
    async fn connect(url: &str) -> Result<Self, Failure> {
        let mut config = Config::default();
        config.namespace = NAMESPACE.into();
        Ok(Self { store: Arc::clone(Gate::open_with(url, &config).await?.store()) })
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        "lockgate"
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["eval", "evalsha"]
    }

    fn worker(&self, number: usize) -> Box<dyn Worker> {
        Box::new(OurWorker { store: Arc::clone(&self.store), mutex: format!("bench:{number}") })
    }
}

struct OurWorker {
    store: Arc<dyn Store>,
    mutex: String,
}

impl Worker for OurWorker {
    fn work(&mut self) -> Turn<'_> {
        Box::pin(async {
            let (mutex, token) = (Name::new("mutex", &self.mutex)?, Token::random());
            let acquired = self.store.mutex_acquire(&mutex, &Attempt::new(token, Lease::new(LEASE)?)).await?;
            let released = self.store.mutex_release(&mutex, &token).await?;
            match (acquired, released) {
                (Acquire::Granted { .. }, Release::Released) => Ok(1),
                other => Err(format!("the lock was not ours: {other:?}").into()),
            }
        })
    }
}
