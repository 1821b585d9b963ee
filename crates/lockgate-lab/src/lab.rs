//! The lab: every strategy of the field side by side, with the truth about each.
//!
//! **Promise:** a crowd of users wants one of something limited, all at once, and each strategy serves it against real servers:
//! real transactions, real Redis, real processes, nothing simulated. Each run is judged by an auditor who knows only what users
//! were told and what the database holds in the end. Each strategy says beforehand what it claims, and [`run`] tells loudly when
//! claim and finding differ: a correct one that was wrong once, and a wrong one that did not show it.
//!
//! **Not promised:** that a strategy which is exact here is exact for ever. A race that did not show in these rounds may show in
//! others; what is claimed to be exact is so by its construction, which its file explains.
//!
//! ```text
//! strategy      what a strategy is; strategies/ has one file for each, with the reasoning in its header
//!   work        what all of them do inside: read, check, write
//!   shop        the database as they see it; session has its statements
//!   redis_link  Redis as they see it
//! stage         the servers, ours or the user's
//! conductor     plays the rounds
//!   crew        the processes that serve users; actor is one's part, victim is somebody who dies
//! audit         says what went wrong
//! claim         compares it with what was claimed
//! report        what a run found: what table, JSON and charts are made from
//! table         for the terminal
//! html          for people: one page, with the pictures of charts
//! cost          what waiting for a lock costs, by the usual estimate and measured
//! verdict       right or wrong, in a symbol, a word and a colour
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use lockgate::clock::Clock;

mod actor;
pub mod audit;
mod charts;
pub mod claim;
mod conductor;
pub mod cost;
mod crew;
mod html;
mod machine;
mod options;
mod redis_link;
pub mod report;
#[cfg(test)]
mod sample;
mod session;
mod shop;
mod stage;
mod strategies;
mod strategy;
mod table;
mod verdict;
mod victim;
mod work;

pub use self::charts::{Chart, charts};
use self::conductor::Conductor;
use self::crew::Crew;
pub use self::html::html;
use self::report::{Conditions, Report, Skipped, Tried};
use self::stage::Stage;
use self::strategy::Strategy;
pub use self::table::table;

/// What a run may end with.
type Failure = Box<dyn Error + Send + Sync>;

/// How to run the lab.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// How many want one.
    pub users: u64,
    /// How many there are.
    pub stock: u64,
    /// Over how many processes the users are spread.
    pub processes: usize,
    /// Which strategies; all when empty.
    pub strategies: Vec<String>,
    /// The Redis to use; one of our own when there is none.
    pub redis: Option<String>,
    /// The database to use, or `postgres`, `mysql` or `sqlite`, to have one started.
    pub database: Option<String>,
    /// How often each strategy is tried; up to ten times as often while a failure that it claims has not shown.
    pub rounds: u32,
    /// Other sizes of the crowd at which it is tried once each.
    pub growth: Vec<u64>,
    /// After how long without an answer for anybody those who are left count as stuck.
    pub limit: Duration,
    /// How many are served at the same time, over all processes.
    pub in_flight: usize,
    /// The program that was started: it is started again for other processes.
    pub program: PathBuf,
}

/// What happens during a run, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something to know: a server that is missing, what is used instead.
    Note(String),
    /// A strategy is left out.
    Skipped(&'a Skipped),
    /// The servers are there, and so many strategies will be tried.
    Begins {
        /// How many.
        strategies: usize,
    },
    /// A strategy's turn.
    Strategy {
        /// Its name.
        name: &'a str,
        /// The same in plain words.
        title: &'a str,
    },
    /// A round is over.
    Round {
        /// Whose.
        strategy: &'a str,
        /// The first is 1.
        number: u32,
    },
    /// A strategy has been tried.
    Tried(&'a Tried),
}

/// The names of all strategies, in the order of the report.
#[must_use]
pub fn strategy_names() -> Vec<&'static str> {
    strategy::all().iter().map(|strategy| strategy.name).collect()
}

/// Tries the strategies, and says what was found. Whether claims and findings agree is in the report.
///
/// # Errors
///
/// When the options make no sense, a server cannot be started or reached, or a strategy could not be carried out at all.
pub async fn run(options: &LabOptions, watch: &dyn Fn(Event<'_>)) -> Result<Report, Failure> {
    options.check()?;
    let clock = Clock::system();
    let (began, began_at) = (clock.monotonic(), clock.wall());
    let wanted = options.wanted()?;
    let stage = Stage::set(options, &wanted, &|note| watch(Event::Note(note))).await?;
    let (runnable, skipped) = share_out(&stage, wanted);
    for skipped in &skipped {
        watch(Event::Skipped(skipped));
    }
    watch(Event::Begins { strategies: runnable.len() });
    let tried = try_all(options, &stage, &runnable, watch).await;
    let report = tried.map(|strategies| Report {
        lockgate_version: env!("CARGO_PKG_VERSION").to_owned(),
        began_at_us: began_at.as_micros(),
        took_ms: report::millis(clock.monotonic().since(began)),
        machine: machine::this_one(),
        redis: stage.redis.clone(),
        database: stage.database.clone(),
        options: conditions(options, &stage),
        skipped,
        strategies,
    });
    // Whatever happened, what was made is removed; why it happened is the more important news.
    let cleared = stage.clear().await;
    let report = report?;
    cleared?;
    Ok(report)
}

async fn try_all(
    options: &LabOptions,
    stage: &Stage,
    strategies: &[&'static Strategy],
    watch: &dyn Fn(Event<'_>),
) -> Result<Vec<Tried>, Failure> {
    let crew = Crew::muster(&options.program, &stage.places(options.processes), options.processes).await?;
    let mut conductor = Conductor { stage, crew, options, program: &options.program, coupons: 0 };
    let mut all = Vec::new();
    for strategy in strategies {
        watch(Event::Strategy { name: strategy.name, title: strategy.title });
        match conductor.try_out(strategy, watch).await {
            Ok(tried) => {
                watch(Event::Tried(&tried));
                all.push(tried);
            }
            Err(why) => {
                conductor.crew.leave().await;
                return Err(why);
            }
        }
    }
    conductor.crew.leave().await;
    Ok(all)
}

/// Those that can run here, and the others with the reason.
fn share_out(stage: &Stage, wanted: Vec<&'static Strategy>) -> (Vec<&'static Strategy>, Vec<Skipped>) {
    let mut skipped = Vec::new();
    let mut runnable = Vec::new();
    for strategy in wanted {
        match stage.missing(strategy) {
            Some(why) => skipped.push(Skipped { strategy: strategy.name.to_owned(), why }),
            None => runnable.push(strategy),
        }
    }
    (runnable, skipped)
}

fn conditions(options: &LabOptions, stage: &Stage) -> Conditions {
    Conditions {
        users: options.users,
        stock: options.stock,
        processes: options.processes,
        rounds: options.rounds,
        growth: options.growth.clone(),
        in_flight: options.in_flight,
        connections: stage.connections(),
        limit_ms: report::millis(options.limit),
    }
}

/// What a process does that the lab has started to serve users.
///
/// # Errors
///
/// When what it is told makes no sense, or a server does not answer.
pub async fn serve_in_crew() -> Result<(), Failure> {
    crew::serve().await
}

/// What a process does that the lab has started to be killed.
///
/// # Errors
///
/// When what it is told makes no sense, or Redis does not answer.
pub async fn live_as_victim() -> Result<(), Failure> {
    victim::live().await
}
