//! Issuing coupons to users who come once each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::stock::{CouponTerms, Issue, MAX_QUANTITY};
use redis::aio::MultiplexedConnection;

use super::frame::{Case, Contender, Doing, Role, Worker};
use super::slice::work_in_tasks;
use super::tally::Tallies;
use super::{Failure, NAMESPACE, raw_client};

/// As many users as the limit puts into one call: beyond this, larger batches bring no more.
const LIMIT_BATCH: u64 = 256;

/// How many batches of the limit are under way at once: enough to keep Redis busy all the time.
const LIMIT_WORKERS: usize = 4;

/// Nobody ever comes twice, in no slice and no case.
static NEXT_USER: AtomicU64 = AtomicU64::new(0);

fn new_users(count: u64) -> impl Iterator<Item = String> {
    let first = NEXT_USER.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(|user| format!("user-{user}"))
}

pub(super) async fn cases(url: &str, tasks: Option<usize>) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for tasks in tasks.map_or(vec![1, 1_000], |tasks| vec![tasks]) {
        cases.push(Case {
            name: "stock: one coupon each, every user new".into(),
            tasks,
            contenders: vec![
                Box::new(BatchLimit { coupon: open(url, &format!("limit:{tasks}")).await? }),
                Box::new(ScriptPerRequest::connect(url, tasks).await?),
                Box::new(Ours {
                    name: "lockgate on Redis",
                    coupon: open(url, &format!("ours:{tasks}")).await?,
                }),
                Box::new(Ours { name: "lockgate embedded", coupon: open("memory", "embedded").await? }),
            ],
        });
    }
    Ok(cases)
}

/// A coupon that never sells out.
#[derive(Clone)]
struct OpenCoupon {
    gate: Gate,
    name: Name,
}

async fn open(url: &str, name: &str) -> Result<OpenCoupon, Failure> {
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    let gate = Gate::open_with(url, &config).await?;
    gate.coupon(name)?.open(&CouponTerms::new(MAX_QUANTITY)?).await?;
    Ok(OpenCoupon { gate, name: Name::new("coupon", name)? })
}

/// The shipped batch script, fed with full batches: what Redis can do when nobody waits for a single answer.
struct BatchLimit {
    coupon: OpenCoupon,
}

impl Contender for BatchLimit {
    fn name(&self) -> &'static str {
        "the batch script alone, 256 users a call"
    }

    fn role(&self) -> Role {
        Role::Limit
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["eval", "evalsha"]
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| Box::new(BatchWorker(self.coupon.clone())) as Box<dyn Worker>;
        Box::pin(work_in_tasks((0..tasks.min(LIMIT_WORKERS)).map(worker), length))
    }
}

struct BatchWorker(OpenCoupon);

impl Worker for BatchWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let users: Vec<_> =
                new_users(LIMIT_BATCH).map(|user| Name::new("user", user)).collect::<Result<_, _>>()?;
            let answers = self.0.gate.store().coupon_issue(&self.0.name, &users).await?;
            if answers.iter().all(|answer| matches!(answer, Issue::Issued { .. })) {
                Ok(LIMIT_BATCH)
            } else {
                Err("not everybody got one".into())
            }
        })
    }
}

/// The usual script (seen before? any left? then add and queue), one call per request.
struct ScriptPerRequest {
    connection: MultiplexedConnection,
    keys: [String; 2],
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
    async fn connect(url: &str, tasks: usize) -> Result<Self, Failure> {
        let connection = raw_client(url)?.get_multiplexed_async_connection().await?;
        let keys = ["set", "queue"].map(|kind| format!("{NAMESPACE}:{{raw}}:{tasks}:{kind}"));
        Ok(Self { connection, keys })
    }
}

impl Contender for ScriptPerRequest {
    fn name(&self) -> &'static str {
        "one EVALSHA per request: set and queue"
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["eval", "evalsha", "script|load"]
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| {
            let (connection, keys) = (self.connection.clone(), self.keys.clone());
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
            let user = new_users(1).next().unwrap_or_default();
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

/// One call of the library per user.
struct Ours {
    name: &'static str,
    coupon: OpenCoupon,
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        if self.name.ends_with("Redis") { &["eval", "evalsha"] } else { &[] }
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| Box::new(OurWorker(Arc::new(self.coupon.clone()))) as Box<dyn Worker>;
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct OurWorker(Arc<OpenCoupon>);

impl Worker for OurWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let user = new_users(1).next().unwrap_or_default();
            match self.0.gate.coupon(self.0.name.as_str())?.issue(user).await? {
                Issue::Issued { .. } => Ok(1),
                other => Err(format!("not issued: {other:?}").into()),
            }
        })
    }
}
