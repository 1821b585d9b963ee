//! What it costs that many watch in one process: their positions change with every tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::line::{LineTerms, Ticket, Watch};
use tokio::task::JoinSet;

use super::hall::Hall;
use super::{Stage, config};
use crate::bench::Failure;
use crate::bench::report::{Bar, Figure};
use crate::bench::stock::new_users;

/// How often they hear where they stand.
const TICK: Duration = Duration::from_millis(250);

/// How many are admitted each time: none of those who watch.
const BATCH: u32 = 5;

pub(super) async fn measure(stage: &Stage<'_>, length: Duration) -> Result<Vec<Figure>, Failure> {
    let ticks = u64::try_from(length.as_nanos() / TICK.as_nanos())?.max(4);
    let mut config = config();
    config.line_tick = TICK;
    let gate = Gate::open_with(stage.redis, &config).await?;
    let mut tickets = full_of_watchers(&gate, stage.point.watchers(), ticks).await?;
    let told = Arc::new(AtomicU64::new(0));
    let mut observer = tickets.pop().ok_or("nobody watches")?.watch();
    observer.next().await?;
    let mut watching = JoinSet::new();
    for ticket in tickets {
        watching.spawn(watch(ticket.watch(), Arc::clone(&told)));
    }
    let watchers = watching.len() as u64;
    while told.load(Ordering::SeqCst) < watchers {
        tokio::time::sleep(TICK / 10).await;
    }
    let counted = count(stage, &mut observer, ticks, &told, watchers).await;
    watching.shutdown().await;
    gate.shutdown().await;
    counted
}

/// A line in which those stand first who do not watch, as many as will be admitted and more.
async fn full_of_watchers(gate: &Gate, watchers: u64, ticks: u64) -> Result<Vec<Ticket>, Failure> {
    let mut hall = Hall::open(gate, "watched", &LineTerms::new(BATCH, TICK)?).await?;
    // Entering all of them takes a while, too, in which the line goes on.
    hall.line.pause().await?;
    hall.fill(new_users(u64::from(BATCH) * (ticks + 100) * 2)).await?;
    let people: Vec<_> = new_users(watchers).collect();
    hall.fill(people.iter().cloned()).await?;
    let tickets = hall.tickets_of(&people).await?;
    hall.line.resume().await?;
    Ok(tickets)
}

async fn watch(mut watch: Watch, told: Arc<AtomicU64>) -> Result<(), Failure> {
    while watch.next().await?.is_some() {
        told.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Counts from one tick to another, so many ticks later: one who watches hears of each.
#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
async fn count(
    stage: &Stage<'_>,
    observer: &mut Watch,
    ticks: u64,
    told: &AtomicU64,
    watchers: u64,
) -> Result<Vec<Figure>, Failure> {
    // What was missed meanwhile is told first.
    observer.next().await?;
    observer.next().await?;
    let (calls, told_before) = (stage.counter.read().await?, told.load(Ordering::SeqCst));
    for _ in 0..ticks {
        observer.next().await?;
    }
    let effort = stage.counter.read().await?.since(&calls, &["eval", "evalsha"]);
    let told = told.load(Ordering::SeqCst) - told_before;
    Ok(vec![
        Figure {
            name: "watchers in one process: store calls per tick",
            value: effort.calls as f64 / ticks as f64,
            bar: Some(Bar::AtMost(1.0)),
        },
        Figure {
            name: "watchers in one process: times each was told, per tick",
            value: told as f64 / (watchers * ticks) as f64,
            bar: None,
        },
        Figure { name: "watchers in one process: how many", value: watchers as f64, bar: None },
    ])
}
