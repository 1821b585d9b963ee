//! What waiting for a lock costs: the usual estimate beside what is measured, for each way to wait.
//!
//! **Promise:** what is measured is what is predicted. One holds the lock for a time L while W others wait, each a client with
//! connections of its own, as if it were a program of its own. Redis says how many calls its clients sent. Each way is tried in
//! several rounds, and the median counts; where it is not near the estimate, the report says why.
//!
//! **Not promised:** that the estimate holds for a Redis that is far away: there a try takes as long as its way there and back.
//!
//! ```text
//! spin      asks again every b       W·⌈L/b⌉ calls while it is held; the first has it b/2 after it is free
//! notify    is told that it is free  1 call to release it, which tells them, and up to W that try
//! hand-off  is told that it has it   1 call to release it, which gives it to the next, however many wait
//! ```
//!
//! Calls are counted differently for those who ask and those who are told. Who asks is counted while the lock is held: W waiters
//! begin together, and what they ask within L counts. Who is told has begun to wait before (that is a call or two for each, once,
//! and is reported too); counted is everything from then until the next one has the lock and all is quiet again.
//!
//! ```text
//! model    the estimate, as arithmetic
//! policy   the ways to wait
//! client   one of them, as a client of Redis
//! round    holds, counts, releases
//! table    for the terminal
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use lockgate::testing::services::{Persistence, Redis};
use serde::Serialize;

use super::Failure;
use crate::bench::command_count::CommandCounter;
use crate::bench::remove_keys;

mod client;
mod model;
mod policy;
mod round;
mod table;

use self::model::Model;
pub use self::model::Prediction;
pub use self::policy::Policy;
pub use self::round::Measured;
use self::round::Rounds;

/// What may be asked for.
const WAITERS: std::ops::RangeInclusive<u32> = 1..=500;
const HOLD: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
const BACKOFF: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

/// How far the number of calls may be from the estimate without an explanation.
const TOLERANCE_PERCENT: f64 = 15.0;

/// What to measure.
#[derive(Clone, Debug)]
pub struct CostOptions {
    /// W: how many wait.
    pub waiters: u32,
    /// L: how long the lock is held.
    pub hold: Duration,
    /// b: how long somebody who asks again waits in between.
    pub backoff: Duration,
    /// How often each way is tried.
    pub rounds: u32,
    /// The Redis to measure on; one of our own when there is none.
    pub redis: Option<String>,
}

/// What was predicted and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CostReport {
    /// Which Lockgate measured.
    pub lockgate_version: String,
    /// W.
    pub waiters: u32,
    /// L.
    pub hold_ms: f64,
    /// b.
    pub backoff_ms: f64,
    /// How often each way was tried.
    pub rounds: u32,
    /// Each way to wait.
    pub policies: Vec<PolicyCost>,
}

/// One way to wait.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyCost {
    /// Which.
    pub policy: Policy,
    /// The same in plain words.
    pub title: &'static str,
    /// By the estimate.
    pub predicted: Prediction,
    /// By Redis and the clock.
    pub measured: Measured,
    /// By how many per cent more calls were measured than predicted; less when it is negative.
    pub deviation_percent: f64,
    /// The same of the delay, where one is predicted.
    pub delay_deviation_percent: Option<f64>,
    /// Why it deviates, if it does.
    pub explanation: Option<String>,
}

impl CostOptions {
    fn check(&self) -> Result<(), Failure> {
        if !WAITERS.contains(&self.waiters) {
            return Err(format!("--waiters {}: write a number between 1 and 500", self.waiters).into());
        }
        for (name, value, range) in [("hold", self.hold, HOLD), ("backoff", self.backoff, BACKOFF)] {
            if !range.contains(&value) {
                return Err(format!("--{name} {value:?}: write a time between 1ms and 10s").into());
            }
        }
        if self.rounds == 0 {
            return Err("--rounds 0: write at least 1".into());
        }
        Ok(())
    }
}

/// Measures every way to wait; `watch` is told whose turn it is.
///
/// # Errors
///
/// When the options make no sense, or Redis cannot be started or reached.
pub async fn cost(options: &CostOptions, watch: &dyn Fn(&str)) -> Result<CostReport, Failure> {
    options.check()?;
    let own_redis = match options.redis {
        Some(_) => None,
        None => Some(Redis::start(Persistence::Off)?),
    };
    let url = options.redis.clone().or(own_redis.as_ref().map(Redis::url)).unwrap_or_default();
    let mark = format!("lockgate_cost_{:012x}", RandomState::new().hash_one(0) >> 16);
    let measured = measure_all(options, &url, &mark, watch).await;
    // Whatever happened, nothing of ours stays; why it happened is the more important news.
    let removed = remove_keys(&url, &mark).await;
    let policies = measured?;
    removed?;
    Ok(CostReport {
        lockgate_version: env!("CARGO_PKG_VERSION").to_owned(),
        waiters: options.waiters,
        hold_ms: millis(options.hold),
        backoff_ms: millis(options.backoff),
        rounds: options.rounds,
        policies,
    })
}

async fn measure_all(
    options: &CostOptions,
    url: &str,
    mark: &str,
    watch: &dyn Fn(&str),
) -> Result<Vec<PolicyCost>, Failure> {
    let counter = CommandCounter::connect(url).await?;
    let model = Model { waiters: options.waiters, hold: options.hold, backoff: options.backoff };
    let mut policies = Vec::new();
    for policy in Policy::ALL {
        watch(policy.title());
        let rounds = Rounds { options, counter: &counter, policy, model };
        policies.push(PolicyCost::new(policy, &model, rounds.play(url, mark).await?));
    }
    Ok(policies)
}

impl PolicyCost {
    fn new(policy: Policy, model: &Model, measured: Measured) -> Self {
        let predicted = model.of(policy);
        let deviation_percent = model::deviation_percent(measured.calls, predicted.calls);
        let of_delay = |delay| model::deviation_percent(measured.delay_ms, delay);
        let delay_deviation_percent = predicted.delay_ms.map(of_delay);
        let explanation =
            (deviation_percent.abs() > TOLERANCE_PERCENT).then(|| model.why_not(policy, &measured));
        Self {
            policy,
            title: policy.title(),
            predicted,
            measured,
            deviation_percent,
            delay_deviation_percent,
            explanation,
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_told_what_to_write_instead() {
        let sensible = CostOptions {
            waiters: 20,
            hold: Duration::from_millis(20),
            backoff: Duration::from_millis(5),
            rounds: 3,
            redis: None,
        };
        assert!(sensible.check().is_ok());
        let complaint = |options: CostOptions| options.check().unwrap_err().to_string();
        assert!(complaint(CostOptions { waiters: 0, ..sensible.clone() }).contains("between 1 and 500"));
        assert!(complaint(CostOptions { hold: Duration::ZERO, ..sensible.clone() }).contains("--hold 0ns"));
        let too_long = CostOptions { backoff: Duration::from_secs(11), ..sensible.clone() };
        assert!(complaint(too_long).contains("--backoff 11s: write a time between 1ms and 10s"));
        assert!(complaint(CostOptions { rounds: 0, ..sensible }).contains("at least 1"));
    }
}
