//! Ten at a time.

use std::sync::Arc;

use lockgate::lock::Semaphore;
use redis::Script;
use redis::aio::MultiplexedConnection;

use super::{BY_HAND, Backoff, InOneProcess, OURS, Watch, gate};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::{NAMESPACE, patient_connection};

const PERMITS: u32 = 10;

pub(super) fn case(redis: &str, tasks: usize) -> Case<'static> {
    Case {
        name: format!("semaphore: {tasks} tasks, {PERMITS} permits"),
        tasks,
        contenders: vec![
            in_process(),
            by_hand(redis),
            ours(redis, "lockgate, without cohort", |semaphore| semaphore.cohort(None)),
            ours(redis, "lockgate, with cohort", |semaphore| semaphore),
        ],
    }
}

fn in_process() -> Box<dyn Contender> {
    InOneProcess::boxed("tokio's Semaphore, in the process alone", Role::Limit, &[], |tasks, watch| {
        Box::pin(async move {
            let permits = usize::try_from(PERMITS)?;
            let semaphore = Arc::new(tokio::sync::Semaphore::new(permits));
            let worker = || InProcess { semaphore: Arc::clone(&semaphore), watch: Arc::clone(&watch) };
            Ok((0..tasks).map(|_| Box::new(worker()) as Box<dyn Worker>).collect())
        })
    })
}

struct InProcess {
    semaphore: Arc<tokio::sync::Semaphore>,
    watch: Arc<Watch>,
}

impl Worker for InProcess {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let _permit = self.semaphore.acquire().await?;
            self.watch.pass(1, PERMITS.into()).await;
            Ok(1)
        })
    }
}

fn ours(redis: &str, name: &'static str, recipe: fn(Semaphore) -> Semaphore) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    InOneProcess::boxed(name, Role::Ours, OURS, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let semaphore = recipe(gate(&redis).await?.semaphore("permits", PERMITS)?);
            let worker = || Ours { semaphore: semaphore.clone(), watch: Arc::clone(&watch) };
            Ok((0..tasks).map(|_| Box::new(worker()) as Box<dyn Worker>).collect())
        })
    })
}

struct Ours {
    semaphore: Semaphore,
    watch: Arc<Watch>,
}

impl Worker for Ours {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let _permit = self.semaphore.acquire().await?;
            self.watch.pass(1, PERMITS.into()).await;
            Ok(1)
        })
    }
}

/// A sorted set of holders by the end of their leases: the usual semaphore on Redis.
const ACQUIRE: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + 10000, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 10000)
return 1";

fn by_hand(redis: &str) -> Box<dyn Contender> {
    let redis = redis.to_owned();
    let name = "by hand: a script on a sorted set, again after 1 to 50 ms";
    InOneProcess::boxed(name, Role::Peer, BY_HAND, move |tasks, watch| {
        let redis = redis.clone();
        Box::pin(async move {
            let connection = patient_connection(&redis).await?;
            let worker = |task: usize| ByHand {
                connection: connection.clone(),
                acquire: Script::new(ACQUIRE),
                release: Script::new("return redis.call('ZREM', KEYS[1], ARGV[1])"),
                name: format!("task-{task}"),
                seed: u64::try_from(task).unwrap_or(0) * 2 + 1,
                watch: Arc::clone(&watch),
            };
            Ok((0..tasks).map(|task| Box::new(worker(task)) as Box<dyn Worker>).collect())
        })
    })
}

struct ByHand {
    connection: MultiplexedConnection,
    acquire: Script,
    release: Script,
    name: String,
    seed: u64,
    watch: Arc<Watch>,
}

impl Worker for ByHand {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let key = format!("{NAMESPACE}:by-hand:permits");
            let mut backoff = Backoff::new();
            loop {
                let mut acquire = self.acquire.prepare_invoke();
                acquire.key(&key).arg(&self.name).arg(PERMITS);
                if acquire.invoke_async::<bool>(&mut self.connection).await? {
                    break;
                }
                backoff.pause(&mut self.seed).await;
            }
            self.watch.pass(1, PERMITS.into()).await;
            self.release.key(&key).arg(&self.name).invoke_async::<i64>(&mut self.connection).await?;
            Ok(1)
        })
    }
}
