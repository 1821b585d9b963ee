//! The task that writes the ledger.
//!
//! **Promise:** an entry is acknowledged after it is committed, and trimmed after it is acknowledged; so whatever dies, and
//! wherever, the entry is in the journal or in the ledger. When the database or the store is away, the writer waits, trying
//! again with growing pauses, and goes on by itself; a database that falls silent is given up after a minute or
//! so and asked over another connection. What a dead writer was given is taken over by another after
//! [`WriterConfig::claim_after`].
//!
//! ```text
//! reader   takes ──▶ one batch waits ──▶ writer   writes, commits, acknowledges
//!          takes the next one meanwhile
//! tick     once a second: how far behind? trim what all groups have acknowledged; claim what lies around; is the server
//!          behind the store another one? resolve orders that were left half way
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::dead_letter::DeadLetter;
use super::error::LedgerError;
use super::metrics::Metrics;
use super::record::Record;
use super::sql::{Arrival, Written};
use super::{GROUP, Ledger};
use crate::error::StoreError;
use crate::jitter::jittered;
use crate::key::Name;
use crate::stock::resolve_all;
use crate::store::{JournalPosition, JournalReader, JournalTaken, MAX_BATCH, Store, Token};

/// The pause after a first failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long the database may take for a batch, the sink included, and how much longer for each record in it. A sink that asks
/// a distant database about each record is slow, not silent: given up too soon, its batch would be given up for ever.
const LONGEST_WRITE: Duration = Duration::from_secs(60);
const LONGER_PER_RECORD: Duration = Duration::from_millis(10);

/// How many entries of each partition the first batch has: few, because an entry may be a thousand rows.
const FIRST_ENTRIES: usize = 4;

/// How often it is looked how far behind the ledger is.
const TICK: Duration = Duration::from_secs(1);

/// The same while somebody waits for it to be up to date.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How a [`Writer`] works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriterConfig {
    /// What this writer is called among its group; by default a name of its own. Two of one name are given the same
    /// entries: harmless, and of no use.
    pub name: Option<String>,
    /// About how many rows one transaction has. More are faster, and let a grant wait longer.
    pub batch_rows: usize,
    /// How long to wait before the journal is asked again when it had nothing new.
    pub idle_pause: Duration,
    /// After which time an entry that another writer was given and has not acknowledged is taken over. Longer than a
    /// transaction ever takes; if it is not, rows are written twice, which changes nothing.
    pub claim_after: Duration,
    /// How long [`Writer::shutdown`] waits for a database that does not answer.
    pub shutdown_within: Duration,
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self {
            name: None,
            batch_rows: 5_000,
            idle_pause: Duration::from_millis(50),
            claim_after: Duration::from_secs(15),
            shutdown_within: Duration::from_secs(10),
        }
    }
}

/// How a writer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStatus {
    /// How many rows this writer has committed.
    pub rows: u64,
    /// How many rows were there already.
    pub known: u64,
    /// How many dead letters it has made.
    pub dead_letters: u64,
    /// How long the oldest entry that no writer of the group has acknowledged has been waiting, when it was last looked.
    pub behind: Duration,
    /// How often it was looked.
    pub looks: u64,
    /// Why nothing can be written at the moment, if that is so.
    pub failing: Option<String>,
}

/// A writer at work. Dropped, it stops as soon as it can; [`Writer::shutdown`] waits for it.
#[derive(Debug)]
pub struct Writer {
    stop: CancellationToken,
    status: watch::Receiver<WriterStatus>,
    /// Somebody wants to know at once.
    look_now: Arc<Notify>,
    tasks: JoinSet<()>,
    shutdown_within: Duration,
}

