//! The mutex operations, on Redis.

use std::time::Duration;

use super::RedisStore;
use super::script::{House, Reply, Script, ScriptCall, unsigned};
use crate::clock::{Moment, Timestamp};
use crate::config::Config;
use crate::error::StoreError;
use crate::key::{Keyspace, Kind, Name};
use crate::store::mutex::{QUEUE_KEPT, RELEASED_KEPT, check_renewals};
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, Holder, IfTaken, Lease, MutexStatus, Release, Renew,
    Renewal, Token,
};

/// `PX` counts whole milliseconds from the beginning of the present one, so a lease may end this much early.
const ROUNDING: Duration = Duration::from_millis(1);

/// The shared script spells these out.
const _: () = assert!(FENCE_BLOCK == 64 && QUEUE_KEPT.as_millis() == 86_400_000);

pub(super) async fn mutex_acquire(
    store: &RedisStore,
    mutex: &Name,
    attempt: &Attempt,
) -> Result<Acquire, StoreError> {
    attempt.check()?;
    let if_taken = match attempt.if_taken {
        IfTaken::Leave => "leave",
        IfTaken::Watch => "watch",
        IfTaken::Queue => "queue",
        IfTaken::QueueAgain => "again",
    };
    let call = giving_away(Script::MutexAcquire, store, mutex)
        .arg(attempt.token.to_string())
        .arg(millis(attempt.lease))
        .arg(attempt.fences)
        .arg(attempt.fence_seen.get())
        .arg(if_taken);
    acquired(&call.send(&store.link).await?)
}

