//! One thin file per command.

use std::error::Error;

pub(crate) mod bench;
pub(crate) mod serve;

/// What a command ends with: the error's text is the sentence that the user reads.
pub(crate) type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// A runtime on all cores.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// A runtime on so many cores.
fn runtime_of(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}
