//! What was decided, durably: every change of every campaign, in SQL, exactly once.
//!
//! **Promise:** every change that the store's journal holds becomes one row of the ledger, whatever crashes in between: the
//! writer, the database, the store's answer. Nothing is taken out of the journal before it is committed. A row is never
//! written twice, and the same change with other content is never swallowed: it becomes a [dead letter](DeadLetter).
//! **Not promised:** that a row is there when a grant is answered. It comes a moment later ([`Writer::status`] says how much);
//! until then the store has it, as durably as the store is.
//!
//! ```text
//! lost by a queue and a worker                 kept by a group of readers
//! worker: pop a grant from the list            writer: is given a grant, which stays in the journal
//! worker: dies                                 writer: dies
//!   the grant is nowhere                         another is given it after a while: writes, commits
//!                                                and only then acknowledges; only then it is trimmed
//! ```
//!
//! ```text
//! writer.rs       reads, writes, acknowledges, trims: a task that goes on until it is stopped
//!   record.rs     an entry of the journal becomes rows
//!   sql.rs        the tables; sql/ has what the databases differ in
//!   sink.rs       the user's own tables, in the same transaction
//!   dead_letter.rs  what could not be written, and why
//! recover.rs      the way back when the store has forgotten something
//! audit.rs        granted = persisted + in flight + dead letters, for every campaign
//! export.rs       who has what, as CSV or JSON lines
//! action.rs       what was done by hand, beside it all
//! ```
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use lockgate::{Gate, ledger::{Ledger, WriterConfig}, stock::Terms};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::open("memory").await?; // or redis://…
//! let ledger = Ledger::open("sqlite::memory:").await?; // or postgres://…, mysql://…
//! let writer = ledger.start(gate.store(), WriterConfig::default())?;
//!
//! let coupon = gate.coupon("welcome")?;
//! coupon.open(&Terms::new(100)?).await?;
//! coupon.issue("alice").await?;
//!
//! writer.drained().await;
//! let audit = ledger.audit(gate.store().as_ref()).await?;
//! assert!(audit.is_green());
//! writer.shutdown().await;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use sqlx::{Database, Pool};

use crate::clock::Clock;
use crate::error::without_secrets;
use crate::key::Name;
use crate::store::{Campaign, Store};

mod action;
mod audit;
mod dead_letter;
mod error;
mod export;
mod keeping;
mod metrics;
mod record;
mod recover;
mod sink;
mod sql;
mod writer;

pub use self::action::Action;
pub use self::audit::{Audit, CampaignAudit, Light};
pub use self::dead_letter::{DeadLetter, DeadLetterId};
pub use self::error::LedgerError;
pub use self::export::{Export, Winner};
pub use self::keeping::Erasure;
pub use self::record::{Record, What};
pub use self::recover::{Recovered, Recovery};
pub use self::sink::{Sink, SinkError, SinkFuture};
use self::sql::{Book, SqlBook};
pub use self::writer::{Writer, WriterConfig, WriterStatus};

/// The readers of the journal that write the ledger, unless they are called otherwise.
const GROUP: &str = "ledger";

/// A database that can keep a ledger: `Postgres` (feature `postgres`), `MySql` (`mysql`, also for MariaDB) and `Sqlite`
/// (`sqlite`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database that keeps a ledger",
    note = "`Postgres` needs lockgate's feature `postgres`, `MySql` needs `mysql`, `Sqlite` needs `sqlite`"
)]
pub trait LedgerDatabase: Database + sql::Dialect {}

impl<D: sql::Dialect> LedgerDatabase for D {}

/// See the [module](self). Cheap to clone; all clones are the same ledger.
#[derive(Clone)]
pub struct Ledger {
    book: Arc<dyn Book>,
    group: Name,
    clock: Clock,
    shown: String,
}