fn acquired(reply: &Reply) -> Result<Acquire, StoreError> {
    match reply.parts() {
        ("granted", &[first, last, left]) => {
            let fences = Fences { first: fence(first), last: fence(last) };
            Ok(Acquire::Granted { fences, lease_left: trusted(left) })
        }
        ("taken", &[left]) => Ok(Acquire::Taken { lease_left: micros(left) }),
        ("queued", &[ahead, left, now]) => Ok(Acquire::Queued {
            ahead: unsigned(ahead),
            lease_left: micros(left),
            now: Timestamp::from_micros(unsigned(now)),
        }),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_renew(store: &RedisStore, renewals: &[Renewal]) -> Result<Vec<Renew>, StoreError> {
    check_renewals(renewals)?;
    let sent_at = store.caution.clock.monotonic();
    let mut answers = vec![Renew::NotHeld; renewals.len()];
    // A script may touch one partition only. One after the other, so that no more calls are under way than callers.
    let mut by_partition: Vec<_> = renewals.iter().enumerate().collect();
    by_partition.sort_by_key(|(_, renewal)| store.keys.partition_of(&renewal.mutex));
    let same_partition = |one: &(usize, &Renewal), two: &(usize, &Renewal)| {
        store.keys.partition_of(&one.1.mutex) == store.keys.partition_of(&two.1.mutex)
    };
    for of_one_partition in by_partition.chunk_by(same_partition) {
        renew_in_one_partition(store, of_one_partition, &mut answers).await?;
    }
    renewals_are_replicated(store, sent_at, renewals, &answers).await?;
    Ok(answers)
}

/// A renewal that the next master may not know of is none: its holder would trust the lock for longer than that master does.
async fn renewals_are_replicated(
    store: &RedisStore,
    sent_at: Moment,
    renewals: &[Renewal],
    answers: &[Renew],
) -> Result<(), StoreError> {
    let Some(replicas) = &store.caution.replicas else { return Ok(()) };
    let renewed = renewals.iter().zip(answers).filter(|(_, answer)| **answer != Renew::NotHeld);
    let questions: Vec<_> = renewed
        .map(|(renewal, _)| (renewal.lease.length(), replicas.ask(&renewal.mutex, renewal.token)))
        .collect();
    for (lease, question) in questions {
        let left = question.answer().await?.unwrap_or_default();
        if store.caution.clock.monotonic() + left + ROUNDING * 2 < sent_at + lease {
            let why = "another master has taken over, and knows nothing of the renewal";
            return Err(StoreError::UnknownOutcome(why.into()));
        }
    }
    Ok(())
}

pub(super) async fn replicated(store: &RedisStore, mutex: &Name, token: &Token) -> Result<bool, StoreError> {
    let Some(replicas) = &store.caution.replicas else { return Ok(true) };
    Ok(replicas.ask(mutex, *token).answer().await?.is_some())
}

async fn renew_in_one_partition(
    store: &RedisStore,
    renewals: &[(usize, &Renewal)],
    answers: &mut [Renew],
) -> Result<(), StoreError> {
    let keys: Vec<_> =
        renewals.iter().map(|(_, renewal)| store.keys.key(Kind::Mutex, &renewal.mutex)).collect();
    let mut call = store.scripts.call(Script::MutexRenew, &keys);
    for (_, renewal) in renewals {
        call = call.arg(renewal.token.to_string()).arg(millis(renewal.lease)).arg(renewal.fences);
    }
    let reply = call.send(&store.link).await?;
    let ("renewed", pairs) = reply.parts() else { return reply.unexpected() };
    if pairs.len() != 2 * renewals.len() {
        return reply.unexpected();
    }
    for ((place, renewal), pair) in renewals.iter().zip(pairs.chunks_exact(2)) {
        answers[*place] = renewed(pair[0], pair[1], renewal.fences);
    }
    Ok(())
}

fn renewed(last: i64, others_wait: i64, asked: u64) -> Renew {
    if last == 0 {
        return Renew::NotHeld;
    }
    let first = Fence::new((unsigned(last) + 1).saturating_sub(asked));
    let fences = (asked > 0).then_some(Fences { first, last: fence(last) });
    Renew::Renewed { fences, others_wait: others_wait != 0 }
}

pub(super) async fn mutex_release(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
) -> Result<Release, StoreError> {
    let call = giving_away(Script::MutexRelease, store, mutex).arg(token.to_string());
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("released", []) => Ok(Release::Released),
        ("left", []) => Ok(Release::Left),
        ("not-held", []) => Ok(Release::NotHeld),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_yield(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
    next: &Attempt,
) -> Result<Acquire, StoreError> {
    next.check()?;
    let call = giving_away(Script::MutexYield, store, mutex)
        .arg(token.to_string())
        .arg(next.token.to_string())
        .arg(millis(next.lease))
        .arg(next.fences)
        .arg(next.fence_seen.get());
    acquired(&call.send(&store.link).await?)
}

pub(super) async fn mutex_read(store: &RedisStore, mutex: &Name) -> Result<MutexStatus, StoreError> {
    let call = on_mutex(Script::MutexRead, store, mutex).arg(MutexStatus::MAX_LISTED);
    let reply = call.send(&store.link).await?;
    let mut tokens = reply.texts().iter().filter_map(|text| Token::parse(text));
    let (holder, highest, waiting) = match reply.parts() {
        ("free", &[highest, waiting]) => (None, highest, waiting),
        ("held", &[highest, left, waiting]) => {
            let Some(token) = tokens.next() else { return reply.unexpected() };
            (Some(Holder { token, lease_left: micros(left) }), highest, waiting)
        }
        _ => return reply.unexpected(),
    };
    let (fence, waiting) = (fence(highest), unsigned(waiting));
    Ok(MutexStatus { holder, fence, waiting, first_waiting: tokens.collect() })
}

pub(super) async fn mutex_break(store: &RedisStore, mutex: &Name) -> Result<Fence, StoreError> {
    let call = giving_away(Script::MutexBreak, store, mutex);
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("broken", &[highest]) => Ok(fence(highest)),
        _ => reply.unexpected(),
    }
}

/// The rules that the scripts of a store go by.
pub(super) fn house(config: &Config, keys: &Keyspace, is_cluster: bool) -> House {
    House {
        claim_ms: config.claim.as_millis().max(1),
        kept_ms: RELEASED_KEPT.as_millis(),
        ears: keys.ears(),
        freed: keys.freed(),
        // A server that takes over must choose the same waiter as the one that is gone: see shared/quarantine.lua.
        skips_absent: !is_cluster && config.quarantine.is_none(),
        quarantine_us: config.quarantine.map(|length| length.as_micros()),
    }
}

fn on_mutex<'a>(script: Script, store: &'a RedisStore, mutex: &Name) -> ScriptCall<'a> {
    let keys = [store.keys.key(Kind::Mutex, mutex), store.keys.key(Kind::MutexQueue, mutex)];
    store.scripts.call(script, &keys)
}

/// The same for a script that may give the mutex to somebody: if there is a quarantine, it has to know whether it is over.
fn giving_away<'a>(script: Script, store: &'a RedisStore, mutex: &Name) -> ScriptCall<'a> {
    if !store.caution.has_quarantine {
        return on_mutex(script, store, mutex);
    }
    let keys = [
        store.keys.key(Kind::Mutex, mutex),
        store.keys.key(Kind::MutexQueue, mutex),
        store.keys.quarantine(store.keys.partition_of(mutex)),
    ];
    store.scripts.call(script, &keys).telling_the_run()
}

fn millis(lease: Lease) -> u64 {
    u64::try_from(lease.length().as_millis()).unwrap_or(u64::MAX)
}

fn fence(number: i64) -> Fence {
    Fence::new(unsigned(number))
}

fn micros(left: i64) -> Duration {
    Duration::from_micros(unsigned(left))
}

/// What is left of a lease for somebody who relies on it.
pub(super) fn trusted(left: i64) -> Duration {
    micros(left).saturating_sub(ROUNDING)
}
