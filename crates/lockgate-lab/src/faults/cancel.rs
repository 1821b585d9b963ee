//! Waits that are dropped at random points, again and again.
//!
//! **Promise:** afterwards nothing is left: no entry in the process, no holder and no waiter in the store, no memory; and
//! the next one has the lock at once.
//!
//! It happens in a process of its own, so that its memory is its own.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::lock::{Mutex, Traces};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::dice::Dice;
use super::orders::Policy;
use super::{Failure, Outcome, Run, Site};

const TASKS: u64 = 16;

/// What it may have grown by when four fifths of the waits came after the first look: a page for each would be 300 MiB.
const MAY_GROW_KIB: u64 = 8 * 1024;

/// For what was dropped to be given back, also on a busy machine.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// How soon a lock that nobody has is given.
const AT_ONCE: Duration = Duration::from_millis(100);

/// What a process that cancels is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cancellations {
    store: String,
    policy: Policy,
    count: u64,
    seed: u64,
    allowance: Duration,
}

/// Runs them in processes of their own: on Redis and on the embedded store, with every way of waiting.
pub(super) async fn scenario(site: &Site, run: &Run) -> Result<Outcome, Failure> {
    let redis = Redis::start(Persistence::Off)?;
    let policies = run.policy.map_or(Policy::ALL.to_vec(), |policy| vec![policy]);
    let kinds = u64::try_from(policies.len())? * 2;
    let mut outcome = Outcome {
        scenario: run.scenario,
        seed: run.seed,
        policy: policies[0],
        faults: 0,
        operations: 0,
        violations: Vec::new(),
    };
    for (policy, store) in
        policies.iter().flat_map(|policy| [(*policy, "memory".into()), (*policy, redis.url())])
    {
        let count = site.cancellations.div_ceil(kinds);
        let orders = Cancellations { store, policy, count, seed: run.seed, allowance: site.allowance };
        let program = site.program.clone();
        let ended = tokio::task::spawn_blocking(move || {
            Command::new(program).arg("cancel").arg(serde_json::to_string(&orders)?).output()
        })
        .await??;
        let said = String::from_utf8_lossy(&ended.stdout);
        let violations: Vec<String> = serde_json::from_str(said.trim())
            .map_err(|_| format!("the process that cancels said {said:?}, {:?}", ended.stderr))?;
        outcome.violations.extend(violations.iter().map(|what| format!("{policy:?}: {what}")));
        outcome.faults += count;
        outcome.operations += count;
    }
    Ok(outcome)
}

/// Drops as many waits as it is told, and returns what was wrong afterwards.
///
/// # Errors
///
/// When the store cannot be reached, or a wait fails.
pub async fn cancel(orders: &Cancellations) -> Result<Vec<String>, Failure> {
    let clock = Clock::system();
    let one = Gate::open(&orders.store).await?;
    // Another process, as far as the lock knows.
    let two = match orders.store.as_str() {
        "memory" => Gate::on(Arc::clone(one.store())),
        url => Gate::open(url).await?,
    };
    let gates = [one, two];
    let early = orders.count / 5;
    drop_waits(&gates, orders, early, orders.seed).await?;
    let mut wrong = settle(&gates, &clock).await?;
    let before = resident_kib();
    drop_waits(&gates, orders, orders.count - early, !orders.seed).await?;
    wrong.extend(settle(&gates, &clock).await?);
    let grown = resident_kib().saturating_sub(before);
    if grown > MAY_GROW_KIB {
        wrong.push(format!("{} dropped waits left {grown} KiB behind", orders.count - early));
    }
    wrong.extend(is_given_at_once(&gates[1], orders, &clock).await?);
    Ok(wrong)
}

async fn drop_waits(gates: &[Gate; 2], orders: &Cancellations, count: u64, seed: u64) -> Result<(), Failure> {
    let left = Arc::new(AtomicU64::new(count));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let mutex = orders.policy.apply(gates[usize::try_from(task % 2)?].mutex("dropped")?);
        let dice = Dice::new(seed.wrapping_add(task));
        tasks.spawn(drop_until_done(mutex, dice, Arc::clone(&left)));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn drop_until_done(mutex: Mutex, mut dice: Dice, left: Arc<AtomicU64>) -> Result<(), Failure> {
    while left.load(Ordering::Relaxed) > 0 {
        let wait = mutex.lock();
        let outcome = if dice.coin() {
            timeout(Duration::from_micros(dice.below(2_000)), wait).await.ok()
        } else {
            polled(wait, dice.below(6)).await
        };
        match outcome {
            None => _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)),
            Some(guard) if dice.coin() => _ = guard?.release().await?,
            Some(guard) => drop(guard?),
        }
    }
    Ok(())
}

/// Lets others run a few times, and then drops `wait` if it is not done.
async fn polled<T>(wait: impl Future<Output = T>, times: u64) -> Option<T> {
    tokio::select! {
        biased;
        done = wait => Some(done),
        () = async {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        } => None,
    }
}

/// Waits until nothing is left; says what is left if that does not happen.
async fn settle(gates: &[Gate; 2], clock: &Clock) -> Result<Vec<String>, Failure> {
    let began = clock.monotonic();
    let mut wrong = Vec::new();
    let mutex = gates[0].mutex("dropped")?;
    for gate in gates {
        let is_clean = async || gate.lock_traces() == Traces::default();
        if !eventually_async(SETTLES_WITHIN, is_clean).await {
            wrong.push(format!("left in the process: {:?}", gate.lock_traces()));
        }
    }
    let is_free =
        async || mutex.status().await.is_ok_and(|status| status.holder.is_none() && status.waiting == 0);
    if !eventually_async(SETTLES_WITHIN.saturating_sub(clock.monotonic().since(began)), is_free).await {
        wrong.push(format!("left in the store: {:?}", mutex.status().await?));
    }
    Ok(wrong)
}

async fn is_given_at_once(
    gate: &Gate,
    orders: &Cancellations,
    clock: &Clock,
) -> Result<Option<String>, Failure> {
    let mutex = orders.policy.apply(gate.mutex("dropped")?);
    let began = clock.monotonic();
    mutex.lock().await?.release().await?;
    let took = clock.monotonic().since(began);
    Ok((took > AT_ONCE + orders.allowance)
        .then(|| format!("a lock that nobody has was given after {took:?}")))
}

/// The memory that this process has, in KiB; 0 where nobody can tell.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
