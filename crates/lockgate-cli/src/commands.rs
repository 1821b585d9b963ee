//! One thin file per command.

use std::error::Error;
use std::io::Write as _;

pub(crate) mod actions;
pub(crate) mod audit;
pub(crate) mod bench;
mod campaigns;
pub(crate) mod completions;
pub(crate) mod config_file;
pub(crate) mod coupons;
pub(crate) mod deals;
pub(crate) mod demo;
mod draw;
pub(crate) mod health;
mod import;
pub(crate) mod lab;
pub(crate) mod ledger;
pub(crate) mod lines;
pub(crate) mod locks;
pub(crate) mod man;
mod places;
pub(crate) mod recover;
mod remote;
pub(crate) mod serve;
mod show;
mod wishes;

#[cfg(feature = "otel")]
pub(crate) use self::remote::trusting;

/// Why a command could not do it: its text is the sentence that the user reads.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// What a command ends with.
pub(crate) type Outcome = Result<(), Failure>;

/// Prints what was asked for. Whoever has stopped reading does not want to know.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A runtime on all cores.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// A runtime on so many cores.
fn runtime_of(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}
