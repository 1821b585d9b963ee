//! **Exact across processes**, as long as no worker dies: a script decides and queues, a worker writes to the database.
//!
//! ```text
//! A: script: not in the set, 299 of 300: into the set, onto the list → yours
//!      worker: takes a hundred off the list; BEGIN; … COMMIT
//! ```
//!
//! The user has an answer after one call of Redis; the database follows at its own pace, many rows to a transaction. The list is
//! the weak spot: what a worker has popped and not committed when it is killed is nowhere. `queue-stream` closes that, with
//! acknowledgements.

use std::time::Duration;

use redis::Script;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_all_down;

/// KEYS: the set of users, the list. ARGV: the user, the stock. Returns 1: yours, 2: you have one, 3: sold out.
const DECIDE: &str = "
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end
if tonumber(ARGV[2]) > redis.call('SCARD', KEYS[1]) then
    redis.call('SADD', KEYS[1], ARGV[1])
    redis.call('RPUSH', KEYS[2], ARGV[1])
    return 1
end
return 3";

/// How many a worker takes off the list at a time.
const BATCH: usize = 100;
/// How long it waits when there was nothing.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) const STRATEGY: Strategy = Strategy {
    name: "script-set-queue",
    title: "Script: set and list; a worker writes",
    family: Family::RedisDecides,
    needs: &[Need::Redis],
    open: |scene| Box::pin(async { opened(ScriptSetQueue::open(scene).await?) }),
    ..PLAIN
};

struct ScriptSetQueue {
    redis: RedisLink,
    script: Script,
    users: String,
    list: String,
    stock: u64,
    no_more_come: CancellationToken,
    worker: Mutex<Option<JoinHandle<Result<(), Failure>>>>,
}

impl ScriptSetQueue {
    async fn open(scene: Scene) -> Result<Self, Failure> {
        let redis = scene.redis().await?;
        let (users, list, stock) = (scene.key("users"), scene.key("list"), scene.stock);
        let no_more_come = CancellationToken::new();
        let worker = tokio::spawn(work_off(redis.clone(), list.clone(), scene, no_more_come.clone()));
        let worker = Mutex::new(Some(worker));
        Ok(Self { redis, script: Script::new(DECIDE), users, list, stock, no_more_come, worker })
    }
}

/// Writes what is on the list, until it is empty and stays so.
async fn work_off(
    redis: RedisLink,
    list: String,
    scene: Scene,
    no_more_come: CancellationToken,
) -> Result<(), Failure> {
    loop {
        // Looked at before the list: what comes after it is said that nothing comes would be missed.
        let is_last_look = no_more_come.is_cancelled();
        let batch: Option<Vec<u64>> = redis.ask(redis::cmd("LPOP").arg(&list).arg(BATCH)).await?;
        match batch {
            Some(users) => write_all_down(&scene, &users).await?,
            None if is_last_look => return Ok(()),
            None => tokio::time::sleep(PAUSE).await,
        }
    }
}

impl Taker for ScriptSetQueue {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let keys = [self.users.as_str(), &self.list];
            let said: u8 = self.redis.run(&self.script, &keys, &[user, self.stock]).await?;
            Ok(if said == 1 { Answer::Got } else { Answer::SoldOut })
        })
    }

    fn finish(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            self.no_more_come.cancel();
            let Some(worker) = self.worker.lock().await.take() else { return Ok(()) };
            worker.await?
        })
    }
}
