//! Rows a second: how fast the database takes them at best, by what people write, and from our journal.

use std::fmt::Write as _;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::ledger::WriterConfig;
use sqlx::{MySqlPool, PgPool, QueryBuilder, SqlitePool};
use tokio::sync::Mutex;

use super::database::{Database, Pool};
use super::journal::Journal;
use crate::bench::Failure;
use crate::bench::frame::{Case, Contender, Doing, Role};
use crate::bench::tally::{Tallies, Tally};

/// How many rows one statement has where a database knows no `COPY`, and one transaction of the naive way.
const AT_ONCE: usize = 1_000;

/// The naive way gets fewer rows: it is so slow that the others would be measured on another day.
const NAIVE_SHARE: u64 = 10;

pub(super) fn case<'a>(database: &'a Database, redis: &str, rows: u64) -> Case<'a> {
    let pool = || database.pool.clone();
    let contenders: Vec<Box<dyn Contender + 'a>> = vec![
        Box::new(Limit { pool: pool(), rows, lines: Mutex::default() }),
        Box::new(Naive { pool: pool(), rows: (rows / NAIVE_SHARE).max(1) }),
        Box::new(Ours { database, redis: redis.to_owned(), rows, journal: Mutex::default() }),
    ];
    Case { name: format!("ledger: {rows} rows of issued coupons"), tasks: 1, contenders }
}

/// What everybody writes in the row of that number.
fn user(number: i64) -> String {
    format!("user-{number}")
}

/// Microseconds since 1970: any moment will do.
const AT: i64 = 1_800_000_000_000_000;

fn numbers(rows: u64) -> Result<Vec<i64>, Failure> {
    Ok((1..=i64::try_from(rows)?).collect())
}

/// The rows are made beforehand, so that only the database is measured.
struct Limit {
    pool: Pool,
    rows: u64,
    lines: Mutex<Vec<Vec<u8>>>,
}

impl Contender for Limit {
    fn name(&self) -> &'static str {
        match self.pool {
            Pool::Postgres(_) => "COPY, 5,000 rows a transaction",
            _ => "INSERT of 1,000 rows each, 5,000 a transaction",
        }
    }

    fn role(&self) -> Role {
        Role::Limit
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            self.pool.clear("bench_rows").await?;
            if let Pool::Postgres(_) = self.pool {
                let numbers = numbers(self.rows)?;
                *self.lines.lock().await = numbers.chunks(transaction_rows()).map(copy_lines).collect();
            }
            Ok(())
        })
    }

    fn turn(&self, _: usize, _: Duration) -> Doing<'_, Tallies> {
        Box::pin(async {
            let numbers = numbers(self.rows)?;
            let mut stopwatch = Stopwatch::start()?;
            match &self.pool {
                Pool::Postgres(pool) => {
                    for lines in self.lines.lock().await.drain(..) {
                        stopwatch.time(copy(pool, lines)).await?;
                    }
                }
                Pool::MySql(pool) => {
                    for some in numbers.chunks(transaction_rows()) {
                        stopwatch.time(insert_into_mysql(pool, some)).await?;
                    }
                }
                Pool::Sqlite(pool) => {
                    for some in numbers.chunks(transaction_rows()) {
                        stopwatch.time(insert_into_sqlite(pool, some)).await?;
                    }
                }
            }
            stopwatch.stop(self.rows)
        })
    }
}

/// As many as a writer of ours puts into one.
fn transaction_rows() -> usize {
    WriterConfig::default().batch_rows
}

fn copy_lines(numbers: &[i64]) -> Vec<u8> {
    let mut lines = String::with_capacity(numbers.len() * 64);
    for number in numbers {
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "1\t{number}\t{AT}\tissued\t{number}\t{}\t1\t\\N", user(*number));
    }
    lines.into_bytes()
}

async fn copy(pool: &PgPool, lines: Vec<u8>) -> Result<(), Failure> {
    let mut transaction = pool.begin().await?;
    let copy = "COPY bench_rows (campaign, rev, at_us, what, seq, user_id, quantity, detail) FROM STDIN";
    let mut copy = transaction.copy_in_raw(copy).await?;
    copy.send(lines).await?;
    copy.finish().await?;
    Ok(transaction.commit().await?)
}

const INSERT: &str = "INSERT INTO bench_rows (campaign, rev, at_us, what, seq, user_id, quantity) ";

/// The same words for two databases.
macro_rules! insert_many {
    ($insert_into:ident, $pool:ty) => {
        async fn $insert_into(pool: &$pool, numbers: &[i64]) -> Result<(), Failure> {
            let mut transaction = pool.begin().await?;
            for some in numbers.chunks(AT_ONCE) {
                let mut insert = QueryBuilder::new(INSERT);
                insert.push_values(some, |mut row, number| {
                    row.push("1").push_bind(*number).push_bind(AT).push_bind("issued").push_bind(*number);
                    row.push_bind(user(*number)).push("1");
                });
                insert.build().execute(&mut *transaction).await?;
            }
            Ok(transaction.commit().await?)
        }
    };
}

