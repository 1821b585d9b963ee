//! The journal on disk, and the promise that nothing is answered before it is there.
//!
//! **Promise:** when [`Safety::wait`] has returned, everything up to that mark is on disk, synced, and will be there after
//! `kill -9` or a power loss. A commit that fails (disk full, failed sync) fails the store: whoever waits is told that the
//! outcome is unknown, the stock is rebuilt from what the disk has, and then the store works again.
//!
//! ```text
//! a step    (under the store's mutex)    append entry 17 ──▶ inbox
//! its answer                             waits for 17 ······················▶ goes out
//! writer    (a thread of its own)        takes all of the inbox ─ one transaction ─ sync ─ "17 is safe"
//! ```
//!
//! While a transaction is being synced, the next entries gather: a group commit without a timer.

mod disk;
mod progress;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use self::disk::Disk;
pub(in crate::store::memory) use self::progress::Mark;
use self::progress::Progress;
use super::line::{LineEvent, Lines};
use super::order::Orders;
use super::shelf::Shelves;
use crate::clock::Timestamp;
use crate::error::{OpenError, StoreError};
use crate::key::Name;
use crate::store::{Campaign, CampaignKind, JournalChange, JournalEntry, JournalPosition, OrderItem};

/// Where a store's steps leave their entries. Lives in the store's state, so its numbers rise with the steps.
#[derive(Debug)]
pub(in crate::store::memory) struct Log {
    shared: Arc<Shared>,
    /// The position of the last entry of the stock.
    last: u64,
    /// How many entries of stock and lines there were, since the file was opened.
    noted: u64,
    generation: u64,
}

/// What the writer and all who wait for it share.
#[derive(Debug)]
struct Shared {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    progress: Progress,
    #[cfg(any(test, feature = "testing"))]
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Inbox {
    entries: Vec<JournalEntry>,
    lines: Vec<LineNote>,
    /// How many entries there were with the last of these.
    noted: u64,
    reads: Vec<Read>,
    /// Up to where each group of readers is done.
    done: HashMap<Name, u64>,
    is_closed: bool,
}

/// Something to be written of a line.
#[derive(Debug)]
enum LineNote {
    Happened {
        line: Name,
        at_ms: u64,
        event: LineEvent,
    },
    /// It is no more: nothing of it is kept.
    Forgotten {
        line: Name,
    },
}

/// Somebody wants to read the journal.
#[derive(Debug)]
struct Read {
    after: JournalPosition,
    limit: usize,
    answer: oneshot::Sender<Result<Vec<JournalEntry>, StoreError>>,
}

/// Tells when a mark is on disk. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::store::memory) struct Safety(Arc<Shared>);

/// What a journal says when it is read from its beginning.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Replayed {
    pub(in crate::store::memory) shelves: Shelves,
    pub(in crate::store::memory) orders: Orders,
    pub(in crate::store::memory) lines: Lines,
    /// Up to where each group of readers is done.
    pub(in crate::store::memory) done: Vec<(Name, u64)>,
    last: u64,
    last_at: Option<Timestamp>,
}

impl Replayed {
    fn add(&mut self, entry: &JournalEntry) -> Result<(), String> {
        let JournalEntry { position, campaign, rev, at, change } = entry;
        let expected = self.shelves.rev_of(campaign) + 1;
        if *rev != expected || position.major != self.last + 1 {
            return Err(format!("{campaign:?} goes on with change {rev} at position {position}"));
        }
        self.last = position.major;
        self.last_at = Some(*at);
        self.shelves.apply(campaign, *at, change);
        if let JournalChange::Bought { seq, user, quantity, request: Some(order), .. } = change
            && campaign.kind == CampaignKind::Sku
        {
            let item = OrderItem { sku: campaign.clone(), quantity: *quantity };
            self.orders.note(*at, order, user, item, *seq);
        }
        Ok(())
    }

    fn add_line(&mut self, line: &Name, at_ms: u64, event: &LineEvent) -> Result<(), String> {
        self.lines.replay(line, at_ms, event)
    }

    /// At its end it is not yet late enough for anything to be missed, and too late for what nobody can ask for any more.
    fn finish(mut self) -> Self {
        if let Some(last_at) = self.last_at {
            self.shelves.forget_until(last_at);
            self.orders.forget_old_ones(last_at);
        }
        self.lines.finish_replay();
        self
    }
}

/// Opens the journal at `path` and reads it. The caller starts the writer when it has put the stock where it belongs.
pub(in crate::store::memory) fn open(path: &Path) -> Result<(Log, Replayed, Start), OpenError> {
    let mut disk = Disk::open(path)?;
    let replayed = disk.replay().map_err(OpenError::Unfit)?;
    if let Err(why) = disk.shorten(&replayed.lines) {
        tracing::warn!(%why, "the journal of the lines could not be shortened; it goes on as it is");
    }
    let shared = Arc::new(Shared {
        inbox: Mutex::default(),
        arrived: Condvar::new(),
        progress: Progress::default(),
        #[cfg(any(test, feature = "testing"))]
        trouble: Mutex::default(),
    });
    let log = Log { shared: Arc::clone(&shared), last: replayed.last, noted: 0, generation: 0 };
    Ok((log, replayed, Start { shared, disk }))
}

