//! A majority of five servers.

use std::sync::Arc;
use std::time::Duration;

use lockgate::config::Config;
use lockgate::lock::{Quorum, QuorumMutex};
use lockgate::testing::services::{Persistence, Redis};
use redis::Script;
use redis::aio::MultiplexedConnection;

use super::InOneProcess;
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::{Failure, NAMESPACE, patient_connection, raw_client};

const SERVERS: usize = 5;
const LEASE: Duration = Duration::from_secs(10);

pub(super) fn case(tasks: usize) -> Case<'static> {
    Case {
        name: format!("quorum of {SERVERS} servers: {tasks} tasks, a name for each"),
        tasks,
        contenders: vec![by_hand(), rslock(), ours()],
    }
}

/// Five servers of our own, started for a turn: what is measured elsewhere is one.
fn servers() -> Result<Arc<Vec<Redis>>, Failure> {
    let servers = (0..SERVERS).map(|_| Redis::start(Persistence::Off)).collect::<Result<_, _>>()?;
    Ok(Arc::new(servers))
}

fn ours() -> Box<dyn Contender> {
    InOneProcess::boxed("lockgate", Role::Ours, &[], |tasks, _| {
        Box::pin(async move {
            let servers = servers()?;
            let mut config = Config::default();
            config.namespace = NAMESPACE.into();
            let quorum = Quorum::open_with(servers.iter().map(Redis::url), &config).await?;
            let mut workers: Vec<Box<dyn Worker>> = Vec::with_capacity(tasks);
            for task in 0..tasks {
                let mutex = quorum.mutex(format!("quorum:{task}"))?.lease(LEASE)?;
                workers.push(Box::new(Ours { mutex, _servers: Arc::clone(&servers) }));
            }
            Ok(workers)
        })
    })
}

struct Ours {
    mutex: QuorumMutex,
    _servers: Arc<Vec<Redis>>,
}

impl Worker for Ours {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            self.mutex.lock().await?.release().await?;
            Ok(1)
        })
    }
}

fn rslock() -> Box<dyn Contender> {
    InOneProcess::boxed("rslock 0.10", Role::Peer, &[], |tasks, _| {
        Box::pin(async move {
            let servers = servers()?;
            let clients = servers.iter().map(|server| raw_client(&server.url())).collect::<Result<_, _>>()?;
            let manager = rslock::LockManager::from_clients(clients);
            let worker = |task: usize| Rslock {
                manager: manager.clone(),
                key: format!("{NAMESPACE}:rslock:{task}"),
                _servers: Arc::clone(&servers),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct Rslock {
    manager: rslock::LockManager,
    key: String,
    _servers: Arc<Vec<Redis>>,
}

impl Worker for Rslock {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let lock = loop {
                if let Ok(lock) = self.manager.lock(self.key.as_bytes(), LEASE).await {
                    break lock;
                }
            };
            self.manager.unlock(&lock).await;
            Ok(1)
        })
    }
}

const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// The limit: `SET NX PX` on all servers beside each other, and no fence.
fn by_hand() -> Box<dyn Contender> {
    let name = "raw SET NX PX + compare-and-delete on all servers, without a fence";
    InOneProcess::boxed(name, Role::Limit, &[], |tasks, _| {
        Box::pin(async move {
            let servers = servers()?;
            let mut connections = Vec::with_capacity(SERVERS);
            for server in servers.iter() {
                connections.push(patient_connection(&server.url()).await?);
            }
            let worker = |task: usize| ByHand {
                connections: connections.clone(),
                key: format!("{NAMESPACE}:raw:{task}"),
                _servers: Arc::clone(&servers),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct ByHand {
    connections: Vec<MultiplexedConnection>,
    key: String,
    _servers: Arc<Vec<Redis>>,
}

impl Worker for ByHand {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let mut asking = tokio::task::JoinSet::new();
            for connection in &self.connections {
                let (mut connection, key) = (connection.clone(), self.key.clone());
                asking.spawn(async move {
                    let mut set = redis::cmd("SET");
                    set.arg(key).arg("token").arg("NX").arg("PX").arg(10_000);
                    set.query_async::<bool>(&mut connection).await
                });
            }
            let granted =
                asking.join_all().await.into_iter().filter(|answer| matches!(answer, Ok(true))).count();
            if granted <= SERVERS / 2 {
                return Err("the raw lock was not ours".into());
            }
            let mut giving_back = tokio::task::JoinSet::new();
            for connection in &self.connections {
                let (mut connection, key) = (connection.clone(), self.key.clone());
                giving_back.spawn(async move {
                    Script::new(RELEASE).key(key).arg("token").invoke_async::<i64>(&mut connection).await
                });
            }
            for released in giving_back.join_all().await {
                released?;
            }
            Ok(1)
        })
    }
}
