//! Nine read, one writes.

use std::sync::Arc;

use lockgate::lock::RwLock;
use redis::Script;
use redis::aio::MultiplexedConnection;

use super::{BY_HAND, Backoff, InOneProcess, OURS, Watch, gate};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::{NAMESPACE, patient_connection};

/// More than all readers.
const WRITER: i64 = 1_000_000;

pub(super) fn case(redis: &str, tasks: usize) -> Case<'static> {
    Case {
        name: format!(
            "readers and writers: {tasks} tasks, of ten turns nine read and one writes; reads are counted"
        ),
        tasks,
        contenders: vec![
            in_process(),
            by_hand(redis),
            ours(redis, "lockgate, without cohort", |lock| lock.cohort(None)),
            ours(redis, "lockgate, with cohort", |lock| lock),
        ],
    }
}

/// Which turn it is: the tasks do not write at the same time.
struct Turn(usize);

impl Turn {
    fn next_writes(&mut self) -> bool {
        self.0 += 1;
        self.0.is_multiple_of(10)
    }
}

fn in_process() -> Box<dyn Contender> {
    InOneProcess::boxed("tokio's RwLock, in the process alone", Role::Limit, &[], |tasks, watch| {
        Box::pin(async move {
            let lock = Arc::new(tokio::sync::RwLock::new(()));
            let worker =
                |task| InProcess { lock: Arc::clone(&lock), turn: Turn(task), watch: Arc::clone(&watch) };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct InProcess {
    lock: Arc<tokio::sync::RwLock<()>>,
    turn: Turn,
    watch: Arc<Watch>,
}

impl Worker for InProcess {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            if self.turn.next_writes() {
                let _guard = self.lock.write().await;
                self.watch.pass(WRITER, WRITER).await;
                return Ok(0);
            }
            let _guard = self.lock.read().await;
            self.watch.pass(1, WRITER - 1).await;
            Ok(1)
        })
    }
}

fn ours(redis: &str, name: &'static str, recipe: fn(RwLock) -> RwLock) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    InOneProcess::boxed(name, Role::Ours, OURS, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let lock = recipe(gate(&redis).await?.rw_lock("readers")?);
            let worker = |task| Ours { lock: lock.clone(), turn: Turn(task), watch: Arc::clone(&watch) };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct Ours {
    lock: RwLock,
    turn: Turn,
    watch: Arc<Watch>,
}

impl Worker for Ours {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            if self.turn.next_writes() {
                let _guard = self.lock.write().await?;
                self.watch.pass(WRITER, WRITER).await;
                return Ok(0);
            }
            let _guard = self.lock.read().await?;
            self.watch.pass(1, WRITER - 1).await;
            Ok(1)
        })
    }
}

/// A hash with the number of readers and whether somebody writes, and tries until it may.
const ENTER: &str = "
local writing, readers = redis.call('HGET', KEYS[1], 'w'), tonumber(redis.call('HGET', KEYS[1], 'r') or 0)
if writing then return 0 end
if ARGV[1] == 'w' then
  if readers > 0 then return 0 end
  redis.call('HSET', KEYS[1], 'w', 1)
else
  redis.call('HINCRBY', KEYS[1], 'r', 1)
end
redis.call('PEXPIRE', KEYS[1], 10000)
return 1";

const LEAVE: &str = "
if ARGV[1] == 'w' then return redis.call('HDEL', KEYS[1], 'w') end
return redis.call('HINCRBY', KEYS[1], 'r', -1)";

fn by_hand(redis: &str) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    let name = "by hand: a script that counts readers, again after 1 to 50 ms";
    InOneProcess::boxed(name, Role::Peer, BY_HAND, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let connection = patient_connection(&redis).await?;
            let worker = |task: usize| ByHand {
                connection: connection.clone(),
                enter: Script::new(ENTER),
                leave: Script::new(LEAVE),
                turn: Turn(task),
                seed: u64::try_from(task).unwrap_or(0) * 2 + 1,
                watch: Arc::clone(&watch),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct ByHand {
    connection: MultiplexedConnection,
    enter: Script,
    leave: Script,
    turn: Turn,
    seed: u64,
    watch: Arc<Watch>,
}

impl Worker for ByHand {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let writes = self.turn.next_writes();
            let (what, key) = (if writes { "w" } else { "r" }, format!("{NAMESPACE}:by-hand:readers"));
            let mut backoff = Backoff::new();
            while !self.enter.key(&key).arg(what).invoke_async::<bool>(&mut self.connection).await? {
                backoff.pause(&mut self.seed).await;
            }
            let (takes, room) = if writes { (WRITER, WRITER) } else { (1, WRITER - 1) };
            self.watch.pass(takes, room).await;
            self.leave.key(&key).arg(what).invoke_async::<i64>(&mut self.connection).await?;
            Ok(u64::from(!writes))
        })
    }
}
