//! Standing in line: entering, asking for the position, and what a long line costs.
//!
//! ```text
//! hall       a line with people in it
//! enter      entering: a sorted set by the time of arrival, as people write it; ours
//! position   asking where one stands: ZRANK; ours
//! size       the same at a thousand waiting and at all
//! longest    for how long one script keeps everybody else from the server, at all waiting
//! watchers   what it costs that many watch
//! ```
//!
//! The first contender of each case is what the others are measured against.

use std::io;
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;

use super::command_count::CommandCounter;
use super::frame::{Case, Pace, run_case};
use super::report::{Bar, Figure, Report, Spread};
use super::slice::Slice;
use super::{BenchOptions, Failure, NAMESPACE, remove_our_keys};

mod enter;
mod hall;
mod longest;
mod position;
mod size;
mod watchers;

use self::longest::Watchman;

/// How long a line, and how many at once.
#[derive(Clone, Copy, Debug)]
pub struct LinePoint {
    /// How many wait in the long line; everything else is as large in proportion.
    pub people: u64,
    /// How many ask at once.
    pub tasks: usize,
}

impl LinePoint {
    /// A tenth of them wait where positions are asked for: more would only take longer to fill.
    fn people_asking(&self) -> u64 {
        (self.people / 10).max(1_000)
    }

    fn watchers(&self) -> u64 {
        (self.people / 100).max(100)
    }
}

/// What is measured, where, and how.
struct Stage<'a> {
    redis: &'a str,
    point: LinePoint,
    pace: Pace,
    counter: &'a CommandCounter,
    watchman: Watchman,
}

pub(super) async fn measure(
    redis: &str,
    point: LinePoint,
    options: &BenchOptions,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let pace = Pace::new(Duration::try_from_secs_f64(options.seconds)?, options.rounds);
    let watchman = Watchman::at(redis, options.redis.is_none()).await?;
    let stage = Stage { redis, point, pace, counter, watchman };
    let mut report = Report::new(options.json, io::stdout());
    let mut figures = Vec::new();

    let case = enter::case(redis, point.tasks).await?;
    figures.extend(enter_figures(&stage.run(&case, &mut report).await?));
    let case = position::case(redis, point).await?;
    figures.extend(position_figures(&stage.run(&case, &mut report).await?));
    drop(case);
    remove_our_keys(redis).await?;

    figures.extend(size::measure(&stage, &mut report).await?);
    remove_our_keys(redis).await?;
    figures.extend(longest::measure_early(&stage).await?);
    remove_our_keys(redis).await?;
    figures.extend(watchers::measure(&stage, Duration::try_from_secs_f64(options.seconds)?).await?);

    report.figures(&figures)?;
    report.finish()?;
    Ok(())
}

impl Stage<'_> {
    async fn run(
        &self,
        case: &Case<'_>,
        report: &mut Report<impl io::Write>,
    ) -> Result<Vec<Vec<Slice>>, Failure> {
        run_case(case, &self.pace, self.counter, report).await
    }
}

fn enter_figures(rounds: &[Vec<Slice>]) -> [Figure; 2] {
    let times = |place, of| speed(rounds, place, of);
    [
        Figure {
            name: "entries/s, times those of three commands each",
            value: times(enter::OURS, enter::THREE_COMMANDS),
            bar: Some(Bar::AtLeast(5.0)),
        },
        Figure {
            name: "entries/s, times those of the three in a pipeline",
            value: times(enter::OURS, enter::PIPELINE),
            bar: None,
        },
    ]
}

fn position_figures(rounds: &[Vec<Slice>]) -> [Figure; 2] {
    [
        Figure {
            name: "positions/s at a glance, times those by ZRANK",
            value: speed(rounds, position::GLANCES, position::ZRANK),
            bar: Some(Bar::AtLeast(5.0)),
        },
        Figure {
            name: "positions/s, each asked of Redis, times those by ZRANK",
            value: speed(rounds, position::SHOWN, position::ZRANK),
            bar: None,
        },
    ]
}

/// How many times as fast one contender is as another: per round, then the median.
fn speed(rounds: &[Vec<Slice>], place: usize, of: usize) -> f64 {
    Spread::of(rounds.iter().map(|slices| slices[place].per_second / slices[of].per_second)).median
}

async fn gate_at(url: &str) -> Result<Gate, Failure> {
    Ok(Gate::open_with(url, &config()).await?)
}

fn config() -> Config {
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    config
}
