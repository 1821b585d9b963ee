//! Processes that begin at the same moment.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::{Clock, Moment};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use super::locker::{self, Locker};
use super::notebook::{Desk, Notebook, Page, Slate};
use super::{Crowd, Failure, Orders, Stage, Way};
use crate::bench::tally::{STEADY_FROM, SentTallies, Tallies, Tally};

/// The processes of one turn, ready to begin.
pub(super) struct Crew(Vec<Member>);

struct Member {
    process: Child,
    says: Lines<BufReader<ChildStdout>>,
    hears: ChildStdin,
}

impl Crew {
    /// Starts the processes, and returns when all are connected.
    pub(super) async fn muster(
        stage: &Stage,
        way: Way,
        crowd: Crowd,
        length: Duration,
        notebook: &Path,
    ) -> Result<Self, Failure> {
        let mut crew = Vec::new();
        for orders in Orders::for_each_process(stage, way, crowd, length, notebook) {
            crew.push(Member::start(
                &stage.program,
                threads_for_each(crowd),
                &serde_json::to_string(&orders)?,
            )?);
        }
        for member in &mut crew {
            member.hear("ready").await?;
        }
        Ok(Self(crew))
    }

    /// Lets them begin, and adds up what they did.
    pub(super) async fn work(mut self) -> Result<Tallies, Failure> {
        for member in &mut self.0 {
            member.hears.write_all(b"go\n").await?;
        }
        let mut tallies = Tallies::new()?;
        for member in &mut self.0 {
            let line = member.says.next_line().await?.ok_or("a process of the crew ended too early")?;
            tallies.add_sent(&serde_json::from_str(&line)?)?;
            member.process.wait().await?;
        }
        Ok(tallies)
    }
}

/// The cores are shared out among the processes: each is as big as it could be on a machine of its own.
fn threads_for_each(crowd: Crowd) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / crowd.processes).max(1)
}

impl Member {
    fn start(program: &Path, threads: usize, orders: &str) -> Result<Self, Failure> {
        let mut process = Command::new(program)
            .args(["bench", "lock-crew", &threads.to_string(), orders])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(hears), Some(says)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process without pipes".into());
        };
        Ok(Self { process, says: BufReader::new(says).lines(), hears })
    }

    async fn hear(&mut self, expected: &str) -> Result<(), Failure> {
        match self.says.next_line().await? {
            Some(line) if line == expected => Ok(()),
            other => Err(format!("a process of the crew said {other:?} instead of {expected:?}").into()),
        }
    }
}

/// The life of one process of the crew: connects, says `ready`, waits for `go`, works, says what it did.
pub(in crate::bench) async fn serve_in_crew(orders: &str) -> Result<(), Failure> {
    let orders: Orders = serde_json::from_str(orders)?;
    let notebook = Notebook::open(&orders.notebook)?;
    let desk = Arc::new(match orders.crowd.processes {
        1 => Desk::Own(notebook, Slate::default()),
        _ => Desk::Shared(notebook),
    });
    let lockers = locker::lockers(&orders).await?;
    println!("ready");
    let mut go = String::new();
    std::io::stdin().read_line(&mut go)?;
    let tallies = work(lockers, &orders, &desk).await?;
    desk.close()?;
    println!("{}", serde_json::to_string(&SentTallies::from(&tallies))?);
    Ok(())
}

async fn work(lockers: Vec<Locker>, orders: &Orders, desk: &Arc<Desk>) -> Result<Tallies, Failure> {
    let clock = Clock::system();
    let start = clock.monotonic();
    let (steady_from, end) = (start + orders.length.mul_f64(STEADY_FROM), start + orders.length);
    let mut working = JoinSet::new();
    for locker in lockers {
        let (clock, hold, desk) = (clock.clone(), orders.crowd.hold, Arc::clone(desk));
        let shift = Shift { clock, steady_from, end, hold, desk };
        let takes_notes = orders.crowd.is_contended && orders.way != Way::Raw;
        working.spawn(shift.work(locker, takes_notes));
    }
    let mut tallies = Tallies::new()?;
    while let Some(tally) = working.join_next().await {
        tallies.add(&tally??)?;
    }
    Ok(tallies)
}

struct Shift {
    clock: Clock,
    steady_from: Moment,
    end: Moment,
    hold: Duration,
    desk: Arc<Desk>,
}

impl Shift {
    async fn work(self, mut locker: Locker, takes_notes: bool) -> Result<Tally, Failure> {
        let mut tally = Tally::new()?;
        loop {
            let asked_at = self.clock.monotonic();
            if asked_at >= self.end {
                return Ok(tally);
            }
            locker.lock().await?;
            let got_at = self.clock.monotonic();
            tally.latencies.record(nanos_between(asked_at, got_at))?;
            let page = if takes_notes { self.desk.read()? } else { Page::default() };
            if page.released_at > 0 {
                tally.gaps.record(got_at.as_nanos().saturating_sub(page.released_at))?;
            }
            if !self.hold.is_zero() {
                tokio::time::sleep(self.hold).await;
            }
            let released_at = self.clock.monotonic();
            tally.held_nanos += nanos_between(got_at, released_at);
            if takes_notes {
                self.desk.write(Page { counter: page.counter + 1, released_at: released_at.as_nanos() })?;
            }
            locker.unlock().await?;
            tally.operations += 1;
            tally.steady_operations += u64::from((self.steady_from..self.end).contains(&released_at));
            // A lock that is passed on inside a process may never have to wait.
            tokio::task::coop::consume_budget().await;
        }
    }
}

fn nanos_between(earlier: Moment, later: Moment) -> u64 {
    later.as_nanos().saturating_sub(earlier.as_nanos())
}
