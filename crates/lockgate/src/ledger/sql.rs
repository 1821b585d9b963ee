//! The ledger's tables, in any of the databases.
//!
//! **Promise:** a record is there once, under (campaign, rev), or it is a dead letter; with it is what the [`Sink`] wrote, or
//! neither is. Writing again what is there changes nothing. The same rev with other content is never swallowed: it becomes a
//! dead letter that says so.
//!
//! ```text
//! write ── all of it, plainly ──▶ committed                    what nearly always happens
//!             │ a row was there before
//!             ▼
//!          read what is there ── same: left out ── other: dead letter ── the rest: plainly
//!             │ a record that the database or the sink will never take
//!             ▼
//!          in two halves, and so on, until it stands alone ──▶ dead letter
//! ```
//!
//! A plain insert is the fastest that every database has (`COPY`, or one statement with many rows), and what is there already
//! is the exception; so nothing is asked beforehand.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, Pool};

use super::action::Action;
use super::dead_letter::{Buried, DeadLetter, DeadLetterId};
use super::error::LedgerError;
use super::record::{Record, What};
use super::sink::Sink;
use crate::clock::{Clock, Timestamp};
use crate::key::Name;
use crate::store::{Campaign, JournalPosition};

mod dialect;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod text;
mod writing;

pub(super) use self::dialect::{Dialect, Row, Value};
pub(super) use self::text::{read_text, text};

/// The version of the tables that this program writes.
pub(super) const SCHEMA_VERSION: i64 = 2;

/// The statements that bring the tables from one version to the next, the first of them from none.
type Migrations = [&'static str; 2];

/// What tables of that version lack.
fn pending(migrations: &'static Migrations, found: i64) -> impl Iterator<Item = &'static str> {
    migrations.iter().copied().skip(usize::try_from(found).unwrap_or(0))
}

/// A record, and where in the journal it came from.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub(super) part: u16,
    pub(super) position: JournalPosition,
    pub(super) record: Record,
}

/// What became of some records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) new: u64,
    pub(super) known: u64,
    pub(super) conflicts: u64,
    pub(super) refused: u64,
}

impl std::ops::Add for Written {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            new: self.new + other.new,
            known: self.known + other.known,
            conflicts: self.conflicts + other.conflicts,
            refused: self.refused + other.refused,
        }
    }
}

/// A campaign that the ledger knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) id: i64,
    pub(super) campaign: Campaign,
    /// Rows up to this one were removed by retention.
    pub(super) purged_rev: u64,
    /// What they were in grants.
    pub(super) purged_granted: i64,
}

/// What the ledger has of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) rows: u64,
    pub(super) last_rev: u64,
    pub(super) granted: i64,
}

pub(super) type BookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

/// What the rest of the ledger asks of the tables, whatever the database.
pub(super) trait Book: Send + Sync + 'static {
    fn migrate(&self) -> BookFuture<'_, ()>;
    fn write<'a>(&'a self, arrivals: &'a [Arrival]) -> BookFuture<'a, Written>;
    fn bury<'a>(&'a self, letters: &'a [DeadLetter]) -> BookFuture<'a, ()>;
    fn dead_letters(&self, after: Option<DeadLetterId>, limit: usize) -> BookFuture<'_, Vec<DeadLetter>>;
    fn oldest_dead_letters<'a>(
        &'a self,
        of: Option<&'a Campaign>,
        limit: usize,
    ) -> BookFuture<'a, Vec<DeadLetter>>;
    fn dead_letter(&self, id: DeadLetterId) -> BookFuture<'_, Option<DeadLetter>>;
    fn count_dead_letters<'a>(&'a self, of: Option<&'a Campaign>) -> BookFuture<'a, u64>;
    fn buried(&self) -> BookFuture<'_, Vec<Buried>>;
    fn replay<'a>(&'a self, letter: &'a DeadLetter) -> BookFuture<'a, bool>;
    fn discard(&self, letter: DeadLetterId) -> BookFuture<'_, bool>;
    fn campaigns(&self) -> BookFuture<'_, Vec<Known>>;
    fn totals(&self, campaign: i64, through: u64) -> BookFuture<'_, Totals>;
    fn last_rev(&self, campaign: i64) -> BookFuture<'_, u64>;
    fn records<'a>(&'a self, known: &'a Known, after: u64, limit: usize) -> BookFuture<'a, Vec<Record>>;
    fn revoked(&self, campaign: i64) -> BookFuture<'_, HashSet<u64>>;
    /// The numbers that are the user's; `None` when no row is.
    fn seqs_of<'a>(&'a self, campaign: i64, user: &'a Name) -> BookFuture<'a, Option<Vec<u64>>>;
    fn rewrite<'a>(&'a self, letter: &'a DeadLetter) -> BookFuture<'a, ()>;
    fn erase<'a>(&'a self, user: &'a Name) -> BookFuture<'a, u64>;
    fn purge<'a>(&'a self, known: &'a Known, totals: Totals) -> BookFuture<'a, u64>;
    fn note_actions<'a>(&'a self, actions: &'a [Action]) -> BookFuture<'a, ()>;
    fn actions(&self, limit: usize) -> BookFuture<'_, Vec<Action>>;
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// See the [module](self).
pub(super) struct SqlBook<D: Dialect> {
    pool: Pool<D>,
    sink: Option<Arc<dyn Sink<D>>>,
    clock: Clock,
    /// The ids of campaigns, as far as they were asked for.
    ids: Mutex<HashMap<Campaign, i64>>,
}

