//! What happens to a line when processes, networks, servers and clocks fail.
//!
//! **Promise:** the processes are real, and so is what is done to them: people of several processes enter, look, watch, leave, finish
//! and vanish, while whoever lets the line go on is killed, stopped and cut off, Redis is killed with its data on disk, and clocks are
//! set by an hour. What everybody saw goes to a judge that knows only the promise: admitted in the order of arrival, without those
//! who left or were not there; nobody twice, nobody lost, never more than so many at once, never more than so many in any
//! stretch of the time of a batch ([`lockgate::testing::history`]). And the line goes on within a stated time after the last fault.
//!
//! **Not promised:** that the clock of the *machine* is set. On Redis the line's note of the server's time at its last call is moved
//! instead, between two calls: the same difference for the script, which knows nothing else of the past. The embedded store has
//! a clock of its own that is set.
//!
//! ```text
//! hall        one run: a Redis, a line, processes, an auditor who looks all the time, the judge
//! people      a process full of them; orders: what it is told
//! scenes      what is done to them
//! embedded    the same on the embedded store, with its clock
//! ```

use std::time::Duration;

use comfy_table::{Table, presets};
use lockgate::clock::Clock;
use serde::Serialize;

mod embedded;
mod hall;
mod orders;
mod people;
mod scenes;

use self::hall::Hall;
pub use self::orders::PeopleOrders;
pub use self::people::live;
use super::{Failure, Site};

/// What is done to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineScenario {
    /// Two processes let it go on, then five: nothing else happens, and nobody who is there is passed over.
    ManyTick,
    /// Processes are killed at random moments, and replaced.
    TickerKilled,
    /// Redis is killed, and comes back with its data.
    ServerRestarted,
    /// Replies are lost, connections cut.
    RepliesLost,
    /// A process is stopped for longer than the grace period: only its own people are passed over.
    ProcessPaused,
    /// All are: in that time nobody could be seen, so nobody is passed over.
    EverybodyPaused,
    /// The clock of Redis is set by an hour, forward and back.
    ClockSet,
    /// The clock of the embedded store is.
    EmbeddedClockSet,
    /// Everything at once.
    Storm,
}

impl LineScenario {
    /// All of them.
    pub const ALL: [LineScenario; 9] = [
        LineScenario::ManyTick,
        LineScenario::TickerKilled,
        LineScenario::ServerRestarted,
        LineScenario::RepliesLost,
        LineScenario::ProcessPaused,
        LineScenario::EverybodyPaused,
        LineScenario::ClockSet,
        LineScenario::EmbeddedClockSet,
        LineScenario::Storm,
    ];

    /// What it is called on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LineScenario::ManyTick => "many-tick",
            LineScenario::TickerKilled => "ticker-killed",
            LineScenario::ServerRestarted => "server-restarted",
            LineScenario::RepliesLost => "replies-lost",
            LineScenario::ProcessPaused => "process-paused",
            LineScenario::EverybodyPaused => "everybody-paused",
            LineScenario::ClockSet => "clock-set",
            LineScenario::EmbeddedClockSet => "embedded-clock-set",
            LineScenario::Storm => "line-storm",
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct LineOutcome {
    /// What was done.
    pub scenario: &'static str,
    /// With this seed.
    pub seed: u64,
    /// How many faults were injected.
    pub faults: u64,
    /// How many operations were judged.
    pub operations: u64,
    /// How many places were followed to their end.
    pub places: u64,
    /// How many admissions were counted in time.
    pub admissions: u64,
    /// Broken promises.
    pub violations: Vec<String>,
}

/// Does one run.
///
/// # Errors
///
/// When a service or a process cannot be started. A broken promise is no error, but part of the outcome.
pub async fn run_line(site: &Site, scenario: LineScenario, seed: u64) -> Result<LineOutcome, Failure> {
    if scenario == LineScenario::EmbeddedClockSet {
        return embedded::clock_set(seed).await;
    }
    let mut hall = Hall::open(site, seed).await?;
    let ended = scenes::play(scenario, &mut hall).await;
    hall.judge(scenario, seed, ended).await
}

/// What to do and for how long.
#[derive(Clone, Debug)]
pub struct LinePlan {
    /// At least one round of all scenarios is done, however short this is.
    pub time: Duration,
    /// The first run has this seed, every other one the next.
    pub seed: u64,
    /// Only this scenario.
    pub only: Option<LineScenario>,
    /// JSON lines instead of a table.
    pub json: bool,
}

/// Does run after run until the time is over. Says whether all promises were kept.
///
/// # Errors
///
/// When a run cannot be done.
pub async fn perform_lines(site: &Site, plan: &LinePlan) -> Result<bool, Failure> {
    let scenarios = plan.only.map_or(LineScenario::ALL.to_vec(), |only| vec![only]);
    let clock = Clock::system();
    let began = clock.monotonic();
    let mut seed = plan.seed;
    let mut outcomes = Vec::new();
    loop {
        for scenario in &scenarios {
            let outcome = run_line(site, *scenario, seed).await;
            let outcome = outcome.map_err(|why| format!("{} --seed {seed}: {why}", scenario.name()))?;
            outcome.print(plan.json)?;
            outcomes.push(outcome);
            seed = seed.wrapping_add(1);
        }
        if clock.monotonic().since(began) >= plan.time {
            if !plan.json {
                println!("\n{}", table(&outcomes));
            }
            return Ok(outcomes.iter().all(|outcome| outcome.violations.is_empty()));
        }
    }
}

impl LineOutcome {
    fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let Self { scenario, seed, faults, operations, violations, .. } = self;
        let found = violations.len();
        println!("{scenario} --seed {seed}: {faults} faults, {operations} operations, {found} violations");
        for violation in violations {
            println!("  - {violation}");
        }
        Ok(())
    }
}

fn table(outcomes: &[LineOutcome]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["scenario", "runs", "faults", "operations judged", "places followed", "violations"]);
    let names = LineScenario::ALL.map(LineScenario::name);
    for name in names.iter().map(|name| Some(*name)).chain([None]) {
        let of_it: Vec<_> =
            outcomes.iter().filter(|outcome| name.is_none_or(|name| name == outcome.scenario)).collect();
        let sum = |figure: fn(&LineOutcome) -> u64| {
            of_it.iter().map(|outcome| figure(outcome)).sum::<u64>().to_string()
        };
        if !of_it.is_empty() {
            table.add_row([
                name.unwrap_or("in all").to_owned(),
                of_it.len().to_string(),
                sum(|outcome| outcome.faults),
                sum(|outcome| outcome.operations),
                sum(|outcome| outcome.places),
                sum(|outcome| outcome.violations.len() as u64),
            ]);
        }
    }
    table
}
