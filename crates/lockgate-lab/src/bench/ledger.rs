//! Writing the ledger: how many rows, how far behind, and at whose cost.
//!
//! ```text
//! database   where the rows go: a server of our own, or a schema of our own in somebody's
//! journal    where they come from: a coupon, issued in batches
//! rows       rows a second: the limit, what people write, ours
//! pace       how far behind at a steady rate; how long for a million
//! crowd      what a crowd of buyers notices of a writer beside it
//! ```
//!
//! A database that the bench starts waits for its disk, as in production.

use std::io;
use std::time::Duration;

use super::command_count::CommandCounter;
use super::frame::{Case, Pace, run_case};
use super::report::{Bar, Figure, Report, Spread};
use super::slice::Slice;
use super::{BenchOptions, Failure};

mod crowd;
mod database;
mod journal;
mod pace;
mod rows;

use self::database::Database;

/// What to write.
#[derive(Clone, Debug)]
pub struct LedgerPoint {
    /// The database: a URL, or `postgres`, `mysql` or `sqlite` for one of our own.
    pub database: Option<String>,
    /// How many rows in each turn; everything else is as large in proportion.
    pub rows: u64,
}

/// So many callers buy at once where the cost to them is measured.
const CALLERS: usize = 1_000;

pub(super) async fn measure(
    redis: &str,
    point: &LedgerPoint,
    options: &BenchOptions,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let database = Database::open(point.database.as_deref()).await?;
    let measured = measure_on(&database, redis, point.rows, options, counter).await;
    database.leave().await?;
    measured
}

async fn measure_on(
    database: &Database,
    redis: &str,
    rows: u64,
    options: &BenchOptions,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let mut report = Report::new(options.json, io::stdout());
    let mut figures = Vec::new();

    // A turn ends when its rows are written, not after a time.
    let as_long_as_it_takes = Pace::new(Duration::ZERO, options.rounds);
    let case = rows::case(database, redis, rows);
    let rounds = run_case(&case, &as_long_as_it_takes, counter, &mut report).await?;
    figures.extend(rows_figures(database, &case, &rounds));

    figures.extend(pace::lag(database, redis, rows).await?);
    figures.push(pace::drain(database, redis, rows * 5).await?);

    let pace = Pace::new(Duration::try_from_secs_f64(options.seconds)?, options.rounds);
    let case = crowd::case(database, redis);
    let rounds = run_case(&case, &pace, counter, &mut report).await?;
    figures.push(Figure {
        name: "grants/s with a writer at work, of those without",
        value: ratio(&rounds, 1),
        bar: Some(Bar::AtLeast(0.9)),
    });

    report.figures(&figures)?;
    report.finish()?;
    Ok(())
}

fn rows_figures(database: &Database, case: &Case<'_>, rounds: &[Vec<Slice>]) -> [Figure; 2] {
    let (ours, bars) = (case.contenders.len() - 1, database.bars());
    let per_second = Spread::of(rounds.iter().map(|slices| slices[ours].per_second)).median;
    [
        Figure { name: "rows/s", value: per_second, bar: bars.per_second.map(Bar::AtLeast) },
        Figure {
            name: "rows/s, of the limit",
            value: ratio(rounds, ours),
            bar: bars.of_limit.map(Bar::AtLeast),
        },
    ]
}

fn ratio(rounds: &[Vec<Slice>], place: usize) -> f64 {
    Spread::of(rounds.iter().map(|slices| slices[place].per_second / slices[0].per_second)).median
}
