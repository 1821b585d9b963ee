//! The fault suite of the lock as a program: see [`lockgate_lab::faults`].

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use lockgate::clock::Clock;
use lockgate_lab::faults::{
    Cancellations, Failure, Orders, Plan, Policy, Scenario, Site, cancel, perform, work,
};

/// Kills, stops, cuts off and confuses the users of a lock, and judges what they saw.
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

/// What the program does when it has started itself.
#[derive(Subcommand)]
enum Mode {
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

async fn run(arguments: Arguments) -> Result<bool, Failure> {
    match arguments.mode {
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
            let site = Site {
                program: std::env::current_exe()?,
                allowance: Duration::from_millis(arguments.allowance_ms),
                cancellations: arguments.cancellations,
            };
            let plan = Plan {
                time: Duration::try_from_secs_f64(arguments.minutes * 60.0)?,
                seed: arguments.seed.unwrap_or_else(|| Clock::system().wall().as_micros()),
                only: arguments.only,
                policy: arguments.policy,
                json: arguments.json,
            };
            perform(&site, &plan).await
        }
    }
}