/// A connection that goes back to the pool when its work has come to an end, whatever end. Whoever is given up in the middle
/// has waited for an answer in vain: so would the pool, which would then have one connection less for ever.
struct Lent<D: Dialect> {
    connection: PoolConnection<D>,
    is_finished: bool,
}

impl<D: Dialect> Lent<D> {
    fn finish(mut self) {
        self.is_finished = true;
    }
}

impl<D: Dialect> Drop for Lent<D> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.connection.close_on_drop();
        }
    }
}

impl<D: Dialect> SqlBook<D> {
    pub(super) fn new(pool: Pool<D>, sink: Option<Arc<dyn Sink<D>>>, clock: Clock) -> Self {
        Self { pool, sink, clock, ids: Mutex::default() }
    }

    async fn fetch(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, LedgerError> {
        let mut lent = self.lend().await?;
        let rows = D::fetch(&mut lent.connection, sql, values).await;
        lent.finish();
        Ok(rows?)
    }

    async fn lend(&self) -> Result<Lent<D>, sqlx::Error> {
        Ok(Lent { connection: self.pool.acquire().await?, is_finished: false })
    }

    async fn letters(&self, sql: &str, values: &[Value]) -> Result<Vec<DeadLetter>, LedgerError> {
        self.fetch(sql, values).await?.into_iter().map(DeadLetter::read).collect()
    }

    async fn page(&self, known: &Known, after: u64, limit: usize) -> Result<Vec<Record>, LedgerError> {
        let values = [Value::Integer(known.id), number(after), limit_of(limit)];
        let rows = self.fetch(SELECT_PAGE, &values).await?;
        rows.into_iter().map(|row| read_record(&known.campaign, row)).collect()
    }
}

const SELECT_PAGE: &str = "SELECT rev, at_us, what, seq, user_id, quantity, detail FROM lockgate_ledger \
     WHERE campaign = ? AND rev > ? ORDER BY rev LIMIT ?";
const SELECT_LETTERS: &str =
    "SELECT part, place, rev, called, granted, conflict, reason, content, at_us FROM lockgate_dead_letters";
const REMOVE_LETTER: &str = "DELETE FROM lockgate_dead_letters WHERE part = ? AND place = ? AND rev = ?";

async fn bury_over<D: Dialect>(
    connection: &mut D::Connection,
    letters: &[DeadLetter],
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    for letter in letters {
        D::execute(&mut transaction, &bury_statement::<D>(), &letter.values()).await?;
    }
    transaction.commit().await
}

fn bury_statement<D: Dialect>() -> String {
    D::insert_unless_there(
        "lockgate_dead_letters (part, place, rev, called, granted, conflict, reason, content, at_us)",
        9,
    )
}

fn number(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn limit_of(limit: usize) -> Value {
    Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX))
}

