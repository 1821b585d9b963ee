//! What waiting costs: the usual estimate beside what is measured.
//!
//! One holds the lock for a time L while W wait. Who asks again every b asks about W·⌈L/b⌉ times in all, and whoever
//! gets the lock gets it about b/2 after it became free. Who is told needs none of this.

use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::{Clock, Moment};
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::locker::{self, Locker};
use super::{Crowd, Orders, Way};
use crate::bench::Failure;
use crate::bench::command_count::CommandCounter;

/// W, L and b of each point.
const POINTS: [(usize, Duration); 4] = [
    (10, Duration::from_millis(200)),
    (10, Duration::from_millis(500)),
    (100, Duration::from_millis(200)),
    (100, Duration::from_millis(500)),
];

const RETRY_EVERY: Duration = Duration::from_millis(50);

/// One way to wait, at one point.
#[derive(Debug, Serialize)]
struct Cost {
    way: &'static str,
    waiters: usize,
    held_ms: u128,
    /// Commands that were sent while the lock was held, by all waiters.
    commands: f64,
    /// What the model says, for who asks again and again.
    commands_by_the_model: Option<f64>,
    /// From the release to the first waiter who has the lock.
    delay_ms: f64,
    delay_ms_by_the_model: Option<f64>,
}

pub(in crate::bench) async fn measure(
    redis: &str,
    rounds: u32,
    as_json: bool,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    if !as_json {
        println!(
            "| how | waiters W | held L | commands while waiting | W·⌈L/b⌉ | delay after the release | b/2 |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- |");
    }
    for (waiters, held) in POINTS {
        for way in [Way::Every50Ms, Way::Spin, Way::Notify, Way::HandOff] {
            let cost = cost_of(redis, way, waiters, held, rounds, counter).await?;
            cost.print(as_json)?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
async fn cost_of(
    redis: &str,
    way: Way,
    waiters: usize,
    held: Duration,
    rounds: u32,
    counter: &CommandCounter,
) -> Result<Cost, Failure> {
    let (mut commands, mut retries, mut delay) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        // The release falls anywhere between two retries.
        let held = held + RETRY_EVERY.mul_f64(f64::from(round) / f64::from(rounds));
        let one = wait_once(redis, way, waiters, held, counter).await?;
        commands += one.0;
        retries += held.as_nanos().div_ceil(RETRY_EVERY.as_nanos()) * waiters as u128;
        delay += one.1;
    }
    let is_modelled = way == Way::Every50Ms;
    Ok(Cost {
        way: way.name(),
        waiters,
        held_ms: held.as_millis(),
        commands: commands as f64 / f64::from(rounds),
        commands_by_the_model: is_modelled.then_some(retries as f64 / f64::from(rounds)),
        delay_ms: delay.as_secs_f64() * 1_000.0 / f64::from(rounds),
        delay_ms_by_the_model: is_modelled.then_some(RETRY_EVERY.as_secs_f64() * 500.0),
    })
}

/// Everybody waits for one who holds the lock. Returns the commands sent meanwhile, and how late the first one was.
async fn wait_once(
    redis: &str,
    way: Way,
    waiters: usize,
    held: Duration,
    counter: &CommandCounter,
) -> Result<(u64, Duration), Failure> {
    let clock = Clock::system();
    let crowd = Crowd { processes: 1, tasks: waiters + 1, hold: Duration::ZERO, is_contended: true };
    let (redis, length, notebook) = (redis.to_owned(), Duration::ZERO, "".into());
    let orders = Orders { redis, way, crowd, length, notebook, process: 0 };
    let mut lockers = locker::lockers(&orders).await?;
    let mut holder = lockers.pop().ok_or("nobody to hold the lock")?;
    holder.lock().await?;
    let all_there = Arc::new(Barrier::new(waiters + 1));
    let mut waiting = JoinSet::new();
    for locker in lockers {
        waiting.spawn(wait(locker, clock.clone(), Arc::clone(&all_there)));
    }
    let before = counter.read().await?;
    all_there.wait().await;
    tokio::time::sleep(held).await;
    let commands = counter.read().await?.since(&before, way.client_commands()).calls;
    let released_at = clock.monotonic();
    holder.unlock().await?;
    let mut first = None;
    while let Some(got_at) = waiting.join_next().await {
        let got_at: Moment = got_at??;
        first = Some(first.map_or(got_at, |first: Moment| first.min(got_at)));
    }
    Ok((commands, first.map_or(Duration::ZERO, |first| first.since(released_at))))
}

async fn wait(mut locker: Locker, clock: Clock, all_there: Arc<Barrier>) -> Result<Moment, Failure> {
    all_there.wait().await;
    locker.lock().await?;
    let got_at = clock.monotonic();
    locker.unlock().await?;
    Ok(got_at)
}

impl Cost {
    fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let Self { way, waiters, held_ms, commands, delay_ms, .. } = self;
        let model = self.commands_by_the_model.map_or("–".to_owned(), |commands| format!("{commands:.0}"));
        let half = self.delay_ms_by_the_model.map_or("–".to_owned(), |delay| format!("{delay:.0} ms"));
        println!(
            "| {way} | {waiters} | {held_ms} ms | {commands:.0} | {model} | {delay_ms:.2} ms | {half} |"
        );
        Ok(())
    }
}
