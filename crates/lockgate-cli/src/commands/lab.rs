//! `lockgate lab`: every strategy of the field side by side, on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lockgate_lab::lab::report::Report;
use lockgate_lab::lab::{self, LabOptions};

use self::again::Again;
use self::cost::Cost;
use self::pages::{Pages, write};
use self::progress::Progress;
use super::{Outcome, print, runtime, runtime_of};

mod again;
mod cost;
mod pages;
mod progress;

/// Let a crowd take something limited by every strategy of the field, and see which ones lose updates, oversell or get stuck.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Lab {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    wishes: Wishes,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// What waiting for a lock costs, by the usual estimate and measured
    Cost(Cost),
    /// Make table, page and charts of what lab --json has written, without running anything
    Report(Again),
    /// A process that `lab --processes` starts
    #[command(hide = true)]
    Crew { threads: usize },
    /// A process that the lab starts and kills
    #[command(hide = true)]
    Victim { threads: usize },
}

#[derive(Debug, Args)]
struct Wishes {
    /// How many want one; without it 300, and 400 with several processes, as those that count by themselves are only caught when
    /// there is not enough for all
    #[arg(long, value_name = "N")]
    users: Option<u64>,

    /// How many there are
    #[arg(long, value_name = "N", default_value_t = 300)]
    stock: u64,

    /// Over how many processes the users are spread
    #[arg(long, value_name = "P", default_value_t = 1)]
    processes: usize,

    /// Only these strategies, by name
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    strategies: Vec<String>,

    /// The Redis to use; without it, a redis-server is started
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// The database to use; or postgres, mysql or sqlite, to have one started; without it, postgres if it is installed
    #[arg(long, value_name = "URL")]
    db: Option<String>,

    /// How often each strategy is tried; up to ten times as often while a failure that it claims has not shown
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// Crowds of these sizes too, once each, to see how the time grows; without it a quarter and a half of --users, and `none` for
    /// none
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    growth: Option<Vec<String>>,

    /// After how many seconds without an answer for anybody those who are left count as stuck
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    limit: f64,

    /// How many are served at the same time, over all processes; the others wait at the door
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    in_flight: u32,

    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    pages: Pages,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("write a number of seconds between 0.1 and 3600".into()),
    }
}

impl Lab {
    pub(crate) fn run(self) -> Outcome {
        match self.part {
            Some(Part::Cost(cost)) => return cost.run(),
            Some(Part::Report(again)) => return again.run(),
            Some(Part::Crew { threads }) => return runtime_of(threads)?.block_on(lab::serve_in_crew()),
            Some(Part::Victim { threads }) => return runtime_of(threads)?.block_on(lab::live_as_victim()),
            None => {}
        }
        let options = self.wishes.options()?;
        let progress = Progress::new(&options);
        let report = runtime()?.block_on(lab::run(&options, &|event| progress.show(&event)));
        progress.end();
        let report = report?;
        print(&lab::table(&report));
        self.wishes.write_files(&report)?;
        agreement(&report)
    }
}

impl Wishes {
    fn options(&self) -> Result<LabOptions, super::Failure> {
        let users = self.users.unwrap_or(if self.processes > 1 { 400 } else { 300 });
        Ok(LabOptions {
            users,
            stock: self.stock,
            processes: self.processes,
            strategies: self.strategies.clone(),
            redis: self.redis.clone(),
            database: self.db.clone(),
            rounds: self.rounds,
            growth: self.growth(users)?,
            limit: Duration::try_from_secs_f64(self.limit)?,
            in_flight: usize::try_from(self.in_flight)?,
            program: std::env::current_exe()?,
        })
    }

    fn growth(&self, users: u64) -> Result<Vec<u64>, super::Failure> {
        let Some(sizes) = &self.growth else {
            return Ok([users / 4, users / 2].into_iter().filter(|users| *users > 1).collect());
        };
        if sizes.iter().all(|size| size == "none") {
            return Ok(Vec::new());
        }
        let size = |size: &String| {
            let unreadable = |_| format!("--growth {size}: write numbers of users, or none");
            size.parse().map_err(unreadable)
        };
        Ok(sizes.iter().map(size).collect::<Result<_, String>>()?)
    }

    /// What was asked for beside the table.
    fn write_files(&self, report: &Report) -> Outcome {
        if let Some(file) = &self.json {
            write(file, &(serde_json::to_string_pretty(report)? + "\n"), "--json")?;
        }
        self.pages.write(report)
    }
}

/// A lab that finds something else than was claimed has failed, whoever was wrong.
fn agreement(report: &Report) -> Outcome {
    let wrong: Vec<_> = report
        .strategies
        .iter()
        .filter(|tried| !tried.finding.is_as_claimed)
        .map(|tried| tried.name.as_str())
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("CLAIM AND FINDING DIFFER for {}: see above for what was found", wrong.join(", ")).into())
}