/// The condition that a dead letter is of this campaign, if one is asked for.
fn of_campaign(campaign: Option<&Campaign>) -> (&'static str, Vec<Value>) {
    match campaign {
        Some(campaign) => ("called = ?", vec![Value::Text(text(&campaign.called()))]),
        None => ("1 = 1", Vec::new()),
    }
}

/// The values of a row, in the order of the columns.
fn record_values(id: i64, record: &Record) -> [Value; 8] {
    [
        Value::Integer(id),
        number(record.rev),
        number(record.at.as_micros()),
        Value::Text(record.what.as_str().to_owned()),
        record.seq.map_or(Value::Null, number),
        Value::text_or_null(record.user.as_ref().map(|user| text(user.as_str()))),
        record.quantity.map_or(Value::Null, number),
        Value::text_or_null(record.detail.as_deref().map(text)),
    ]
}

fn read_record(campaign: &Campaign, row: Row) -> Result<Record, LedgerError> {
    let bad = || {
        LedgerError::Unfit(format!(
            "a row of {campaign:?} in the ledger makes no sense; restore it from a backup"
        ))
    };
    let unsigned = |value: &Value| value.integer().and_then(|number| u64::try_from(number).ok());
    let [rev, at, what, seq, user, quantity, detail] = <[Value; 7]>::try_from(row).map_err(|_| bad())?;
    let user = match user.into_text().as_deref() {
        // Nobody: either it is about nobody, or the user was erased.
        None | Some("") => None,
        Some(user) => Some(Name::new("user", read_text(user)).map_err(|_| bad())?),
    };
    Ok(Record {
        campaign: campaign.clone(),
        rev: unsigned(&rev).ok_or_else(bad)?,
        at: Timestamp::from_micros(unsigned(&at).ok_or_else(bad)?),
        what: what.into_text().and_then(|what| What::from_word(&what)).ok_or_else(bad)?,
        seq: unsigned(&seq),
        user,
        quantity: unsigned(&quantity),
        detail: detail.into_text().map(|detail| read_text(&detail).into_owned()),
    })
}