insert_many!(insert_into_mysql, MySqlPool);
insert_many!(insert_into_sqlite, SqlitePool);

/// A worker that inserts what it has popped, row by row, and commits every thousand.
struct Naive {
    pool: Pool,
    rows: u64,
}

impl Contender for Naive {
    fn name(&self) -> &'static str {
        "an INSERT per row, 1,000 a transaction"
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(self.pool.clear("bench_rows"))
    }

    fn turn(&self, _: usize, _: Duration) -> Doing<'_, Tallies> {
        Box::pin(async {
            let numbers = numbers(self.rows)?;
            let mut stopwatch = Stopwatch::start()?;
            for some in numbers.chunks(AT_ONCE) {
                match &self.pool {
                    Pool::Postgres(pool) => stopwatch.time(insert_singly_into_postgres(pool, some)).await?,
                    Pool::MySql(pool) => stopwatch.time(insert_singly_into_mysql(pool, some)).await?,
                    Pool::Sqlite(pool) => stopwatch.time(insert_singly_into_sqlite(pool, some)).await?,
                }
            }
            stopwatch.stop(self.rows)
        })
    }
}

/// The same words for three databases, but for how they write a value's place.
macro_rules! insert_singly {
    ($insert_into:ident, $pool:ty, $values:literal) => {
        async fn $insert_into(pool: &$pool, numbers: &[i64]) -> Result<(), Failure> {
            let mut transaction = pool.begin().await?;
            for number in numbers {
                let insert = concat!(
                    "INSERT INTO bench_rows (campaign, rev, at_us, what, seq, user_id, quantity) ",
                    $values
                );
                sqlx::query(insert)
                    .bind(number)
                    .bind(AT)
                    .bind(number)
                    .bind(user(*number))
                    .execute(&mut *transaction)
                    .await?;
            }
            Ok(transaction.commit().await?)
        }
    };
}

insert_singly!(insert_singly_into_postgres, PgPool, "VALUES (1, $1, $2, 'issued', $3, $4, 1)");
insert_singly!(insert_singly_into_mysql, MySqlPool, "VALUES (1, ?, ?, 'issued', ?, ?, 1)");
insert_singly!(insert_singly_into_sqlite, SqlitePool, "VALUES (1, ?, ?, 'issued', ?, ?, 1)");

/// From the start of a writer until the journal has nothing that is not written.
struct Ours<'a> {
    database: &'a Database,
    redis: String,
    rows: u64,
    journal: Mutex<Option<Journal>>,
}

impl Contender for Ours<'_> {
    fn name(&self) -> &'static str {
        "lockgate, from a full journal"
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            let mut journal = Journal::fresh(&self.redis).await?;
            journal.fill(self.rows).await?;
            *self.journal.lock().await = Some(journal);
            Ok(())
        })
    }

    fn turn(&self, _: usize, _: Duration) -> Doing<'_, Tallies> {
        Box::pin(async {
            let journal = self.journal.lock().await.take().ok_or("no journal was filled")?;
            let ledger = self.database.empty_ledger().await?;
            let mut stopwatch = Stopwatch::start()?;
            let writer = journal.start_writer(&ledger)?;
            stopwatch.time(journal.drained()).await?;
            let tallies = stopwatch.stop(self.rows)?;
            writer.shutdown().await;
            let written = self.database.pool.count("SELECT COUNT(*) FROM lockgate_ledger").await?;
            if u64::try_from(written)? != self.rows + 1 {
                return Err(format!("{written} rows were written, not {} and the opening", self.rows).into());
            }
            Ok(tallies)
        })
    }
}

/// Times a turn that lasts as long as it takes.
struct Stopwatch {
    clock: Clock,
    start: lockgate::clock::Moment,
    tally: Tally,
}

impl Stopwatch {
    fn start() -> Result<Self, Failure> {
        let clock = Clock::system();
        let start = clock.monotonic();
        Ok(Self { clock, start, tally: Tally::new()? })
    }

    async fn time(&mut self, step: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
        let before = self.clock.monotonic();
        step.await?;
        let nanos = self.clock.monotonic().since(before).as_nanos();
        self.tally.latencies.record(u64::try_from(nanos)?)
    }

    fn stop(mut self, rows: u64) -> Result<Tallies, Failure> {
        let seconds = self.clock.monotonic().since(self.start).as_secs_f64();
        self.tally.operations = rows;
        let mut tallies = Tallies::new()?;
        tallies.add(&self.tally)?;
        tallies.seconds = Some(seconds);
        Ok(tallies)
    }
}