/// A journal that is open and has no writer yet.
pub(in crate::store::memory) struct Start {
    shared: Arc<Shared>,
    disk: Disk,
}

impl Start {
    /// Starts the writer. `rebuild` puts a stock that was read anew in the place of the present one.
    pub(in crate::store::memory) fn begin(
        self,
        rebuild: impl FnMut(Replayed) -> bool + Send + 'static,
    ) -> Result<Safety, OpenError> {
        let safety = Safety(Arc::clone(&self.shared));
        writer::start(self.shared, self.disk, rebuild)
            .map_err(|why| OpenError::Config(format!("cannot start a thread for the journal: {why}")))?;
        Ok(safety)
    }
}

impl Log {
    pub(in crate::store::memory) fn append(
        &mut self,
        campaign: &Campaign,
        rev: u64,
        at: Timestamp,
        change: JournalChange,
    ) {
        self.last += 1;
        let position = JournalPosition::new(self.last, 0);
        let entry = JournalEntry { position, campaign: campaign.clone(), rev, at, change };
        self.note(|inbox| inbox.entries.push(entry));
    }

    pub(in crate::store::memory) fn append_line(&mut self, line: &Name, at_ms: u64, event: &LineEvent) {
        let (line, event) = (line.clone(), event.clone());
        self.note(|inbox| inbox.lines.push(LineNote::Happened { line, at_ms, event }));
    }

    pub(in crate::store::memory) fn forget_line(&mut self, line: &Name) {
        let line = line.clone();
        self.note(|inbox| inbox.lines.push(LineNote::Forgotten { line }));
    }

    fn note(&mut self, put: impl FnOnce(&mut Inbox)) {
        self.noted += 1;
        let mut inbox = self.shared.inbox();
        inbox.noted = self.noted;
        put(&mut inbox);
        drop(inbox);
        self.shared.arrived.notify_one();
    }

    /// The position of the last entry of the stock.
    pub(in crate::store::memory) fn last(&self) -> u64 {
        self.last
    }

    /// A group of readers is done with all up to there. It is written when it comes to it: what is not, the group is given
    /// once more after a restart.
    pub(in crate::store::memory) fn note_done(&self, group: &Name, through: u64) {
        self.shared.inbox().done.insert(group.clone(), through);
        self.shared.arrived.notify_one();
    }

    pub(in crate::store::memory) fn mark(&self) -> Mark {
        Mark { generation: self.generation, noted: self.noted }
    }

    /// The stock was rebuilt: what was appended since is gone, and whoever waits for it is told.
    pub(in crate::store::memory) fn go_on_after(&mut self, replayed: &Replayed) {
        self.generation += 1;
        self.last = replayed.last;
        let mut inbox = self.shared.inbox();
        inbox.entries.clear();
        inbox.lines.clear();
        drop(inbox);
        self.shared.progress.begin_anew(self.generation, self.noted);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.inbox().is_closed = true;
        self.shared.arrived.notify_one();
    }
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Safety {
    /// Refuses a step while the stock is not what the disk has.
    pub(in crate::store::memory) fn check(&self) -> Result<(), StoreError> {
        match self.0.progress.failed() {
            None => Ok(()),
            Some(why) => Err(StoreError::Unavailable(format!("the journal cannot be written: {why}"))),
        }
    }

    /// Returns when everything up to the mark is on disk.
    pub(in crate::store::memory) async fn wait(&self, mark: Mark) -> Result<(), StoreError> {
        let decided = self.0.progress.wait(mark).await;
        decided.map_err(|why| StoreError::UnknownOutcome(format!("the journal could not be written: {why}")))
    }

    /// Some entries, as they are on disk.
    pub(in crate::store::memory) async fn read(
        &self,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        self.check()?;
        let (answer, entries) = oneshot::channel();
        self.0.inbox().reads.push(Read { after, limit, answer });
        self.0.arrived.notify_one();
        entries.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is gone".into())))
    }
}

/// What goes wrong on purpose.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    is_stalled: bool,
    fails_next_sync: bool,
    max_pages: Option<u32>,
}

#[cfg(any(test, feature = "testing"))]
impl Safety {
    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing reaches the disk until this is taken back.
    pub(in crate::store::memory) fn stall(&self, is_stalled: bool) {
        self.trouble().is_stalled = is_stalled;
    }

    /// The next commit writes, and then its sync fails.
    pub(in crate::store::memory) fn fail_next_sync(&self) {
        self.trouble().fails_next_sync = true;
    }

    /// The disk has room for so many pages, or (`None`) for all.
    pub(in crate::store::memory) fn limit_pages(&self, max_pages: Option<u32>) {
        self.trouble().max_pages = Some(max_pages.unwrap_or(u32::MAX));
    }
}
