//! The fault suite of locks and lines as a program: see [`lockgate_lab::faults`].

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use lockgate::clock::Clock;
use lockgate_lab::faults::{
    Cancellations, Failure, LinePlan, LineScenario, Mode as Caution, Orders, PeopleOrders, Plan, Policy,
    Scenario, Series, SeriesTable, Site, Topology, cancel, fail_over, live, perform, perform_lines, work,
};

/// Kills, stops, cuts off and confuses the users of a lock or of a line, and judges what they saw.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    mode: Option<Mode>,
    /// Goes on for so long; one round of all scenarios is always done.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The seed of the first run; by default, the time.
    #[arg(long)]
    seed: Option<u64>,
    /// Only this scenario.
    #[arg(long, value_name = "NAME", value_parser = scenario)]
    only: Option<Scenario>,
    /// Only this way of waiting, where it makes sense: cohort, alone, notify or spin.
    #[arg(long, value_name = "NAME", value_parser = policy)]
    policy: Option<Policy>,
    /// By how much every bound is extended, for a machine that has other things to do.
    #[arg(long, default_value_t = 200)]
    allowance_ms: u64,
    /// How many waits a run of `cancellation` drops.
    #[arg(long, default_value_t = 100_000)]
    cancellations: u64,
    /// One JSON line per run instead of a table.
    #[arg(long)]
    json: bool,
}

/// What else the program does; some of it only when it has started itself.
#[derive(Subcommand)]
enum Mode {
    /// Lets masters die and be replaced, counts how often two believe to hold a lock, and judges the rest.
    Failovers {
        /// How many behind Sentinel, in each mode.
        #[arg(long, default_value_t = 0)]
        sentinel: u32,
        /// How many in a cluster, in each mode.
        #[arg(long, default_value_t = 0)]
        cluster: u32,
        /// Only this: async, wait, quarantine or both.
        #[arg(long, value_name = "NAME", value_parser = caution)]
        mode: Option<Caution>,
        /// The seed of the first series; by default, the time.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Does the same to those who stand in a line.
    Line {
        /// Goes on for so long; one round of all scenarios is always done.
        #[arg(long, default_value_t = 1.0)]
        minutes: f64,
        /// The seed of the first run; by default, the time.
        #[arg(long)]
        seed: Option<u64>,
        /// Only this scenario.
        #[arg(long, value_name = "NAME", value_parser = line_scenario)]
        only: Option<LineScenario>,
        /// One JSON line per run instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Is full of people who stand in a line.
    #[command(hide = true)]
    People { orders: String },
    /// Works a lock as standard input says.
    #[command(hide = true)]
    Worker { orders: String },
    /// Drops waits.
    #[command(hide = true)]
    Cancel { orders: String },
}

fn scenario(name: &str) -> Result<Scenario, String> {
    let names = Scenario::ALL.map(Scenario::name).join(", ");
    Scenario::ALL.into_iter().find(|known| known.name() == name).ok_or(format!("choose one of: {names}"))
}

fn line_scenario(name: &str) -> Result<LineScenario, String> {
    let names = LineScenario::ALL.map(LineScenario::name).join(", ");
    let known = LineScenario::ALL.into_iter().find(|known| known.name() == name);
    known.ok_or(format!("choose one of: {names}"))
}

fn caution(name: &str) -> Result<Caution, String> {
    let names = Caution::ALL.map(Caution::name).join(", ");
    Caution::ALL.into_iter().find(|known| known.name() == name).ok_or(format!("choose one of: {names}"))
}

fn policy(name: &str) -> Result<Policy, String> {
    serde_json::from_value(name.into()).map_err(|_| "choose one of: cohort, alone, notify, spin".to_owned())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("lockgate-faults: {why}");
            ExitCode::from(2)
        }
    }
}

/// Series after series, and a table.
async fn count_failovers(
    site: &Site,
    failovers: [(Topology, u32); 2],
    modes: &[Caution],
    first_seed: u64,
) -> Result<bool, Failure> {
    println!("failovers, --seed {first_seed}");
    let mut table = SeriesTable::default();
    let mut seed = first_seed;
    for (topology, failovers) in failovers.into_iter().filter(|(_, failovers)| *failovers > 0) {
        for mode in modes {
            let outcome = fail_over(site, &Series { topology, mode: *mode, failovers, seed }).await?;
            outcome.violations.iter().for_each(|violation| println!("  - {violation}"));
            table.add(outcome);
            println!("\n{table}\n");
            seed = seed.wrapping_add(1);
        }
    }
    Ok(table.is_clean())
}

async fn run(arguments: Arguments) -> Result<bool, Failure> {
    let site = Site {
        program: std::env::current_exe()?,
        allowance: Duration::from_millis(arguments.allowance_ms),
        cancellations: arguments.cancellations,
    };
    let by_default = || Clock::system().wall().as_micros();
    match arguments.mode {
        Some(Mode::Failovers { sentinel, cluster, mode, seed }) => {
            let failovers = [(Topology::Sentinel, sentinel), (Topology::Cluster, cluster)];
            let modes = mode.map_or(Caution::ALL.to_vec(), |mode| vec![mode]);
            count_failovers(&site, failovers, &modes, seed.unwrap_or_else(by_default)).await
        }
        Some(Mode::Line { minutes, seed, only, json }) => {
            let (time, seed) =
                (Duration::try_from_secs_f64(minutes * 60.0)?, seed.unwrap_or_else(by_default));
            perform_lines(&site, &LinePlan { time, seed, only, json }).await
        }
        Some(Mode::People { orders }) => {
            live(serde_json::from_str::<PeopleOrders>(&orders)?).await?;
            Ok(true)
        }
        Some(Mode::Worker { orders }) => {
            work(serde_json::from_str::<Orders>(&orders)?).await?;
            Ok(true)
        }
        Some(Mode::Cancel { orders }) => {
            let wrong = cancel(&serde_json::from_str::<Cancellations>(&orders)?).await?;
            println!("{}", serde_json::to_string(&wrong)?);
            Ok(true)
        }
        None => {
            let plan = Plan {
                time: Duration::try_from_secs_f64(arguments.minutes * 60.0)?,
                seed: arguments.seed.unwrap_or_else(by_default),
                only: arguments.only,
                policy: arguments.policy,
                json: arguments.json,
            };
            perform(&site, &plan).await
        }
    }
}
