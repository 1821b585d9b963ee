//! A writer in a process of its own, so that it can be killed as a machine would be.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use lockgate::Gate;
use lockgate::ledger::{Ledger, Record, Sink, SinkFuture, What};
use lockgate::store::Store;
use lockgate::testing::breakable::BreakableStore;
use sqlx::{PgConnection, PgPool, Postgres};

use super::super::base::Base;
use super::super::quick;

/// Tells a child process what it is: the URLs of the store and of the database, and its [`Manner`] in words.
const WRITER: &str = "LOCKGATE_TEST_LEDGER_WRITER";

/// What a writer does besides writing.
#[derive(Clone, Copy, Default)]
pub(super) struct Manner {
    /// It fills the table `tickets` too.
    pub(super) has_sink: bool,
    /// It hangs in its transaction, when all rows are written and nothing is committed.
    pub(super) hangs: bool,
    /// What it acknowledges does not arrive.
    pub(super) is_mute: bool,
}

/// Somebody's own table. It would take everything, also twice.
pub(super) const TICKETS: &str = "CREATE TABLE tickets (user_id TEXT NOT NULL, seq BIGINT NOT NULL)";

/// Fills it.
pub(super) struct Tickets {
    hangs: bool,
}

impl Tickets {
    /// A ledger that fills it.
    pub(super) async fn ledger(url: &str, hangs: bool) -> Ledger {
        Ledger::with_sink(PgPool::connect(url).await.unwrap(), Tickets { hangs }).await.unwrap()
    }
}

impl Sink<Postgres> for Tickets {
    fn write<'a>(&'a self, transaction: &'a mut PgConnection, records: &'a [Record]) -> SinkFuture<'a> {
        Box::pin(async move {
            for record in records.iter().filter(|record| record.what == What::Issued) {
                sqlx::query("INSERT INTO tickets (user_id, seq) VALUES ($1, $2)")
                    .bind(record.user.as_ref().map(ToString::to_string))
                    .bind(record.seq.and_then(|seq| i64::try_from(seq).ok()))
                    .execute(&mut *transaction)
                    .await?;
            }
            if self.hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

/// Not a test by itself: a process that writes the ledger until it is killed, or its parent is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes() {
    let Ok(orders) = std::env::var(WRITER) else { return };
    let [store, database, manner] = orders.split('\n').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let manner = Manner::read(manner);
    let gate = Gate::open(store).await.unwrap();
    let breakable = Arc::new(BreakableStore::new(Arc::clone(gate.store())));
    if manner.is_mute {
        breakable.refuse_acknowledgements();
    }
    let ledger = if manner.has_sink {
        Tickets::ledger(database, manner.hangs).await
    } else {
        Ledger::open(database).await.unwrap()
    };
    let mut config = quick();
    // Many small transactions: more moments to die in.
    config.batch_rows = 20;
    let store: Arc<dyn Store> = breakable;
    let _writer = ledger.start(&store, config).unwrap();
    println!("ready");
    let end_of_the_parent = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(end_of_the_parent).await.unwrap().unwrap();
    // Not by returning: what is under way would come to its end.
    std::process::exit(0);
}

impl Manner {
    fn written(self) -> String {
        let words = [(self.has_sink, "sink"), (self.hangs, "hangs"), (self.is_mute, "mute")];
        words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }

    fn read(words: &str) -> Self {
        let says = |word| words.split(' ').any(|said| said == word);
        Self { has_sink: says("sink"), hangs: says("hangs"), is_mute: says("mute") }
    }
}

/// A writer process. It is killed when this is dropped.
pub(super) struct WriterProcess(Child);

impl WriterProcess {
    /// Returns when it has begun to write.
    pub(super) fn start(store: &str, base: &Base, manner: Manner) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["ledger::faults::process::a_process_that_writes", "--exact", "--nocapture"])
            .env(WRITER, [store, &base.url, &manner.written()].join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let process = Self(child);
        assert!(lines.any(|line| line.unwrap().ends_with("ready")), "the process did not start");
        // What else it says is of no interest, but somebody must read it.
        std::thread::spawn(move || lines.for_each(drop));
        process
    }

    /// `kill -9`; returns when it is gone.
    pub(super) fn kill(self) {
        drop(self);
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
