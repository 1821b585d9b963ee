//! The mutex operations, on Redis.

use std::time::Duration;

use super::RedisStore;
use super::script::{House, Reply, Script, ScriptCall, unsigned};
use crate::clock::{Moment, Timestamp};
use crate::config::Config;
use crate::error::StoreError;
use crate::key::{Keyspace, Kind, Name};
use crate::store::mutex::{QUEUE_KEPT, RELEASED_KEPT, check_renewals, check_seen, check_together};
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, Holder, IfTaken, Lease, Lock, MutexStatus, Release, Renew,
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
    let call = giving_away(Script::MutexAcquire, store, mutex)
        .arg(attempt.token.to_string())
        .arg(millis(attempt.lease))
        .arg(attempt.fences)
        .arg(attempt.fence_seen.get())
        .arg(word_for(attempt.if_taken));
    acquired(&call.send(&store.link).await?)
}

pub(super) fn word_for(if_taken: IfTaken) -> &'static str {
    match if_taken {
        IfTaken::Leave => "leave",
        IfTaken::Watch => "watch",
        IfTaken::Queue => "queue",
        IfTaken::QueueAgain => "again",
    }
}

pub(super) fn acquired(reply: &Reply) -> Result<Acquire, StoreError> {
    match reply.parts() {
        ("granted", &[first, last, left]) => Ok(granted(first, last, left)),
        ("taken", &[left]) => Ok(Acquire::Taken { lease_left: micros(left) }),
        ("queued", &[ahead, left, now]) => Ok(Acquire::Queued {
            ahead: unsigned(ahead),
            lease_left: micros(left),
            now: Timestamp::from_micros(unsigned(now)),
        }),
        ("never", &[total]) => match u32::try_from(total) {
            Ok(total) => Ok(Acquire::Never { total }),
            Err(_) => reply.unexpected(),
        },
        _ => reply.unexpected(),
    }
}

fn granted(first: i64, last: i64, left: i64) -> Acquire {
    let fences = Fences { first: fence(first), last: fence(last) };
    Acquire::Granted { fences, lease_left: trusted(left) }
}

pub(super) async fn mutex_renew(store: &RedisStore, renewals: &[Renewal]) -> Result<Vec<Renew>, StoreError> {
    check_renewals(renewals)?;
    let lines = renewals.iter().map(|renewal| RenewLine {
        lock: Lock::Mutex(renewal.mutex.clone()),
        keys: vec![store.keys.key(Kind::Mutex, &renewal.mutex)],
        token: renewal.token,
        lease: renewal.lease,
        fences: renewal.fences,
    });
    renew_all(store, Script::MutexRenew, lines.collect()).await
}

/// One renewal, as its script wants it.
pub(super) struct RenewLine {
    pub(super) lock: Lock,
    pub(super) keys: Vec<String>,
    pub(super) token: Token,
    pub(super) lease: Lease,
    pub(super) fences: u64,
}

/// Renews, whatever is held; answers in the same order.
pub(super) async fn renew_all(
    store: &RedisStore,
    script: Script,
    renewals: Vec<RenewLine>,
) -> Result<Vec<Renew>, StoreError> {
    let sent_at = store.caution.clock.monotonic();
    let mut answers = vec![Renew::NotHeld; renewals.len()];
    // A script may touch one partition only. One after the other, so that no more calls are under way than callers.
    let mut by_partition: Vec<_> = renewals.iter().enumerate().collect();
    let partition = |renewal: &RenewLine| store.keys.partition_of(renewal.lock.name());
    by_partition.sort_by_key(|(_, renewal)| partition(renewal));
    for of_one_partition in by_partition.chunk_by(|(_, one), (_, two)| partition(one) == partition(two)) {
        renew_in_one_partition(store, script, of_one_partition, &mut answers).await?;
    }
    renewals_are_replicated(store, sent_at, &renewals, &answers).await?;
    Ok(answers)
}

