//! How far behind the ledger is while somebody sells at a steady rate, and how long it takes for a full journal.

use std::time::Duration;

use lockgate::clock::Clock;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::database::Database;
use super::journal::{BATCH, Journal};
use crate::bench::Failure;
use crate::bench::report::{Bar, Figure, Spread};

/// Grants a second.
const RATE: u64 = 40_000;

/// Between two looks at how far behind it is.
const SAMPLE: Duration = Duration::from_millis(20);

/// The bar for a million; less is expected sooner.
const SECONDS_FOR_A_MILLION: f64 = 20.0;

/// Sells at the rate for as long as the rows ask for (ten seconds for the usual number), with a writer at work.
pub(super) async fn lag(database: &Database, redis: &str, rows: u64) -> Result<[Figure; 3], Failure> {
    let batches = (rows * 2).max(RATE / 2) / BATCH;
    let selling = Journal::fresh(redis).await?;
    let watching = Journal::beside(redis).await?;
    let ledger = database.empty_ledger().await?;
    let writer = selling.start_writer(&ledger)?;
    let (tells, is_over) = watch::channel(false);
    let samples = tokio::spawn(watch_lag(watching, is_over));
    let sold = sell(selling, batches).await;
    tells.send_replace(true);
    let samples = samples.await??;
    writer.shutdown().await;
    let lag = Spread::of(samples.into_iter());
    Ok([
        Figure { name: "grants/s asked of the store: 40,000; made", value: sold?, bar: None },
        Figure { name: "behind meanwhile, median ms", value: lag.median, bar: None },
        Figure { name: "behind meanwhile, most ms", value: lag.max, bar: Some(Bar::AtMost(2_000.0)) },
    ])
}

/// Says how many grants a second it has made.
#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
async fn sell(mut journal: Journal, batches: u64) -> Result<f64, Failure> {
    let clock = Clock::system();
    let start = clock.monotonic();
    let mut pace = interval(Duration::from_nanos(1_000_000_000 * BATCH / RATE));
    // Who is late makes up for it: the rate is what counts.
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..batches {
        pace.tick().await;
        journal.issue(BATCH).await?;
    }
    Ok((batches * BATCH) as f64 / clock.monotonic().since(start).as_secs_f64())
}

/// In milliseconds.
async fn watch_lag(journal: Journal, is_over: watch::Receiver<bool>) -> Result<Vec<f64>, Failure> {
    let mut samples = Vec::new();
    while !*is_over.borrow() {
        let behind = journal.behind().await?.unwrap_or_default();
        samples.push(behind.as_secs_f64() * 1_000.0);
        tokio::time::sleep(SAMPLE).await;
    }
    Ok(samples)
}

/// Seconds until so many grants that wait in the journal are written.
#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
pub(super) async fn drain(database: &Database, redis: &str, grants: u64) -> Result<Figure, Failure> {
    let mut journal = Journal::fresh(redis).await?;
    journal.fill(grants).await?;
    let ledger = database.empty_ledger().await?;
    let clock = Clock::system();
    let start = clock.monotonic();
    let writer = journal.start_writer(&ledger)?;
    journal.drained().await?;
    let seconds = clock.monotonic().since(start).as_secs_f64();
    writer.shutdown().await;
    let bar = Bar::AtMost(SECONDS_FOR_A_MILLION * grants as f64 / 1_000_000.0);
    Ok(Figure {
        name: "seconds to write a full journal (1,000,000 grants unless --rows)",
        value: seconds,
        bar: Some(bar),
    })
}