impl Writer {
    pub(super) fn start(
        ledger: Ledger,
        store: Arc<dyn Store>,
        config: WriterConfig,
    ) -> Result<Self, LedgerError> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|_| LedgerError::Refused("there is no tokio runtime to write in".into()))?;
        let name = config.name.clone().unwrap_or_else(|| format!("{GROUP}-{}", Token::random()));
        let name = Name::new("writer", name).map_err(|why| LedgerError::Refused(why.to_string()))?;
        let reader = JournalReader { group: ledger.group.clone(), name };
        let (tells, status) = watch::channel(WriterStatus::default());
        let stop = CancellationToken::new();
        let shutdown_within = config.shutdown_within;
        let look_now = Arc::new(Notify::new());
        let desk = Arc::new(Desk {
            ledger,
            store,
            reader,
            config,
            stop: stop.clone(),
            look_now: Arc::clone(&look_now),
            status: tells,
            metrics: Metrics::new(),
            under_way: AtomicUsize::new(0),
            has_claimed: AtomicBool::new(false),
        });
        // One batch waits while another is written: more would only be older when they are.
        let (sender, receiver) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn_on(Arc::clone(&desk).read(sender), &runtime);
        tasks.spawn_on(Arc::clone(&desk).write_until_the_end(receiver), &runtime);
        tasks.spawn_on(desk.tick(), &runtime);
        Ok(Self { stop, status, look_now, tasks, shutdown_within })
    }

    /// How it is doing now.
    #[must_use]
    pub fn status(&self) -> WriterStatus {
        self.status.borrow().clone()
    }

    /// How it is doing, from now on.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<WriterStatus> {
        self.status.clone()
    }

    /// Returns when the ledger has everything that was in the journal when this was called.
    ///
    /// # Cancel safety
    ///
    /// Only looks.
    pub async fn drained(&self) {
        let mut status = self.status.clone();
        // The look that is under way may have begun before.
        let looks = status.borrow().looks + 2;
        let mut is_drained = async || {
            self.look_now.notify_one();
            let drained = status.wait_for(|status| status.looks >= looks && status.behind.is_zero());
            tokio::time::timeout(LOOK_AGAIN, drained).await.is_ok()
        };
        while !is_drained().await {}
    }

    /// Takes nothing more, writes what it has taken, and returns when it is acknowledged. When the database does not answer
    /// within [`WriterConfig::shutdown_within`], it is left to another writer, or to the next start.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.shutdown_within, all).await.is_err() {
            tracing::warn!("the ledger could not be written to its end; the rest stays in the journal");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.cancel();
        // What is under way comes to its end without us.
        self.tasks.detach_all();
    }
}

/// What the tasks of one writer share.
struct Desk {
    ledger: Ledger,
    store: Arc<dyn Store>,
    reader: JournalReader,
    config: WriterConfig,
    stop: CancellationToken,
    look_now: Arc<Notify>,
    status: watch::Sender<WriterStatus>,
    metrics: Metrics,
    /// How many batches were taken and are not acknowledged.
    under_way: AtomicUsize,
    /// Whether something of others was taken over that the reader has not looked for yet.
    has_claimed: AtomicBool,
}

/// What was taken in one go.
#[derive(Default)]
struct Batch {
    arrivals: Vec<Arrival>,
    unreadable: Vec<DeadLetter>,
    /// All of it, by partition.
    positions: Vec<(u16, Vec<JournalPosition>)>,
}

/// A pause that grows with every failure.
struct Patience(Duration);

impl Patience {
    const NEW: Self = Self(FIRST_PAUSE);

    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        jittered(pause)
    }
}

impl Desk {
    /// Waits, unless it is time to stop; says whether it is.
    async fn stops_within(&self, pause: Duration) -> bool {
        tokio::time::timeout(pause, self.stop.cancelled()).await.is_ok()
    }

    async fn read(self: Arc<Self>, batches: mpsc::Sender<Batch>) {
        let partitions = self.store.partitions();
        let mut after = vec![JournalPosition::START; usize::from(partitions)];
        let mut entries = FIRST_ENTRIES;
        let mut patience = Patience::NEW;
        while !self.stop.is_cancelled() {
            if self.under_way.load(Ordering::Acquire) == 0 || self.has_claimed.swap(false, Ordering::AcqRel) {
                // Nothing of ours is under way, so what we were given and have not acknowledged was left behind; or others'
                // was. What is under way is given once more then, and found in the ledger.
                after.fill(JournalPosition::START);
            }
            let batch = match self.take(&mut after, entries).await {
                Ok(batch) => batch,
                Err(why) => {
                    self.fail("the journal cannot be read", &why);
                    if self.stops_within(patience.next()).await {
                        return;
                    }
                    continue;
                }
            };
            patience = Patience::NEW;
            if batch.positions.is_empty() {
                if self.stops_within(self.config.idle_pause).await {
                    return;
                }
                continue;
            }
            entries = next_count(&batch, entries, self.config.batch_rows);
            self.under_way.fetch_add(1, Ordering::AcqRel);
            if batches.send(batch).await.is_err() {
                return;
            }
        }
    }

