//! Opening the embedded store on a journal on disk, and putting it right when the disk has failed it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::journal::Journal;
use super::readers::Readers;
use super::stock::Sendings;
use super::{MemoryStore, State, lock, log};
use crate::config::Config;
use crate::error::OpenError;

impl MemoryStore {
    /// A store whose journal is the file at `path`; what it says is there again.
    ///
    /// # Errors
    ///
    /// When another process uses the file, when it is no journal or damaged, or when it cannot be written.
    pub fn open(path: impl AsRef<Path>, config: &Config) -> Result<Self, OpenError> {
        let (log, log::Replayed { shelves, orders, lines, done, .. }, start) = log::open(path.as_ref())?;
        let mut store = Self::with_journal(config.clock.clone(), config.claim, Journal::OnDisk(log));
        {
            let mut state = lock(&store.state);
            (state.shelves, state.orders, state.lines) = (shelves, orders, lines);
            state.readers = Readers::restored(done);
        }
        let state = Arc::downgrade(&store.state);
        let rebuild = move |replayed| state.upgrade().is_some_and(|state| rebuild(&state, replayed));
        store.safety = Some(start.begin(rebuild)?);
        Ok(store)
    }

    /// Nothing reaches the disk until this is taken back.
    #[cfg(any(test, feature = "testing"))]
    pub fn stall_journal(&self, is_stalled: bool) {
        self.safety.iter().for_each(|safety| safety.stall(is_stalled));
    }

    /// The next commit is written, and then its sync fails.
    #[cfg(any(test, feature = "testing"))]
    pub fn fail_next_sync(&self) {
        self.safety.iter().for_each(log::Safety::fail_next_sync);
    }

    /// The disk has room for so many pages, or (`None`) for all.
    #[cfg(any(test, feature = "testing"))]
    pub fn limit_journal_pages(&self, max_pages: Option<u32>) {
        self.safety.iter().for_each(|safety| safety.limit_pages(max_pages));
    }
}

/// Puts what the disk has in the place of what memory had. Locks stay: they were never on disk.
fn rebuild(state: &Mutex<State>, replayed: log::Replayed) -> bool {
    let mut state = lock(state);
    if let Journal::OnDisk(log) = &mut state.journal {
        log.go_on_after(&replayed);
    }
    let log::Replayed { shelves, orders, lines, done, .. } = replayed;
    (state.shelves, state.orders, state.sendings) = (shelves, orders, Sendings::default());
    (state.lines, state.readers) = (lines, Readers::restored(done));
    true
}