impl<D: Dialect> Book for SqlBook<D> {
    fn migrate(&self) -> BookFuture<'_, ()> {
        Box::pin(async move {
            let mut connection = self.pool.acquire().await?;
            match D::migrate(&mut connection).await? {
                found if found > SCHEMA_VERSION => Err(LedgerError::Unfit(format!(
                    "the ledger's tables have version {found}, and this version of Lockgate knows {SCHEMA_VERSION}; \
                     use the version that wrote them"
                ))),
                _ => Ok(()),
            }
        })
    }

    fn write<'a>(&'a self, arrivals: &'a [Arrival]) -> BookFuture<'a, Written> {
        Box::pin(async move {
            match arrivals {
                [] => Ok(Written::default()),
                arrivals => self.write_all(arrivals).await,
            }
        })
    }

    fn bury<'a>(&'a self, letters: &'a [DeadLetter]) -> BookFuture<'a, ()> {
        Box::pin(async move {
            let mut lent = self.lend().await?;
            let outcome = bury_over::<D>(&mut lent.connection, letters).await;
            lent.finish();
            Ok(outcome?)
        })
    }

    fn dead_letters(&self, after: Option<DeadLetterId>, limit: usize) -> BookFuture<'_, Vec<DeadLetter>> {
        Box::pin(async move {
            let first = [Value::Integer(0), Value::Text(String::new()), Value::Integer(0)];
            let [part, place, rev] = after.map_or(first, |after| after.values());
            let same = (part.clone(), place.clone());
            let values = [part.clone(), part, place, same.0, same.1, rev, limit_of(limit)];
            let sql = format!(
                "{SELECT_LETTERS} WHERE part > ? OR (part = ? AND place > ?) OR (part = ? AND place = ? AND rev > ?) \
                 ORDER BY part, place, rev LIMIT ?"
            );
            self.letters(&sql, &values).await
        })
    }

    fn oldest_dead_letters<'a>(
        &'a self,
        of: Option<&'a Campaign>,
        limit: usize,
    ) -> BookFuture<'a, Vec<DeadLetter>> {
        Box::pin(async move {
            let (condition, mut values) = of_campaign(of);
            values.push(limit_of(limit));
            let sql = format!("{SELECT_LETTERS} WHERE {condition} ORDER BY at_us, part, place, rev LIMIT ?");
            self.letters(&sql, &values).await
        })
    }

    fn dead_letter(&self, id: DeadLetterId) -> BookFuture<'_, Option<DeadLetter>> {
        Box::pin(async move {
            let sql = format!("{SELECT_LETTERS} WHERE part = ? AND place = ? AND rev = ?");
            Ok(self.letters(&sql, &id.values()).await?.pop())
        })
    }

    fn count_dead_letters<'a>(&'a self, of: Option<&'a Campaign>) -> BookFuture<'a, u64> {
        Box::pin(async move {
            let (condition, values) = of_campaign(of);
            let sql = format!("SELECT COUNT(*) FROM lockgate_dead_letters WHERE {condition}");
            Ok(numbers_in(self.fetch(&sql, &values).await?).next().unwrap_or(0))
        })
    }

    fn buried(&self) -> BookFuture<'_, Vec<Buried>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT called, rev, granted, conflict FROM lockgate_dead_letters ORDER BY called, rev LIMIT {}",
                Buried::MOST
            );
            self.fetch(&sql, &[]).await?.into_iter().map(Buried::read).collect()
        })
    }

    fn replay<'a>(&'a self, letter: &'a DeadLetter) -> BookFuture<'a, bool> {
        Box::pin(self.try_again(letter))
    }

    fn discard(&self, letter: DeadLetterId) -> BookFuture<'_, bool> {
        Box::pin(async move {
            let mut connection = self.pool.acquire().await?;
            Ok(D::execute(&mut connection, REMOVE_LETTER, &letter.values()).await? > 0)
        })
    }

    fn campaigns(&self) -> BookFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let sql = "SELECT id, called, purged_rev, purged_granted FROM lockgate_campaigns ORDER BY id";
            let rows = self.fetch(sql, &[]).await?;
            rows.into_iter().map(read_known).collect()
        })
    }

    fn totals(&self, campaign: i64, through: u64) -> BookFuture<'_, Totals> {
        Box::pin(async move {
            let sql = format!(
                "SELECT COUNT(*), MAX(rev), CAST(SUM(CASE WHEN what IN ('issued', 'bought', 'confirmed') THEN quantity \
                 WHEN what = 'revoked' THEN -quantity ELSE 0 END) AS {}) \
                 FROM lockgate_ledger WHERE campaign = ? AND rev <= ?",
                D::INTEGER
            );
            let rows = self.fetch(&sql, &[Value::Integer(campaign), number(through)]).await?;
            let numbers: Vec<_> =
                rows.into_iter().flatten().map(|value| value.integer().unwrap_or(0)).collect();
            let unsigned = |place: usize| numbers.get(place).and_then(|number| u64::try_from(*number).ok());
            Ok(Totals {
                rows: unsigned(0).unwrap_or(0),
                last_rev: unsigned(1).unwrap_or(0),
                granted: numbers.get(2).copied().unwrap_or(0),
            })
        })
    }

    fn last_rev(&self, campaign: i64) -> BookFuture<'_, u64> {
        Box::pin(async move {
            let sql = "SELECT MAX(rev) FROM lockgate_ledger WHERE campaign = ?";
            let rows = self.fetch(sql, &[Value::Integer(campaign)]).await?;
            let last = rows.first().and_then(|row| row.first()).and_then(Value::integer);
            Ok(last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0))
        })
    }

    fn records<'a>(&'a self, known: &'a Known, after: u64, limit: usize) -> BookFuture<'a, Vec<Record>> {
        Box::pin(self.page(known, after, limit))
    }

    fn revoked(&self, campaign: i64) -> BookFuture<'_, HashSet<u64>> {
        Box::pin(async move {
            let sql = "SELECT seq FROM lockgate_ledger WHERE campaign = ? AND what = 'revoked'";
            let rows = self.fetch(sql, &[Value::Integer(campaign)]).await?;
            Ok(numbers_in(rows).collect())
        })
    }

    fn seqs_of<'a>(&'a self, campaign: i64, user: &'a Name) -> BookFuture<'a, Option<Vec<u64>>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT DISTINCT seq FROM lockgate_ledger WHERE campaign = ? AND {} ORDER BY seq",
                D::IS_USER
            );
            let rows =
                self.fetch(&sql, &[Value::Integer(campaign), Value::Text(text(user.as_str()))]).await?;
            Ok((!rows.is_empty()).then(|| numbers_in(rows).collect()))
        })
    }

    fn rewrite<'a>(&'a self, letter: &'a DeadLetter) -> BookFuture<'a, ()> {
        Box::pin(async move {
            let [part, place, rev, _, _, _, reason, content, _] = letter.values();
            let sql = "UPDATE lockgate_dead_letters SET reason = ?, content = ? WHERE part = ? AND place = ? AND rev = ?";
            let mut connection = self.pool.acquire().await?;
            D::execute(&mut connection, sql, &[reason, content, part, place, rev]).await?;
            Ok(())
        })
    }

    fn erase<'a>(&'a self, user: &'a Name) -> BookFuture<'a, u64> {
        Box::pin(async move {
            let mut connection = self.pool.acquire().await?;
            let sql = format!(
                "UPDATE lockgate_ledger SET user_id = '', detail = {} WHERE {}",
                D::ERASED_DETAIL,
                D::IS_USER
            );
            Ok(D::execute(&mut connection, &sql, &[Value::Text(text(user.as_str()))]).await?)
        })
    }

    fn purge<'a>(&'a self, known: &'a Known, totals: Totals) -> BookFuture<'a, u64> {
        Box::pin(async move {
            let mut transaction = self.pool.begin().await?;
            let note = "UPDATE lockgate_campaigns SET purged_rev = ?, purged_granted = purged_granted + ? WHERE id = ?";
            let values = [number(totals.last_rev), Value::Integer(totals.granted), Value::Integer(known.id)];
            D::execute(&mut transaction, note, &values).await?;
            let remove = "DELETE FROM lockgate_ledger WHERE campaign = ? AND rev <= ?";
            let values = [Value::Integer(known.id), number(totals.last_rev)];
            let removed = D::execute(&mut transaction, remove, &values).await?;
            transaction.commit().await?;
            Ok(removed)
        })
    }

    fn note_actions<'a>(&'a self, actions: &'a [Action]) -> BookFuture<'a, ()> {
        Box::pin(async move {
            let sql =
                D::insert_unless_there("lockgate_actions (id, at_us, action, target, outcome, address)", 6);
            let mut transaction = self.pool.begin().await?;
            for action in actions {
                D::execute(&mut transaction, &sql, &action.values()).await?;
            }
            Ok(transaction.commit().await?)
        })
    }

    fn actions(&self, limit: usize) -> BookFuture<'_, Vec<Action>> {
        Box::pin(async move {
            let sql = "SELECT id, at_us, action, target, outcome, address FROM lockgate_actions \
                 ORDER BY at_us DESC, id DESC LIMIT ?";
            self.fetch(sql, &[limit_of(limit)]).await?.into_iter().map(Action::read).collect()
        })
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.pool.close())
    }
}

fn numbers_in(rows: Vec<Row>) -> impl Iterator<Item = u64> {
    let numbers = rows.into_iter().flatten().filter_map(|value| value.integer());
    numbers.filter_map(|number| u64::try_from(number).ok())
}

fn read_known(row: Row) -> Result<Known, LedgerError> {
    let bad =
        || LedgerError::Unfit("a row of lockgate_campaigns makes no sense; restore it from a backup".into());
    let [id, called, purged_rev, purged_granted] = <[Value; 4]>::try_from(row).map_err(|_| bad())?;
    let called = called.into_text().ok_or_else(bad)?;
    Ok(Known {
        id: id.integer().ok_or_else(bad)?,
        campaign: Campaign::from_called(&read_text(&called)).ok_or_else(bad)?,
        purged_rev: purged_rev.integer().and_then(|rev| u64::try_from(rev).ok()).unwrap_or(0),
        purged_granted: purged_granted.integer().unwrap_or(0),
    })
}