    /// Takes about so many entries, from all partitions at once.
    async fn take(
        self: &Arc<Self>,
        after: &mut [JournalPosition],
        entries: usize,
    ) -> Result<Batch, StoreError> {
        let mut taking = JoinSet::new();
        for (partition, after) in (0..).zip(after.iter()) {
            let (desk, after) = (Arc::clone(self), *after);
            taking.spawn(async move {
                (partition, desk.store.journal_take(partition, &desk.reader, after, entries).await)
            });
        }
        let mut batch = Batch::default();
        let mut failed = None;
        while let Some(Ok((partition, taken))) = taking.join_next().await {
            match taken {
                Ok(taken) if taken.is_empty() => {}
                Ok(taken) => {
                    let last = taken.last().map_or(JournalPosition::START, JournalTaken::position);
                    after[usize::from(partition)] = last;
                    self.add(&mut batch, partition, taken);
                }
                // What the others gave is not lost: it is ours, and will be taken again.
                Err(why) => failed = Some(why),
            }
        }
        match failed {
            Some(why) if batch.positions.is_empty() => Err(why),
            _ => Ok(batch),
        }
    }

    fn add(&self, batch: &mut Batch, part: u16, taken: Vec<JournalTaken>) {
        batch.positions.push((part, taken.iter().map(JournalTaken::position).collect()));
        let mut records = Vec::new();
        for one in taken {
            match one {
                JournalTaken::Entry(entry) => {
                    let position = entry.position;
                    Record::all_of(entry, &mut records);
                    batch.arrivals.extend(records.drain(..).map(|record| Arrival { part, position, record }));
                }
                JournalTaken::Unreadable { position, content } => {
                    tracing::error!(%position, %content, "an entry of the journal cannot be read and becomes a dead letter");
                    let now = self.ledger.clock.wall();
                    batch.unreadable.push(DeadLetter::unreadable(part, position, content, now));
                }
                JournalTaken::Gone { position } => {
                    tracing::error!(%position, "an entry was removed from the journal before it was written");
                    self.metrics.gone.increment(1);
                }
            }
        }
    }

    /// A sink that panics ends its writer, and that is said: nothing that it was given is acknowledged.
    async fn write_until_the_end(self: Arc<Self>, batches: mpsc::Receiver<Batch>) {
        if let Err(panic) = tokio::spawn(Arc::clone(&self).write(batches)).await {
            self.stop.cancel();
            self.fail("the writer has ended, so start another", &panic);
        }
    }

