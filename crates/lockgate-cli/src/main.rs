//! The command `lockgate`: one thin file per command in `commands/`, each of which turns its arguments into a plain
//! configuration and hands over to the server or the lab.
//!
//! Exit codes: 0 done, 1 it could not be done (one sentence on standard error says why and what to do), 2 the
//! command line makes no sense.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::Level;

mod commands;
mod telemetry;

use self::commands::config_file;
use self::commands::serve::LogFormat;
use self::telemetry::Spans;

/// A request is some dozens of allocations, and what one thread allocates another one frees: the system's allocator makes threads wait
/// for each other then, and the one of the static image is slower still.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What stands between a crowd and something limited: locks, stock, lines.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(commands::serve::Serve),
    Audit(commands::audit::Audit),
    Recover(commands::recover::Recover),
    Ledger(commands::ledger::LedgerCommand),
    Coupons(commands::coupons::Coupons),
    Deals(commands::deals::Deals),
    #[command(alias = "line")]
    Lines(commands::lines::Lines),
    Locks(commands::locks::Locks),
    Actions(commands::actions::Actions),
    Demo(commands::demo::Demo),
    Lab(commands::lab::Lab),
    Bench(commands::bench::Bench),
    Health(commands::health::Health),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

fn main() -> ExitCode {
    let outcome = Cli::parse().with_config_file().map_err(Into::into).and_then(run);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lockgate: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> commands::Outcome {
    let (format, spans) = match &cli.command {
        Command::Serve(serve) => (serve.log_format, Spans::of_server()?),
        _ => (LogFormat::Text, Spans::none()),
    };
    let level = match &cli.command {
        // Locks are lost there on purpose.
        Command::Lab(_) => Level::ERROR,
        _ => Level::WARN,
    };
    telemetry::begin(format, level, &spans);
    let outcome = run_command(cli.command);
    spans.flush();
    outcome
}

fn run_command(command: Command) -> commands::Outcome {
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Audit(audit) => audit.run(),
        Command::Recover(recover) => recover.run(),
        Command::Ledger(ledger) => ledger.run(),
        Command::Coupons(coupons) => coupons.run(),
        Command::Deals(deals) => deals.run(),
        Command::Lines(lines) => lines.run(),
        Command::Locks(locks) => locks.run(),
        Command::Actions(actions) => actions.run(),
        Command::Demo(demo) => demo.run(),
        Command::Lab(lab) => lab.run(),
        Command::Bench(bench) => bench.run(),
        Command::Health(health) => health.run(),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    }
}

impl Cli {
    /// Reads the command line again, with the configuration file's values as defaults, if there is such a file.
    fn with_config_file(self) -> Result<Self, String> {
        let Command::Serve(serve) = &self.command else { return Ok(self) };
        let Some(file) = &serve.config else { return Ok(self) };
        let mut command = Self::command();
        let serve = command.find_subcommand("serve").cloned().unwrap_or_default();
        let serve = config_file::with_defaults_of(serve, file)?;
        command = command.mut_subcommand("serve", |_| serve);
        Ok(Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|why| why.exit()))
    }
}
