//! The thread that writes.

use std::io;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::disk::Disk;
use super::{Inbox, Read, Replayed, Shared};
use crate::error::StoreError;

/// The first pause before the journal is read anew after a failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) fn start(
    shared: Arc<Shared>,
    disk: Disk,
    rebuild: impl FnMut(Replayed) -> bool + Send + 'static,
) -> io::Result<()> {
    let writer = Writer { shared, disk, rebuild };
    thread::Builder::new().name("lockgate-journal".into()).spawn(|| writer.run()).map(drop)
}

struct Writer<R> {
    shared: Arc<Shared>,
    disk: Disk,
    /// Says whether the store is still there.
    rebuild: R,
}

/// Tells everybody when the thread ends, however that happens: nobody must wait for what will never be written.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let why = "the thread that writes the journal has ended; open the store again";
        self.0.progress.fail(why.into());
        self.0.inbox().reads.clear();
    }
}

impl Inbox {
    /// Whether there is nothing to write.
    fn is_written(&self) -> bool {
        self.entries.is_empty() && self.lines.is_empty() && self.done.is_empty()
    }
}

impl<R: FnMut(Replayed) -> bool> Writer<R> {
    fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.shared));
        loop {
            let mut work = self.next_work();
            let reads = std::mem::take(&mut work.reads);
            if !work.is_written()
                && let Err(why) = self.commit(&work)
            {
                self.fail(why.clone());
                self.answer(reads, Some(&why));
                if !self.recover() {
                    return;
                }
                continue;
            }
            self.answer(reads, None);
            if work.is_closed {
                return;
            }
        }
    }

    /// Waits until there is something to do, and takes all of it.
    fn next_work(&self) -> Inbox {
        let mut inbox = self.shared.inbox();
        while inbox.is_written() && inbox.reads.is_empty() && !inbox.is_closed {
            inbox = self.shared.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        let is_closed = inbox.is_closed;
        Inbox { is_closed, ..std::mem::take(&mut *inbox) }
    }

    fn commit(&mut self, work: &Inbox) -> Result<(), String> {
        #[cfg(any(test, feature = "testing"))]
        self.meet_trouble();
        let result = self.disk.commit(work);
        #[cfg(any(test, feature = "testing"))]
        let result = result.and_then(|()| self.meet_failed_sync());
        result?;
        self.shared.progress.reach(work.noted);
        Ok(())
    }

    fn fail(&self, why: String) {
        tracing::error!(%why, "the journal could not be written; stock and lines are read anew from the disk");
        self.shared.progress.fail(why);
    }

    /// Reads the journal anew until that works; says whether the store is still there.
    fn recover(&mut self) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            thread::sleep(pause);
            if self.shared.inbox().is_closed {
                return false;
            }
            let reads = std::mem::take(&mut self.shared.inbox().reads);
            self.answer(reads, Some("it is being read anew"));
            match self.disk.reopen().and_then(|()| self.disk.replay()) {
                Ok(replayed) => return (self.rebuild)(replayed),
                Err(why) => {
                    tracing::error!(%why, "the journal cannot be read; trying again");
                    self.shared.progress.fail(why);
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn answer(&self, reads: Vec<Read>, failed: Option<&str>) {
        for Read { after, limit, answer } in reads {
            let entries = match failed {
                Some(why) => Err(why.to_owned()),
                None => self.disk.read(after, limit),
            };
            // Whoever asked may have gone away.
            let _ =
                answer
                    .send(entries.map_err(|why| {
                        StoreError::Unavailable(format!("the journal cannot be read: {why}"))
                    }));
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl<R> Writer<R> {
    fn trouble(&self) -> std::sync::MutexGuard<'_, super::Trouble> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meet_trouble(&mut self) {
        while self.trouble().is_stalled {
            thread::sleep(Duration::from_millis(1));
        }
        let max_pages = self.trouble().max_pages.take();
        if let Some(max_pages) = max_pages {
            self.disk.limit_pages(max_pages);
        }
    }

    fn meet_failed_sync(&self) -> Result<(), String> {
        if std::mem::take(&mut self.trouble().fails_next_sync) {
            return Err("the sync failed on purpose".into());
        }
        Ok(())
    }
}
