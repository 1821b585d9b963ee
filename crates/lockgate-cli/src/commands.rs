//! One thin file per command.

use std::error::Error;

pub(crate) mod actions;
pub(crate) mod audit;
pub(crate) mod bench;
mod campaigns;
pub(crate) mod config_file;
pub(crate) mod coupons;
pub(crate) mod deals;
mod draw;
pub(crate) mod health;
mod import;
pub(crate) mod ledger;
pub(crate) mod lines;
pub(crate) mod locks;
mod places;
pub(crate) mod recover;
mod remote;
pub(crate) mod serve;
mod show;
mod wishes;

/// Why a command could not do it: its text is the sentence that the user reads.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// What a command ends with.
pub(crate) type Outcome = Result<(), Failure>;

/// A runtime on all cores.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// A runtime on so many cores.
fn runtime_of(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}
