//! The command `lockgate`: one thin file per command in `commands/`, each of which turns its arguments into a plain
//! configuration and hands over to the server or the lab.
//!
//! Exit codes: 0 done, 1 it could not be done (one sentence on standard error says why and what to do), 2 the
//! command line makes no sense.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

mod commands;

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
    Line(commands::line::LineCommand),
    Bench(commands::bench::Bench),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_standard_error();
    let outcome = match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Audit(audit) => audit.run(),
        Command::Recover(recover) => recover.run(),
        Command::Ledger(ledger) => ledger.run(),
        Command::Line(line) => line.run(),
        Command::Bench(bench) => bench.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lockgate: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Warnings, unless `LOCKGATE_LOG` says more: `debug`, or `lockgate=trace,warn`.
fn log_to_standard_error() {
    let wanted = std::env::var("LOCKGATE_LOG").ok().and_then(|wanted| wanted.parse().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(Level::WARN));
    let stderr = std::io::stderr;
    let lines = tracing_subscriber::fmt::layer().with_ansi(stderr().is_terminal()).with_writer(stderr);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
