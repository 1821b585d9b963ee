//! One contender's turn.

use std::time::Duration;

use lockgate::clock::{Clock, Moment};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Failure;
use super::command_count::{CommandCounter, CommandCounts, Effort};
use super::frame::{Contender, Worker};
use super::tally::{STEADY_FROM, Tallies, Tally};

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
    /// What only locks have that are handed over.
    #[serde(flatten)]
    pub(super) hand_over: Option<HandOver>,
    /// How often two were where only one may be; `None` where nobody looked.
    pub(super) violations: Option<u64>,
    /// How long the yardstick took just before.
    pub(super) yardstick_us: f64,
}

/// From the call of a release to the next holder, and what was between two of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct HandOver {
    pub(super) gap_mean_us: f64,
    pub(super) gap_p50_us: f64,
    pub(super) gap_p99_us: f64,
    pub(super) gap_max_us: f64,
    pub(super) hold_mean_us: f64,
}

pub(super) async fn measure_slice(
    contender: &dyn Contender,
    tasks: usize,
    length: Duration,
    yardstick_us: f64,
    counter: &CommandCounter,
) -> Result<Slice, Failure> {
    let clock = Clock::system();
    contender.prepare(tasks, length).await?;
    let commands_before = counter.read().await?;
    let start = clock.monotonic();
    let (tallies, steady) = tokio::join!(contender.turn(tasks, length), steady_commands(counter, length));
    let (tallies, (steady_from, steady_to)) = (tallies?, steady?);
    let elapsed = tallies.seconds.unwrap_or(clock.monotonic().since(start).as_secs_f64());
    let commands = contender.client_commands();
    let (effort, operations) = match (tallies.effort, tallies.steady_operations) {
        (Some(effort), _) => (effort, tallies.operations()),
        (None, 0) => (counter.read().await?.since(&commands_before, commands), tallies.operations()),
        (None, steady) => (steady_to.since(&steady_from, commands), steady),
    };
    let effort = (!commands.is_empty()).then_some(PerOperation { effort, operations });
    Ok(summarize(&tallies, elapsed, yardstick_us, effort))
}

/// What the server was asked at the beginning and at the end of the steady part of a turn.
async fn steady_commands(
    counter: &CommandCounter,
    length: Duration,
) -> Result<(CommandCounts, CommandCounts), Failure> {
    let first = length.mul_f64(STEADY_FROM);
    tokio::time::sleep(first).await;
    let from = counter.read().await?;
    tokio::time::sleep(length - first).await;
    Ok((from, counter.read().await?))
}

/// What so many operations cost.
#[derive(Clone, Copy)]
struct PerOperation {
    effort: Effort,
    operations: u64,
}

/// Lets so many workers of this process work for so long.
pub(super) async fn work_in_tasks(
    workers: impl Iterator<Item = Box<dyn Worker>>,
    length: Duration,
) -> Result<Tallies, Failure> {
    let clock = Clock::system();
    let end = clock.monotonic() + length;
    let mut working = JoinSet::new();
    for worker in workers {
        working.spawn(work_until(worker, clock.clone(), end));
    }
    let mut tallies = Tallies::new()?;
    while let Some(tally) = working.join_next().await {
        tallies.add(&tally??)?;
    }
    Ok(tallies)
}

/// Lets so many workers of this process work so many times each.
pub(super) async fn work_so_often(
    workers: impl Iterator<Item = Box<dyn Worker>>,
    times: usize,
) -> Result<Tallies, Failure> {
    let clock = Clock::system();
    let mut working = JoinSet::new();
    for mut worker in workers {
        let clock = clock.clone();
        working.spawn(async move {
            let (mut tally, mut before) = (Tally::new()?, clock.monotonic());
            for _ in 0..times {
                before = work_once(worker.as_mut(), &clock, before, &mut tally).await?;
            }
            Ok::<_, Failure>(tally)
        });
    }
    let mut tallies = Tallies::new()?;
    while let Some(tally) = working.join_next().await {
        tallies.add(&tally??)?;
    }
    Ok(tallies)
}

async fn work_until(mut worker: Box<dyn Worker>, clock: Clock, end: Moment) -> Result<Tally, Failure> {
    let mut tally = Tally::new()?;
    let mut before = clock.monotonic();
    while before < end {
        before = work_once(worker.as_mut(), &clock, before, &mut tally).await?;
    }
    Ok(tally)
}

/// Answers the moment from which on the next time counts.
async fn work_once(
    worker: &mut dyn Worker,
    clock: &Clock,
    before: Moment,
    tally: &mut Tally,
) -> Result<Moment, Failure> {
    tally.operations += worker.work().await?;
    tally.latencies.record(u64::try_from(clock.monotonic().since(before).as_nanos())?)?;
    // An embedded store never waits; without this, the first tasks would keep the others from the cores.
    tokio::task::coop::consume_budget().await;
    Ok(clock.monotonic())
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
fn summarize(tallies: &Tallies, seconds: f64, yardstick_us: f64, effort: Option<PerOperation>) -> Slice {
    let operations = tallies.operations();
    let fewest = tallies.operations_of_each.iter().copied().min().unwrap_or(0);
    let most = tallies.operations_of_each.iter().copied().max().unwrap_or(0);
    let per_operation = |figure: u64| figure as f64 / operations.max(1) as f64;
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    let (latencies, gaps) = (&tallies.latencies, &tallies.gaps);
    let hand_over = (!gaps.is_empty()).then(|| HandOver {
        gap_mean_us: gaps.mean() / 1_000.0,
        gap_p50_us: micros(gaps.value_at_quantile(0.5)),
        gap_p99_us: micros(gaps.value_at_quantile(0.99)),
        gap_max_us: micros(gaps.max()),
        hold_mean_us: per_operation(tallies.held_nanos) / 1_000.0,
    });
    Slice {
        operations,
        per_second: operations as f64 / seconds,
        p50_us: micros(latencies.value_at_quantile(0.5)),
        p99_us: micros(latencies.value_at_quantile(0.99)),
        max_us: micros(latencies.max()),
        client_commands: effort.map(|cost| cost.effort.calls as f64 / cost.operations.max(1) as f64),
        server_us: effort.map(|cost| cost.effort.server_us as f64 / cost.operations.max(1) as f64),
        fairness: fewest as f64 / most.max(1) as f64,
        hand_over,
        violations: tallies.violations,
        yardstick_us,
    }
}