    async fn write(self: Arc<Self>, mut batches: mpsc::Receiver<Batch>) {
        while let Some(batch) = batches.recv().await {
            let mut patience = Patience::NEW;
            let written = loop {
                match self.commit(&batch).await {
                    Ok(written) => break written,
                    Err(why) => {
                        self.metrics.failures.increment(1);
                        self.fail("the ledger cannot be written", &why);
                        if self.stops_within(patience.next()).await {
                            // It stays in the journal, for another writer or for the next start.
                            return;
                        }
                    }
                }
            };
            // Before it is acknowledged, so that whoever waits until all is finds all of it counted.
            self.count(written, batch.unreadable.len() as u64);
            self.acknowledge(&batch).await;
            self.under_way.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// A connection that has fallen silent (its server lost its power, a firewall forgot it) never ends by itself.
    async fn commit(&self, batch: &Batch) -> Result<Written, LedgerError> {
        let records = u32::try_from(batch.arrivals.len()).unwrap_or(u32::MAX);
        let patience = LONGEST_WRITE + LONGER_PER_RECORD * records;
        match tokio::time::timeout(patience, self.write_batch(batch)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(fell_silent()),
        }
    }

    async fn write_batch(&self, batch: &Batch) -> Result<Written, LedgerError> {
        if !batch.unreadable.is_empty() {
            self.ledger.book.bury(&batch.unreadable).await?;
        }
        self.ledger.book.write(&batch.arrivals).await
    }

    /// What is not acknowledged is given once more, and found in the ledger; so this may fail.
    async fn acknowledge(&self, batch: &Batch) {
        for (partition, positions) in &batch.positions {
            for some in positions.chunks(MAX_BATCH) {
                if let Err(why) = self.store.journal_acknowledge(*partition, &self.reader.group, some).await {
                    self.fail("entries that are written could not be acknowledged", &why);
                }
            }
        }
    }

    fn count(&self, written: Written, unreadable: u64) {
        let Written { new, known, conflicts, refused } = written;
        self.metrics.rows.increment(new);
        self.metrics.known.increment(known);
        self.metrics.conflicts.increment(conflicts);
        self.metrics.refused.increment(refused + unreadable);
        self.status.send_modify(|status| {
            status.rows += new;
            status.known += known;
            status.dead_letters += conflicts + refused + unreadable;
        });
        self.is_well();
    }

    /// Once per outage: what goes wrong again is in the status.
    fn fail(&self, what: &str, why: &dyn std::fmt::Display) {
        self.status.send_modify(|status| {
            if status.failing.is_none() {
                tracing::error!(%why, "{what}; trying again");
            }
            status.failing = Some(format!("{what}: {why}"));
        });
    }

    async fn tick(self: Arc<Self>) {
        let mut since_claim = Duration::ZERO;
        loop {
            let is_time_to_claim = since_claim >= self.config.claim_after / 2;
            let looked = tokio::time::timeout(LONGEST_WRITE, self.look_around(is_time_to_claim)).await;
            match looked.unwrap_or_else(|_| Err(fell_silent())) {
                Ok(()) if self.under_way.load(Ordering::Acquire) == 0 && !self.stop.is_cancelled() => {
                    self.is_well();
                }
                Ok(()) => {}
                Err(why) => self.fail("the store cannot be looked after", &why),
            }
            let passed = tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(TICK) => TICK,
                () = self.look_now.notified() => LOOK_AGAIN,
            };
            since_claim = if is_time_to_claim { passed } else { since_claim + passed };
        }
    }

    async fn look_around(&self, is_time_to_claim: bool) -> Result<(), LedgerError> {
        let behind = self.look().await?;
        self.metrics.lag.set(behind.as_secs_f64());
        self.status.send_modify(|status| {
            status.behind = behind;
            status.looks += 1;
        });
        if is_time_to_claim {
            self.claim().await?;
        }
        // Last, because what cannot be done about a single campaign must not keep the rest waiting.
        self.ledger.vouch(self.store.as_ref()).await?;
        match resolve_all(self.store.as_ref()).await {
            Err(StoreError::Recovering) | Ok(_) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    fn is_well(&self) {
        self.status.send_if_modified(|status| {
            let was_failing = status.failing.take().is_some();
            if was_failing {
                tracing::info!("the ledger is written again");
            }
            was_failing
        });
    }

    /// How far behind the ledger is. Trims on the way what nobody needs any more.
    async fn look(&self) -> Result<Duration, StoreError> {
        let mut most = Duration::ZERO;
        for partition in 0..self.store.partitions() {
            let standing = self.store.journal_standing(partition, &self.reader.group).await?;
            // An entry of this very millisecond is waiting too.
            let waits = |_| standing.behind.max(Duration::from_millis(1));
            most = most.max(standing.oldest_waiting.map_or(Duration::ZERO, waits));
            // Not simply everything that no group needs: ours may not have been given its first entry yet.
            let done = standing.oldest_waiting.map_or(standing.last, JournalPosition::previous);
            self.store.journal_trim(partition, done).await?;
        }
        Ok(most)
    }

    /// Takes over what others have left lying. The reader finds it as soon as nothing of ours is under way.
    async fn claim(&self) -> Result<(), StoreError> {
        for partition in 0..self.store.partitions() {
            let claimed = self.store.journal_claim(partition, &self.reader, self.config.claim_after).await?;
            if claimed > 0 {
                self.has_claimed.store(true, Ordering::Release);
                tracing::warn!(claimed, partition, "took over entries that another writer has left");
            }
        }
        Ok(())
    }
}

fn fell_silent() -> LedgerError {
    LedgerError::Database(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

/// How many entries to take so that they become about so many rows: an entry has between one row and a thousand.
fn next_count(batch: &Batch, entries: usize, rows: usize) -> usize {
    let taken = batch.positions.iter().map(|(_, positions)| positions.len()).max().unwrap_or(1).max(1);
    let per_entry = (batch.arrivals.len() / taken).max(1);
    // Not more than twice as many at a time: what comes next may be larger.
    (rows / per_entry).clamp(1, (2 * entries).min(MAX_BATCH))
}
