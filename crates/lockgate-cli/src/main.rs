//! The command `lockgate`: one thin file per command in `commands/`, each of which turns its arguments into a plain
//! configuration and hands over to the server or the lab.
//!
//! Exit codes: 0 done, 1 it could not be done (one sentence on standard error says why and what to do), 2 the
//! command line makes no sense.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

mod commands;

/// What stands between a crowd and something limited: locks, stock, lines.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(commands::serve::Serve),
    Bench(commands::bench::Bench),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_standard_error();
    let outcome = match cli.command {
        Command::Serve(serve) => serve.run(),
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

/// `LOCKGATE_LOG=debug` or `LOCKGATE_LOG=lockgate=trace` says more.
fn log_to_standard_error() {
    let filter = EnvFilter::try_from_env("LOCKGATE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let stderr = std::io::stderr;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr().is_terminal())
        .with_writer(stderr)
        .init();
}
