//! **Exact across processes:** one script in Redis checks the user, lowers the counter and remembers the user; then the database.
//!
//! ```text
//! A: script → yours; BEGIN; one less; insert A; COMMIT
//!      B: script → sold out                   decided by Redis alone, the database is not asked
//! ```
//!
//! Redis runs one script at a time, so nobody can come between the check and the decrement: no lock, nobody waits. Those who get
//! nothing never reach the database. What is decided there and not yet written is lost when the process dies in between.

use redis::Script;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::write_down;

/// KEYS: the counter, the set of users. ARGV: the user. Returns 1: yours, 0: sold out, 2: you have one.
const DECIDE: &str = "
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
if redis.call('DECR', KEYS[1]) < 0 then
    redis.call('INCR', KEYS[1])
    return 0
end
redis.call('SADD', KEYS[2], ARGV[1])
return 1";

pub(super) const STRATEGY: Strategy = Strategy {
    name: "script-set",
    title: "Script: user in set? counter down; then the database",
    family: Family::RedisDecides,
    needs: &[Need::Redis],
    open: |scene| Box::pin(async { opened(ScriptSet::open(scene).await?) }),
    ..PLAIN
};

struct ScriptSet {
    redis: RedisLink,
    script: Script,
    counter: String,
    users: String,
    scene: Scene,
}

impl ScriptSet {
    async fn open(scene: Scene) -> Result<Self, Failure> {
        let redis = scene.redis().await?;
        let (counter, users) = (scene.key("counter"), scene.key("users"));
        redis.ask::<()>(redis::cmd("SET").arg(&counter).arg(scene.stock).arg("NX")).await?;
        Ok(Self { redis, script: Script::new(DECIDE), counter, users, scene })
    }
}

impl Taker for ScriptSet {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let keys = [self.counter.as_str(), &self.users];
            if self.redis.run::<u8>(&self.script, &keys, &[user]).await? != 1 {
                return Ok(Answer::SoldOut);
            }
            write_down(&self.scene, user).await?;
            Ok(Answer::Got)
        })
    }
}