/// A renewal that the next master may not know of is none: its holder would trust the lock for longer than that master does.
async fn renewals_are_replicated(
    store: &RedisStore,
    sent_at: Moment,
    renewals: &[RenewLine],
    answers: &[Renew],
) -> Result<(), StoreError> {
    let Some(replicas) = &store.caution.replicas else { return Ok(()) };
    let renewed = renewals.iter().zip(answers).filter(|(_, answer)| **answer != Renew::NotHeld);
    let questions: Vec<_> = renewed
        .map(|(renewal, _)| (renewal.lease.length(), replicas.ask(&renewal.lock, renewal.token)))
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

async fn renew_in_one_partition(
    store: &RedisStore,
    script: Script,
    renewals: &[(usize, &RenewLine)],
    answers: &mut [Renew],
) -> Result<(), StoreError> {
    let keys: Vec<_> = renewals.iter().flat_map(|(_, renewal)| renewal.keys.iter().cloned()).collect();
    let mut call = match script {
        // Who renews permits notices those whose leases have run out, and gives them away.
        Script::PermitRenew => giving_away_with(script, store, keys, renewals[0].1.lock.name()),
        _ => store.scripts.call(script, &keys),
    };
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
    released(&call.send(&store.link).await?)
}

pub(super) fn released(reply: &Reply) -> Result<Release, StoreError> {
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
    broken(&giving_away(Script::MutexBreak, store, mutex).send(&store.link).await?)
}

pub(super) fn broken(reply: &Reply) -> Result<Fence, StoreError> {
    match reply.parts() {
        ("broken", &[highest]) => Ok(fence(highest)),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_acquire_all(
    store: &RedisStore,
    wishes: &[(Name, Attempt)],
) -> Result<Option<Vec<Acquire>>, StoreError> {
    check_together(wishes)?;
    let partition = |(mutex, _): &(Name, Attempt)| store.keys.partition_of(mutex);
    if wishes.iter().any(|wish| partition(wish) != partition(&wishes[0])) {
        return Ok(None);
    }
    let kinds = [Kind::Mutex, Kind::MutexQueue].into_iter();
    let keys = kinds.flat_map(|kind| wishes.iter().map(move |(mutex, _)| store.keys.key(kind, mutex)));
    let mut call = giving_away_with(Script::MutexAcquireAll, store, keys.collect(), &wishes[0].0);
    for (_, attempt) in wishes {
        call = call.arg(attempt.token.to_string()).arg(millis(attempt.lease));
        call = call.arg(attempt.fences).arg(attempt.fence_seen.get());
    }
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("granted", numbers) if numbers.len() == 3 * wishes.len() => {
            Ok(Some(numbers.chunks_exact(3).map(|grant| granted(grant[0], grant[1], grant[2])).collect()))
        }
        ("taken", []) => Ok(None),
        _ => reply.unexpected(),
    }
}

pub(super) async fn mutex_raise(
    store: &RedisStore,
    mutex: &Name,
    token: &Token,
    fence: Fence,
) -> Result<bool, StoreError> {
    check_seen(fence)?;
    let call = store.scripts.call(Script::MutexRaise, &[store.keys.key(Kind::Mutex, mutex)]);
    let reply = call.arg(token.to_string()).arg(fence.get()).send(&store.link).await?;
    match reply.parts() {
        ("raised", []) => Ok(true),
        ("not-held", []) => Ok(false),
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

/// The same for a script that may give the mutex to somebody.
fn giving_away<'a>(script: Script, store: &'a RedisStore, mutex: &Name) -> ScriptCall<'a> {
    let keys = [store.keys.key(Kind::Mutex, mutex), store.keys.key(Kind::MutexQueue, mutex)];
    giving_away_with(script, store, keys.into(), mutex)
}

/// A script that may give something in the partition of `home` to somebody: if there is a quarantine, it has to know whether
/// it is over.
pub(super) fn giving_away_with<'a>(
    script: Script,
    store: &'a RedisStore,
    mut keys: Vec<String>,
    home: &Name,
) -> ScriptCall<'a> {
    if !store.caution.has_quarantine {
        return store.scripts.call(script, &keys);
    }
    keys.push(store.keys.quarantine(store.keys.partition_of(home)));
    store.scripts.call(script, &keys).telling_the_run()
}

pub(super) fn millis(lease: Lease) -> u64 {
    u64::try_from(lease.length().as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn fence(number: i64) -> Fence {
    Fence::new(unsigned(number))
}

pub(super) fn micros(left: i64) -> Duration {
    Duration::from_micros(unsigned(left))
}

/// What is left of a lease for somebody who relies on it.
pub(super) fn trusted(left: i64) -> Duration {
    micros(left).saturating_sub(ROUNDING)
}
