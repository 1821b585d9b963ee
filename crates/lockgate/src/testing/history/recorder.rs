//! Writes down what is asked and what is answered, as it happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::History;
use super::answer::{Answer, Listed};
use super::call::{Lists, Operation, Waits};
use super::event::{Event, Step};
use crate::clock::Clock;

/// Writes the history of one process; cheap to clone into all of its tasks.
///
/// An `invoke` is on its way to the file *before* [`Recorder::invoke`] returns, so a process that is killed right
/// after sending a request still leaves the fact that it asked. Nothing is synced: the history survives the
/// death of the process, not that of the machine.
///
/// Each recorder has a file of its own. Sharing one would let a killed process leave half a line in the middle,
/// where it can no longer be told from damage.
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    process: String,
    clock: Clock,
    next_op: AtomicU64,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Memory(Mutex<Vec<Event>>),
    File(Mutex<File>),
}

impl Recorder {
    /// A recorder that keeps everything in memory; see [`Recorder::history`].
    #[must_use]
    pub fn in_memory(name: &str, clock: Clock) -> Self {
        Self::new(unique_name(name), clock, Sink::Memory(Mutex::default()))
    }

    /// A recorder with a new file of its own in `folder`, to be read by [`History::read_folder`].
    ///
    /// # Errors
    ///
    /// When the file cannot be created.
    pub fn in_folder(folder: &Path, name: &str, clock: Clock) -> io::Result<Self> {
        let process = unique_name(name);
        let path = folder.join(format!("{process}.{}", super::load::EXTENSION));
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        Ok(Self::new(process, clock, Sink::File(Mutex::new(file))))
    }

    fn new(process: String, clock: Clock, sink: Sink) -> Self {
        let shared = Shared { process, clock, next_op: AtomicU64::new(1), sink };
        Self { shared: Arc::new(shared) }
    }

    /// Notes that a request is about to be sent. Send it after this returns.
    ///
    /// # Errors
    ///
    /// When it cannot be written. Do not send the request then: an effect without an `invoke` looks invented.
    pub fn invoke<C: Operation>(&self, call: C) -> io::Result<Pending<C>> {
        let op = self.shared.next_op.fetch_add(1, Ordering::Relaxed);
        let pending = Pending { recorder: self.clone(), op, rows: AtomicU64::new(0), call: PhantomData };
        pending.note(Step::Invoke(call.into()))?;
        Ok(pending)
    }

    /// What was recorded in memory so far; empty for a recorder that writes to a file.
    #[must_use]
    pub fn history(&self) -> History {
        match &self.shared.sink {
            Sink::Memory(events) => History::from_events(locked(events).clone()),
            Sink::File(_) => History::default(),
        }
    }

    fn write(&self, op: u64, at: u64, step: Step) -> io::Result<()> {
        let event = Event { process: self.shared.process.clone(), op, at, step };
        match &self.shared.sink {
            Sink::Memory(events) => locked(events).push(event),
            Sink::File(file) => {
                // Spelled before the file is locked, and written by one call, so that tasks wait for each other as
                // little as a recorder can make them.
                let mut line = serde_json::to_vec(&event)?;
                line.push(b'\n');
                locked(file).write_all(&line)?;
            }
        }
        Ok(())
    }
}

/// A task that panicked between two lines has left whole lines, so what it locked is still good.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An operation that has been invoked and not yet ended.
///
/// Dropping it writes nothing more, which the checker reads as [`Step::Unknown`]: right for a cancelled future.
#[derive(Debug)]
#[must_use = "an operation that is never ended counts as one of unknown outcome"]
pub struct Pending<C> {
    recorder: Recorder,
    op: u64,
    rows: AtomicU64,
    call: PhantomData<fn() -> C>,
}

impl<C: Operation> Pending<C> {
    /// The gate answered.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the operation then counts as unknown.
    pub fn ok(self, answer: C::Answer) -> io::Result<()> {
        self.note(Step::Ok(answer.into()))
    }

    /// It certainly did not happen and never will: refused before it was sent, for example.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the operation then counts as unknown.
    pub fn fail(self) -> io::Result<()> {
        self.note(Step::Fail)
    }

    /// No answer came.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the operation counts as unknown all the same.
    pub fn unknown(self) -> io::Result<()> {
        self.note(Step::Unknown)
    }

    fn note(&self, step: Step) -> io::Result<()> {
        let now = self.recorder.shared.clock.monotonic().as_nanos();
        self.recorder.write(self.op, now, step)
    }
}

impl<C: Waits> Pending<C> {
    /// The store has confirmed a place in its queue.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn queued(&self) -> io::Result<()> {
        self.note(Step::Queued)
    }
}

impl<C: Lists + Operation<Answer = Listed>> Pending<C> {
    /// One row of the listing has been read.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn row(&self, row: C::Row) -> io::Result<()> {
        self.note(Step::Row(row.into()))?;
        self.rows.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// All rows were read. Without this, nothing is concluded from the listing.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn complete(self) -> io::Result<()> {
        let rows = self.rows.load(Ordering::Relaxed);
        self.note(Step::Ok(Answer::Listed { rows }))
    }
}

/// A name that no other recorder on this machine has: `name#pid.number`.
fn unique_name(name: &str) -> String {
    static RECORDERS: AtomicU64 = AtomicU64::new(0);
    format!("{name}#{}.{}", std::process::id(), RECORDERS.fetch_add(1, Ordering::Relaxed))
}
