//! Three of twenty at once.

use std::sync::Arc;

use lockgate::Gate;
use redis::Script;
use redis::aio::MultiplexedConnection;
use tokio::sync::Mutex;

use super::{BY_HAND, Backoff, InOneProcess, OURS, Watch, gate};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::{Failure, NAMESPACE, patient_connection};

const NAMES: usize = 20;
const AT_ONCE: usize = 3;

pub(super) fn case(redis: &str, tasks: usize) -> Case<'static> {
    Case {
        name: format!("several locks at once: {tasks} tasks, {AT_ONCE} of {NAMES} names each time"),
        tasks,
        contenders: vec![in_process(), by_hand(redis), one_by_one(redis), together(redis)],
    }
}

/// Which names a task takes next: sorted, each once.
struct Choice(u64);

impl Choice {
    fn of(task: usize) -> Self {
        Self(u64::try_from(task).unwrap_or(0) * 2 + 1)
    }

    fn next(&mut self) -> Vec<usize> {
        let mut chosen = Vec::with_capacity(AT_ONCE);
        while chosen.len() < AT_ONCE {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let name = usize::try_from(self.0 >> 33).unwrap_or(0) % NAMES;
            if !chosen.contains(&name) {
                chosen.push(name);
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

/// One who watches each name.
fn watches(all: &Arc<Watch>) -> Arc<Vec<Arc<Watch>>> {
    // The first one is the one that is asked in the end.
    Arc::new(std::iter::once(Arc::clone(all)).chain((1..NAMES).map(|_| Arc::default())).collect())
}

/// Goes through all of them, where only one may be.
async fn pass(watches: &[Arc<Watch>], chosen: &[usize]) {
    for name in chosen {
        watches[*name].pass(1, 1).await;
    }
}

fn in_process() -> Box<dyn Contender> {
    InOneProcess::boxed("tokio's Mutexes, in the process alone", Role::Limit, &[], |tasks, watch| {
        Box::pin(async move {
            let (mutexes, watches) = (Arc::new([(); NAMES].map(|()| Mutex::new(()))), watches(&watch));
            let worker = |task| InProcess {
                mutexes: Arc::clone(&mutexes),
                choice: Choice::of(task),
                watches: Arc::clone(&watches),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct InProcess {
    mutexes: Arc<[Mutex<()>; NAMES]>,
    choice: Choice,
    watches: Arc<Vec<Arc<Watch>>>,
}

impl Worker for InProcess {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let (chosen, mut guards) = (self.choice.next(), Vec::with_capacity(AT_ONCE));
            for name in &chosen {
                guards.push(self.mutexes[*name].lock().await);
            }
            pass(&self.watches, &chosen).await;
            Ok(1)
        })
    }
}

fn one_by_one(redis: &str) -> Box<dyn Contender> {
    ours(redis, "lockgate, mutexes one by one, without cohort", false)
}

fn together(redis: &str) -> Box<dyn Contender> {
    ours(redis, "lockgate, together", true)
}

fn ours(redis: &str, name: &'static str, is_together: bool) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    InOneProcess::boxed(name, Role::Ours, OURS, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let (gate, watches) = (gate(&redis).await?, watches(&watch));
            let worker = |task| Ours {
                gate: gate.clone(),
                is_together,
                choice: Choice::of(task),
                watches: Arc::clone(&watches),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct Ours {
    gate: Gate,
    is_together: bool,
    choice: Choice,
    watches: Arc<Vec<Arc<Watch>>>,
}

impl Ours {
    async fn one_by_one(&self, chosen: &[usize]) -> Result<(), Failure> {
        let mut guards = Vec::with_capacity(AT_ONCE);
        for name in chosen {
            guards.push(self.gate.mutex(format!("several:{name:02}"))?.cohort(None).lock().await?);
        }
        pass(&self.watches, chosen).await;
        Ok(())
    }
}

impl Worker for Ours {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let chosen = self.choice.next();
            if !self.is_together {
                self.one_by_one(&chosen).await?;
                return Ok(1);
            }
            let _all =
                self.gate.multi_lock(chosen.iter().map(|name| format!("several:{name:02}")))?.lock().await?;
            pass(&self.watches, &chosen).await;
            Ok(1)
        })
    }
}

const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

fn by_hand(redis: &str) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    let name = "by hand: SET NX PX one by one, again after 1 to 50 ms";
    InOneProcess::boxed(name, Role::Peer, BY_HAND, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let (connection, watches) = (patient_connection(&redis).await?, watches(&watch));
            let worker = |task: usize| ByHand {
                connection: connection.clone(),
                release: Script::new(RELEASE),
                token: format!("task-{task}"),
                choice: Choice::of(task),
                seed: u64::try_from(task).unwrap_or(0) * 2 + 1,
                watches: Arc::clone(&watches),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct ByHand {
    connection: MultiplexedConnection,
    release: Script,
    token: String,
    choice: Choice,
    seed: u64,
    watches: Arc<Vec<Arc<Watch>>>,
}

impl Worker for ByHand {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let chosen = self.choice.next();
            for name in &chosen {
                let mut backoff = Backoff::new();
                let mut set = redis::cmd("SET");
                set.arg(format!("{NAMESPACE}:by-hand:{name}"))
                    .arg(&self.token)
                    .arg("NX")
                    .arg("PX")
                    .arg(10_000);
                while !set.query_async::<bool>(&mut self.connection).await? {
                    backoff.pause(&mut self.seed).await;
                }
            }
            pass(&self.watches, &chosen).await;
            for name in &chosen {
                let mut release = self.release.prepare_invoke();
                release.key(format!("{NAMESPACE}:by-hand:{name}")).arg(&self.token);
                release.invoke_async::<i64>(&mut self.connection).await?;
            }
            Ok(1)
        })
    }
}
