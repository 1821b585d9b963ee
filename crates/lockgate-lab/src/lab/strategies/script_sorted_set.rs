//! **Exact across processes**, as long as Redis keeps what it has: a script lets the first so many into a sorted set; one batch
//! at the end writes them to the database.
//!
//! ```text
//! A: script: 299 in the set → you are in      … when all is over …
//!      B: script: 300 in the set → sold out   BEGIN; 300 less; insert 300 rows; COMMIT
//! ```
//!
//! The database sees one transaction instead of hundreds, so it is the fastest that users can notice. Until that batch, Redis is
//! the only one who knows: if it loses the set, the shop has promised what nobody can look up.

use redis::Script;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_all_down;

/// KEYS: the sorted set. ARGV: the user, the stock. Returns 1: you are in, 0: sold out.
const DECIDE: &str = "
local count = redis.call('ZCARD', KEYS[1])
if count >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], 'NX', count, ARGV[1])
return 1";

pub(super) const STRATEGY: Strategy = Strategy {
    name: "script-sorted-set",
    title: "Script: capped sorted set; one batch at the end",
    family: Family::RedisDecides,
    needs: &[Need::Redis],
    open: |scene| Box::pin(async { opened(ScriptSortedSet::open(scene).await?) }),
    ..PLAIN
};

struct ScriptSortedSet {
    redis: RedisLink,
    script: Script,
    set: String,
    scene: Scene,
}

impl ScriptSortedSet {
    async fn open(scene: Scene) -> Result<Self, Failure> {
        Ok(Self { redis: scene.redis().await?, script: Script::new(DECIDE), set: scene.key("set"), scene })
    }
}

impl Taker for ScriptSortedSet {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let is_in: bool = self.redis.run(&self.script, &[&self.set], &[user, self.scene.stock]).await?;
            Ok(if is_in { Answer::Got } else { Answer::SoldOut })
        })
    }

    fn finish(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            // One of the processes does it for all.
            if self.scene.process > 0 {
                return Ok(());
            }
            let users: Vec<u64> = self.redis.ask(redis::cmd("ZRANGE").arg(&self.set).arg(0).arg(-1)).await?;
            write_all_down(&self.scene, &users).await
        })
    }
}
