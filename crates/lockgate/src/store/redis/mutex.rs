//! The mutex operations, on Redis.

use std::time::Duration;

use super::RedisStore;
use super::script::{MUTEX_ACQUIRE, MUTEX_RELEASE, MUTEX_RENEW, unsigned};
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::mutex::{RELEASED_KEPT, check_fence_seen};
use crate::store::{Acquire, Fence, Lease, Release, Renew, Token};

const KEPT_MS: u128 = RELEASED_KEPT.as_millis();

pub(super) async fn mutex_acquire(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
    lease: Lease,
    fence_seen: Fence,
) -> Result<Acquire, StoreError> {
    check_fence_seen(fence_seen)?;
    let call = MUTEX_ACQUIRE
        .on(&[store.keys.key(Kind::Mutex, mutex)])
        .arg(token.to_string())
        .arg(millis(lease))
        .arg(fence_seen.get())
        .arg(KEPT_MS.to_string());
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("granted", &[fence, left]) => {
            Ok(Acquire::Granted { fence: Fence::new(unsigned(fence)), lease_left: micros(left) })
        }
        ("taken", &[left]) => Ok(Acquire::Taken { lease_left: micros(left) }),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_renew(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
    lease: Lease,
) -> Result<Renew, StoreError> {
    let call = MUTEX_RENEW
        .on(&[store.keys.key(Kind::Mutex, mutex)])
        .arg(token.to_string())
        .arg(millis(lease))
        .arg(KEPT_MS.to_string());
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("renewed", []) => Ok(Renew::Renewed),
        ("not-held", []) => Ok(Renew::NotHeld),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_release(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
) -> Result<Release, StoreError> {
    let call = MUTEX_RELEASE
        .on(&[store.keys.key(Kind::Mutex, mutex)])
        .arg(token.to_string())
        .arg(KEPT_MS.to_string());
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("released", []) => Ok(Release::Released),
        ("not-held", []) => Ok(Release::NotHeld),
        _ => reply.unexpected(),
    }
}

fn millis(lease: Lease) -> String {
    lease.length().as_millis().to_string()
}

fn micros(left: i64) -> Duration {
    Duration::from_micros(unsigned(left))
}
