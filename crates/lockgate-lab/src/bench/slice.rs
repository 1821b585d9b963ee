//! One contender's turn.

use std::time::Duration;

use hdrhistogram::Histogram;
use lockgate::clock::{Clock, Moment};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Failure;
use super::command_count::{CommandCounter, Effort};
use super::frame::{Contender, Worker};

/// What one turn came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Slice {
    pub(super) operations: u64,
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
    /// Commands that clients sent, per operation; `None` when the contender does not talk to Redis.
    pub(super) client_commands: Option<f64>,
    /// Microseconds that the server worked, per operation; likewise.
    pub(super) server_us: Option<f64>,
    /// Operations of the task that got the fewest, divided by those of the one that got the most.
    pub(super) fairness: f64,
    /// How long the yardstick took just before.
    pub(super) yardstick_us: f64,
}

/// What one worker did.
struct Tally {
    operations: u64,
    /// Nanoseconds per call.
    latencies: Histogram<u64>,
}

pub(super) async fn measure_slice(
    contender: &dyn Contender,
    tasks: usize,
    length: Duration,
    yardstick_us: f64,
    counter: &CommandCounter,
) -> Result<Slice, Failure> {
    let clock = Clock::system();
    let commands_before = counter.read().await?;
    let start = clock.monotonic();
    let mut workers = JoinSet::new();
    for number in 0..tasks {
        workers.spawn(work_until(contender.worker(number), clock.clone(), start + length));
    }
    let mut tallies = Vec::with_capacity(tasks);
    while let Some(tally) = workers.join_next().await {
        tallies.push(tally??);
    }
    let elapsed = clock.monotonic().since(start);
    let effort = counter.read().await?.since(&commands_before, contender.client_commands());
    summarize(&tallies, elapsed, yardstick_us, (!contender.client_commands().is_empty()).then_some(effort))
}

async fn work_until(mut worker: Box<dyn Worker>, clock: Clock, end: Moment) -> Result<Tally, Failure> {
    let mut tally = Tally { operations: 0, latencies: Histogram::new(3)? };
    let mut before = clock.monotonic();
    while before < end {
        tally.operations += worker.work().await?;
        let after = clock.monotonic();
        tally.latencies.record(u64::try_from(after.since(before).as_nanos())?)?;
        // An embedded store never waits; without this, the first tasks would keep the others from the cores.
        tokio::task::coop::consume_budget().await;
        before = clock.monotonic();
    }
    Ok(tally)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
fn summarize(
    tallies: &[Tally],
    elapsed: Duration,
    yardstick_us: f64,
    effort: Option<Effort>,
) -> Result<Slice, Failure> {
    let mut latencies = Histogram::<u64>::new(3)?;
    for tally in tallies {
        latencies.add(&tally.latencies)?;
    }
    let operations: u64 = tallies.iter().map(|tally| tally.operations).sum();
    let fewest = tallies.iter().map(|tally| tally.operations).min().unwrap_or(0);
    let most = tallies.iter().map(|tally| tally.operations).max().unwrap_or(0);
    let per_operation = |figure: u64| figure as f64 / operations.max(1) as f64;
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    Ok(Slice {
        operations,
        per_second: operations as f64 / elapsed.as_secs_f64(),
        p50_us: micros(latencies.value_at_quantile(0.5)),
        p99_us: micros(latencies.value_at_quantile(0.99)),
        max_us: micros(latencies.max()),
        client_commands: effort.map(|effort| per_operation(effort.calls)),
        server_us: effort.map(|effort| per_operation(effort.server_us)),
        fairness: fewest as f64 / most.max(1) as f64,
        yardstick_us,
    })
}
