//! `cargo xtask test`: everything that this repository checks, in one command, on a machine that has only Rust
//! and a Debian-like system.

use std::process::ExitCode;

mod contract;
mod faults;
mod lean;
#[expect(unreachable_pub, reason = "the library exports what is a plain module here")]
#[path = "../../crates/lockgate/src/testing/services/program.rs"]
mod program;
mod setup;
mod steps;
mod test;

const USAGE: &str = "\
cargo xtask test           set up what the tests need, then run every check
cargo xtask test --quick   format, clippy and the tests that need no service
cargo xtask faults …       the fault suite of the lock, in release: --minutes M, --seed N, --only NAME, --json;
                           failovers --sentinel N --cluster N counts what failovers do to it
cargo xtask contract       only the server against its own contract (schemathesis)
cargo xtask setup          only set up: find or install redis-server, PostgreSQL, MariaDB, …";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test"] => test::everything(),
        ["test", "--quick"] => test::quick(),
        ["faults", more @ ..] => faults::run(more),
        ["contract"] => contract::check(),
        ["setup"] => setup::install_missing_programs(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
