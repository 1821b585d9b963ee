//! **Fails: everybody is stuck for ever** once a holder has died. `SETNX` without an expiry, `DEL` to release.
//!
//! ```text
//! P: SETNX lock → 1
//! P: killed
//!      A, B, C, …: SETNX lock → 0, 0, 0, …    there is nobody left to delete the key
//! ```
//!
//! In every round a process of its own stands in the crowd, takes the lock as everybody does, and is killed with `kill -9` while
//! it has it. As long as nobody dies, all is well, which is why it works on every developer's machine. (It has another hole: a
//! `DEL` does not ask whose lock it deletes.)

use std::time::Duration;

use crate::lab::Failure;
use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::{Backoff, take_in_transaction};

pub(super) const STRATEGY: Strategy = Strategy {
    name: "redis-naive",
    title: "SETNX without an expiry, and a holder that dies",
    family: Family::RedisLock,
    claim: || Claim::fails(Flaw::Stuck, &[], When::Always),
    needs: &[Need::Redis],
    crash: Some(Duration::from_secs(2)),
    open: |scene| {
        Box::pin(async {
            let redis = scene.redis().await?;
            opened(Naive { redis, key: scene.key(LOCK), scene })
        })
    },
    ..PLAIN
};

/// What the key of the lock ends with.
const LOCK: &str = "lock";

struct Naive {
    redis: RedisLink,
    key: String,
    scene: Scene,
}

async fn lock(redis: &RedisLink, key: &str, mut backoff: Backoff) -> Result<(), Failure> {
    while !redis.ask::<bool>(redis::cmd("SETNX").arg(key).arg(1)).await? {
        backoff.pause().await;
    }
    Ok(())
}

impl Taker for Naive {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
            lock(&self.redis, &self.key, backoff).await?;
            let answer = take_in_transaction(&self.scene, user).await;
            self.redis.ask::<()>(redis::cmd("DEL").arg(&self.key)).await?;
            answer
        })
    }
}

/// The life of the one who dies: takes the lock, and is killed before it does anything with it.
pub(in crate::lab) async fn take_and_never_release(
    redis: &RedisLink,
    mark: &str,
    coupon: i64,
) -> Result<(), Failure> {
    // In more of a hurry than the others, so that it has its turn before they are through.
    let backoff = Backoff::new(Duration::from_micros(200), Duration::from_micros(200));
    lock(redis, &crate::lab::strategy::key(mark, coupon, LOCK), backoff).await
}
