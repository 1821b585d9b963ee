//! The operations on pools of permits, on Redis.

use super::RedisStore;
use super::mutex::{
    RenewLine, acquired, broken, fence, giving_away_with, micros, millis, released, renew_all, word_for,
};
use super::script::{Script, ScriptCall, unsigned};
use crate::error::StoreError;
use crate::key::{Keyspace, Kind};
use crate::store::mutex::QUEUE_KEPT;
use crate::store::permit::{check_permits, check_renewals, check_size, check_wish};
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Lock, POOL_RELEASES_KEPT, PermitHolder, PermitRenewal, Pool,
    PoolKind, PoolStatus, Release, Renew, Share, Shrink, Token,
};

/// The shared script spells these out.
const _: () = assert!(FENCE_BLOCK == 64 && POOL_RELEASES_KEPT == 8 && QUEUE_KEPT.as_millis() == 86_400_000);

pub(super) async fn permit_acquire(
    store: &RedisStore,
    pool: &Pool,
    attempt: &Attempt,
    share: Share,
) -> Result<Acquire, StoreError> {
    check_wish(pool, attempt, share)?;
    let call = on_pool_and_size(Script::PermitAcquire, store, pool)
        .arg(attempt.token.to_string())
        .arg(share.permits)
        .arg(share.of)
        .arg(millis(attempt.lease))
        .arg(attempt.fences)
        .arg(attempt.fence_seen.get())
        .arg(word_for(attempt.if_taken));
    acquired(&call.send(&store.link).await?)
}

pub(super) async fn permit_renew(
    store: &RedisStore,
    renewals: &[PermitRenewal],
) -> Result<Vec<Renew>, StoreError> {
    check_renewals(renewals)?;
    let lines = renewals.iter().map(|renewal| RenewLine {
        lock: Lock::Pool(renewal.pool.clone()),
        keys: keys_of(&store.keys, &renewal.pool)[..3].to_vec(),
        token: renewal.token,
        lease: renewal.lease,
        fences: renewal.fences,
    });
    renew_all(store, Script::PermitRenew, lines.collect()).await
}

pub(super) async fn permit_release(
    store: &RedisStore,
    pool: &Pool,
    token: &Token,
) -> Result<Release, StoreError> {
    let call = on_pool(Script::PermitRelease, store, pool).arg(token.to_string());
    released(&call.send(&store.link).await?)
}

pub(super) async fn permit_shrink(
    store: &RedisStore,
    pool: &Pool,
    token: &Token,
    permits: u32,
) -> Result<Shrink, StoreError> {
    check_permits(permits)?;
    let call = on_pool(Script::PermitShrink, store, pool).arg(token.to_string()).arg(permits);
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("shrunk", []) => Ok(Shrink::Shrunk),
        ("not-held", []) => Ok(Shrink::NotHeld),
        _ => reply.unexpected(),
    }
}

pub(super) async fn permit_resize(
    store: &RedisStore,
    pool: &Pool,
    total: Option<u32>,
) -> Result<(), StoreError> {
    check_size(pool, total)?;
    let total = total.map_or_else(String::new, |total| total.to_string());
    let reply = on_pool_and_size(Script::PermitResize, store, pool).arg(total).send(&store.link).await?;
    match reply.parts() {
        ("resized", []) => Ok(()),
        _ => reply.unexpected(),
    }
}

pub(super) async fn permit_read(store: &RedisStore, pool: &Pool) -> Result<PoolStatus, StoreError> {
    let call = on_pool_and_size(Script::PermitRead, store, pool).arg(PoolStatus::MAX_LISTED);
    let reply = call.send(&store.link).await?;
    let ("pool", &[total, taken, holding, highest, waiting, listed]) = reply.parts() else {
        return reply.unexpected();
    };
    let listed = usize::try_from(listed).unwrap_or(usize::MAX);
    let Some((holders, waiters)) = reply.texts().split_at_checked(listed) else { return reply.unexpected() };
    Ok(PoolStatus {
        total: u32::try_from(total).ok().filter(|total| *total > 0),
        taken: unsigned(taken),
        holding: unsigned(holding),
        holders: holders.iter().filter_map(|text| holder(text)).collect(),
        fence: fence(highest),
        waiting: unsigned(waiting),
        first_waiting: waiters.iter().filter_map(|text| token_and_permits(text)).collect(),
    })
}

/// Reads `<token> <permits> <lease left, µs>`.
fn holder(text: &str) -> Option<PermitHolder> {
    let (text, left) = text.rsplit_once(' ')?;
    let (token, permits) = token_and_permits(text)?;
    Some(PermitHolder { token, permits, lease_left: micros(left.parse().ok()?) })
}

/// Reads `<token> <permits>`.
fn token_and_permits(text: &str) -> Option<(Token, u32)> {
    let (token, permits) = text.split_once(' ')?;
    Some((Token::parse(token)?, permits.parse().ok()?))
}

pub(super) async fn permit_break(
    store: &RedisStore,
    pool: &Pool,
    token: Option<&Token>,
) -> Result<Fence, StoreError> {
    let token = token.map_or_else(String::new, Token::to_string);
    let call = on_pool_and_size(Script::PermitBreak, store, pool).arg(token);
    broken(&call.send(&store.link).await?)
}

/// The keys of a pool, in the order of `shared/pool_state.lua`: those that end together, and that of its size.
fn keys_of(keys: &Keyspace, pool: &Pool) -> [String; 4] {
    let kinds = match pool.kind {
        PoolKind::RwLock => [Kind::RwLock, Kind::RwLockHolders, Kind::RwLockQueue, Kind::RwLockSize],
        PoolKind::Semaphore => {
            [Kind::Semaphore, Kind::SemaphoreHolders, Kind::SemaphoreQueue, Kind::SemaphoreSize]
        }
    };
    kinds.map(|kind| keys.key(kind, &pool.name))
}

/// Where it stands what a token holds, and until when.
pub(super) fn where_it_is_held(keys: &Keyspace, pool: &Pool) -> [String; 2] {
    let [key, holders, ..] = keys_of(keys, pool);
    [key, holders]
}

fn on_pool<'a>(script: Script, store: &'a RedisStore, pool: &Pool) -> ScriptCall<'a> {
    let [key, holders, queue, _] = keys_of(&store.keys, pool);
    giving_away_with(script, store, vec![key, holders, queue], &pool.name)
}

/// The same for scripts that need to know whether the number of permits is set.
fn on_pool_and_size<'a>(script: Script, store: &'a RedisStore, pool: &Pool) -> ScriptCall<'a> {
    giving_away_with(script, store, keys_of(&store.keys, pool).into(), &pool.name)
}