impl Ledger {
    /// Connects to `url` (`sqlite:<file>`, `postgres://…`, `mysql://…`, as far as the features allow) and brings the tables
    /// to this version.
    ///
    /// # Errors
    ///
    /// When the URL makes no sense, nobody answers, the tables are of a newer version, or they cannot be created.
    pub async fn open(url: &str) -> Result<Self, LedgerError> {
        let shown = without_secrets(url);
        let unreachable = |why: sqlx::Error| {
            LedgerError::Unfit(format!(
                "cannot open the ledger {shown}: {why}; start the database there, or correct the URL"
            ))
        };
        match url.split(':').next().unwrap_or_default() {
            #[cfg(feature = "sqlite")]
            "sqlite" => Self::on(open_sqlite(url).await.map_err(unreachable)?).await,
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                let options = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS);
                let pool = options.acquire_timeout(PATIENCE).connect(url).await;
                Self::on(pool.map_err(unreachable)?).await
            }
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => {
                let options = sqlx::mysql::MySqlPoolOptions::new().max_connections(CONNECTIONS);
                let pool = options.acquire_timeout(PATIENCE).connect(url).await;
                Self::on(pool.map_err(unreachable)?).await
            }
            _ => Err(LedgerError::Unfit(format!(
                "{shown} is no ledger; write sqlite:<file>, postgres://… or mysql://… \
                 (this program knows those of its features)"
            ))),
        }
        .map(|ledger| Self { shown: shown.clone(), ..ledger })
    }

    /// A ledger in a database that is connected already.
    ///
    /// # Errors
    ///
    /// When the database does not answer, its tables are of a newer version, or they cannot be created.
    pub async fn on<D: LedgerDatabase>(pool: Pool<D>) -> Result<Self, LedgerError> {
        Self::begin(SqlBook::new(pool, None, Clock::system())).await
    }

    /// A ledger that fills tables of the user's own in the same transactions.
    ///
    /// # Errors
    ///
    /// As [`Ledger::on`].
    pub async fn with_sink<D: LedgerDatabase>(
        pool: Pool<D>,
        sink: impl Sink<D>,
    ) -> Result<Self, LedgerError> {
        Self::begin(SqlBook::new(pool, Some(Arc::new(sink)), Clock::system())).await
    }

    async fn begin<D: LedgerDatabase>(book: SqlBook<D>) -> Result<Self, LedgerError> {
        book.migrate().await?;
        let group = Name::new("group", GROUP).map_err(|why| LedgerError::Refused(why.to_string()))?;
        Ok(Self { book: Arc::new(book), group, clock: Clock::system(), shown: D::NAME.to_owned() })
    }

    /// Lets this ledger's writers be a group of readers of their own: every group is given every entry, so two ledgers can be
    /// written from one store. A group that is given up must be dismissed
    /// ([`Store::journal_dismiss`]), or the journal is kept for it for ever.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn named(mut self, group: impl AsRef<str>) -> Result<Self, LedgerError> {
        self.group = Name::new("group", group).map_err(|why| LedgerError::Refused(why.to_string()))?;
        Ok(self)
    }

    /// Begins to write what the store's journal says. Several may write at once, in one process or in many: each takes
    /// what no other has.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime to write in.
    pub fn start(&self, store: &Arc<dyn Store>, config: WriterConfig) -> Result<Writer, LedgerError> {
        Writer::start(self.clone(), Arc::clone(store), config)
    }

    /// The dead letters after the given one, at most so many.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn dead_letters(
        &self,
        after: Option<&DeadLetter>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LedgerError> {
        self.dead_letters_after(after.map(DeadLetter::id), limit).await
    }

    /// The dead letters after the one of that id, which may be gone by now, at most so many.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn dead_letters_after(
        &self,
        after: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LedgerError> {
        self.book.dead_letters(after, limit).await
    }

    /// The dead letters of a campaign or of all, those that have been there for longest first, at most so many.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn oldest_dead_letters(
        &self,
        of: Option<&Campaign>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LedgerError> {
        self.book.oldest_dead_letters(of, limit).await
    }

    /// How many dead letters there are, of a campaign or of all.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn count_dead_letters(&self, of: Option<&Campaign>) -> Result<u64, LedgerError> {
        self.book.count_dead_letters(of).await
    }

    /// The dead letter of that id, if it is still there.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, LedgerError> {
        self.book.dead_letter(id).await
    }

    /// Writes what a dead letter holds and removes the letter, in one transaction; says whether it was still there.
    ///
    /// # Errors
    ///
    /// When the record is refused again, contradicts the ledger or cannot be read: the letter stays. When the database does
    /// not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether it happened; it can be done again.
    pub async fn replay(&self, letter: &DeadLetter) -> Result<bool, LedgerError> {
        let (book, letter) = (Arc::clone(&self.book), letter.clone());
        in_a_task(async move { book.replay(&letter).await }).await
    }

    /// Removes a dead letter for good: what it holds will be missing in every audit. Says whether it was still there.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn discard(&self, letter: &DeadLetter) -> Result<bool, LedgerError> {
        self.book.discard(letter.id()).await
    }

    /// Ends the connections to the database. Shut writers down before.
    pub async fn close(&self) {
        self.book.close().await;
    }
}

/// How many connections a ledger opened by URL has: one writes, the others answer.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const CONNECTIONS: u32 = 4;

/// How long to try to connect before it is said that the database is away. The pool's own half a minute would keep that from
/// the writer's status, and from whoever has mistyped the URL.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A transaction runs in a task of its own: when its caller goes away in the middle, the connection could otherwise come back
/// into the pool with the transaction still open.
async fn in_a_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
) -> Result<T, LedgerError> {
    tokio::spawn(work)
        .await
        .unwrap_or_else(|why| Err(LedgerError::Refused(format!("it was not finished: {why}"))))
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(url: &str) -> Result<sqlx::SqlitePool, sqlx::Error> {
    use std::str::FromStr as _;

    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    // In memory, every connection would be a database of its own.
    let connections = if url.contains(":memory:") { 1 } else { 4 };
    let pool = || SqlitePoolOptions::new().max_connections(connections).idle_timeout(None).max_lifetime(None);
    for _ in 0..SQLITE_TRIES {
        match pool().connect_with(options.clone()).await {
            // Two that are the first at once: the change to a write-ahead log does not wait for the other.
            Err(sqlx::Error::Database(why)) if why.code().as_deref() == Some("5") => {
                tokio::time::sleep(crate::jitter::jittered(SQLITE_PAUSE)).await;
            }
            outcome => return outcome,
        }
    }
    pool().connect_with(options).await
}

/// How often and after what time a file is opened again that somebody else has just locked.
#[cfg(feature = "sqlite")]
const SQLITE_TRIES: u32 = 40;
#[cfg(feature = "sqlite")]
const SQLITE_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("database", &self.shown)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
