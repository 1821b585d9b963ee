//! What people write on Redis.

use std::time::Duration;

use lockgate::stock::MAX_QUANTITY;
use redis::aio::MultiplexedConnection;

use super::new_user;
use crate::bench::frame::{Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, NAMESPACE, patient_connection, remove_our_keys};

/// The usual script (seen before? any left? then add and queue), one call per request.
pub(super) struct ScriptPerRequest {
    url: String,
    connection: MultiplexedConnection,
    is_limit: bool,
}

const SET_AND_QUEUE: &str = "
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end
if tonumber(ARGV[2]) > redis.call('SCARD', KEYS[1]) then
  redis.call('SADD', KEYS[1], ARGV[1])
  redis.call('RPUSH', KEYS[2], ARGV[3])
  return 1
end
return 3";

impl ScriptPerRequest {
    pub(super) async fn connect(url: &str, is_limit: bool) -> Result<Self, Failure> {
        let connection = patient_connection(url).await?;
        Ok(Self { url: url.to_owned(), connection, is_limit })
    }
}

impl Contender for ScriptPerRequest {
    fn name(&self) -> &'static str {
        "one EVALSHA per request: set and queue"
    }

    fn role(&self) -> Role {
        if self.is_limit { Role::Limit } else { Role::Peer }
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["eval", "evalsha", "script|load"]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(remove_our_keys(&self.url))
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let keys = ["set", "queue"].map(|kind| format!("{NAMESPACE}:{{raw}}:{kind}"));
        let worker = move |_| {
            let (connection, keys) = (self.connection.clone(), keys.clone());
            let script = redis::Script::new(SET_AND_QUEUE);
            Box::new(ScriptWorker { connection, keys, script }) as Box<dyn Worker>
        };
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct ScriptWorker {
    connection: MultiplexedConnection,
    keys: [String; 2],
    script: redis::Script,
}

impl Worker for ScriptWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let user = new_user();
            let request = format!("{{\"coupon\":1,\"user\":\"{user}\"}}");
            let mut call = self.script.prepare_invoke();
            call.key(&self.keys[0]).key(&self.keys[1]).arg(&user).arg(MAX_QUANTITY).arg(request);
            match call.invoke_async(&mut self.connection).await? {
                1 => Ok(1),
                other => Err(format!("the script answered {other}").into()),
            }
        })
    }
}

/// A lock around GET and SET: `SET NX PX`, and again every ten milliseconds until it is free.
pub(super) struct LockGetSet {
    url: String,
    connection: MultiplexedConnection,
}

const UNLOCK: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

impl LockGetSet {
    pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
        let connection = patient_connection(url).await?;
        Ok(Self { url: url.to_owned(), connection })
    }
}

impl Contender for LockGetSet {
    fn name(&self) -> &'static str {
        "a lock (SET NX, again every 10 ms) around GET and SET"
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["set", "get", "sadd", "eval", "evalsha", "script|load"]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(remove_our_keys(&self.url))
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| {
            let (connection, script) = (self.connection.clone(), redis::Script::new(UNLOCK));
            Box::new(LockWorker { connection, script }) as Box<dyn Worker>
        };
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct LockWorker {
    connection: MultiplexedConnection,
    script: redis::Script,
}

impl LockWorker {
    fn key(what: &str) -> String {
        format!("{NAMESPACE}:{{raw}}:locked:{what}")
    }

    async fn take_lock(&mut self, token: &str) -> Result<(), Failure> {
        let mut set = redis::cmd("SET");
        set.arg(Self::key("lock")).arg(token).arg("NX").arg("PX").arg(3_000);
        while set.query_async::<Option<String>>(&mut self.connection).await?.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

impl Worker for LockWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let user = new_user();
            self.take_lock(&user).await?;
            let issued: Option<u64> =
                redis::cmd("GET").arg(Self::key("issued")).query_async(&mut self.connection).await?;
            let is_new: u64 = redis::cmd("SADD")
                .arg(Self::key("users"))
                .arg(&user)
                .query_async(&mut self.connection)
                .await?;
            let issued = issued.unwrap_or(0) + is_new;
            redis::cmd("SET").arg(Self::key("issued")).arg(issued).exec_async(&mut self.connection).await?;
            let mut unlock = self.script.prepare_invoke();
            unlock.key(Self::key("lock")).arg(&user);
            unlock.invoke_async::<u64>(&mut self.connection).await?;
            Ok(1)
        })
    }
}
