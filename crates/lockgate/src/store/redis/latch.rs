//! The operations on count-down latches, on Redis.

use super::RedisStore;
use super::script::{Reply, Script, ScriptCall};
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::latch::{LATCH_KEPT, check_count};
use crate::store::{LatchSet, LatchStatus, Token};

/// The shared script spells it out.
const _: () = assert!(LATCH_KEPT.as_millis() == 86_400_000);

pub(super) async fn latch_set(
    store: &RedisStore,
    latch: &Name,
    count: u32,
    round: &Token,
) -> Result<LatchSet, StoreError> {
    check_count(count)?;
    let call = on_latch(Script::LatchSet, store, latch).arg(count).arg(round.to_string());
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("set", []) => Ok(LatchSet::Set),
        ("counting", &[count, remaining]) => status(&reply, count, remaining).map(LatchSet::Counting),
        _ => reply.unexpected(),
    }
}

pub(super) async fn latch_count_down(
    store: &RedisStore,
    latch: &Name,
    token: &Token,
    round: &Token,
) -> Result<Option<LatchStatus>, StoreError> {
    let call = on_latch(Script::LatchCountDown, store, latch).arg(token.to_string()).arg(round.to_string());
    status_if_known(&call.send(&store.link).await?)
}

pub(super) async fn latch_read(store: &RedisStore, latch: &Name) -> Result<Option<LatchStatus>, StoreError> {
    status_if_known(&on_latch(Script::LatchRead, store, latch).send(&store.link).await?)
}

fn status_if_known(reply: &Reply) -> Result<Option<LatchStatus>, StoreError> {
    match reply.parts() {
        ("latch", &[count, remaining]) => status(reply, count, remaining).map(Some),
        ("unknown", []) => Ok(None),
        _ => reply.unexpected(),
    }
}

fn status(reply: &Reply, count: i64, remaining: i64) -> Result<LatchStatus, StoreError> {
    let round = reply.texts().first().and_then(|round| Token::parse(round));
    match (u32::try_from(count), u32::try_from(remaining), round) {
        (Ok(count), Ok(remaining), Some(round)) => Ok(LatchStatus { count, remaining, round }),
        _ => reply.unexpected(),
    }
}

fn on_latch<'a>(script: Script, store: &'a RedisStore, latch: &Name) -> ScriptCall<'a> {
    store.scripts.call(script, &[store.keys.key(Kind::Latch, latch)])
}
