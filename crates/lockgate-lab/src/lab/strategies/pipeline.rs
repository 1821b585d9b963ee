//! **Fails: oversells, when more want one than there are.** Commands in a pipeline travel together, and are not one step.
//!
//! ```text
//! A: [SCARD → 299, SISMEMBER → 0]
//!      B: [SCARD → 299, SISMEMBER → 0]
//! A: [SADD A, RPUSH A]
//!      B: [SADD B, RPUSH B]                   301 of 300
//! ```
//!
//! A pipeline saves round trips, that is all: the answers of the first have to come back before the second can be sent, and
//! everybody else is served meanwhile. The same commands in a script are exact: see `script-set-queue`.

use crate::lab::Failure;
use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_all_down;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "pipeline",
    title: "Pipeline: check, then add; one batch at the end",
    family: Family::RedisDecides,
    claim: || Claim::fails(Flaw::Oversold, &[], When::MoreUsersThanStock),
    needs: &[Need::Redis],
    open: |scene| Box::pin(async { opened(Pipelined::open(scene).await?) }),
    ..PLAIN
};

struct Pipelined {
    redis: RedisLink,
    users: String,
    list: String,
    scene: Scene,
}

impl Pipelined {
    async fn open(scene: Scene) -> Result<Self, Failure> {
        let (users, list) = (scene.key("users"), scene.key("list"));
        Ok(Self { redis: scene.redis().await?, users, list, scene })
    }
}

impl Taker for Pipelined {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let mut check = redis::pipe();
            check.cmd("SCARD").arg(&self.users).cmd("SISMEMBER").arg(&self.users).arg(user);
            let (count, is_in): (u64, bool) = self.redis.ask_all(&check).await?;
            if is_in || count >= self.scene.stock {
                return Ok(Answer::SoldOut);
            }
            let mut act = redis::pipe();
            act.cmd("SADD")
                .arg(&self.users)
                .arg(user)
                .ignore()
                .cmd("RPUSH")
                .arg(&self.list)
                .arg(user)
                .ignore();
            self.redis.ask_all::<()>(&act).await?;
            Ok(Answer::Got)
        })
    }

    fn finish(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            // One of the processes does it for all.
            if self.scene.process > 0 {
                return Ok(());
            }
            let users: Vec<u64> = self.redis.ask(redis::cmd("LRANGE").arg(&self.list).arg(0).arg(-1)).await?;
            write_all_down(&self.scene, &users).await
        })
    }
}
