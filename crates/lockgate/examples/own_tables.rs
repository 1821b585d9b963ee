//! An application that has had its table `user_coupon` for years, and its coupons issued by Lockgate since today: every grant
//! is a row there, in the same transaction as the ledger's own row.
//!
//! ```sh
//! cargo run --example own_tables --features sqlite
//! ```
//!
//! A worker that pops a list and writes a row loses the row when it dies in between; one that writes first and pops then
//! writes it twice. Here a writer dies in the middle on purpose, and the table has everybody exactly once.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockgate::Gate;
use lockgate::ledger::{Ledger, Record, Sink, SinkError, SinkFuture, What, WriterConfig};
use lockgate::stock::{Issue, Terms};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Sqlite, SqliteConnection};

/// The application's own table, as it was before.
const USER_COUPON: &str = "
    CREATE TABLE user_coupon (
        user_id   TEXT NOT NULL,
        coupon_id TEXT NOT NULL,
        number    INTEGER NOT NULL,
        issued_at INTEGER NOT NULL,
        PRIMARY KEY (user_id, coupon_id)
    )";

/// Writes grants into it.
struct UserCoupons {
    /// Whether the connection to the database is lost in the middle of the next transaction.
    fails_next: Arc<AtomicBool>,
}

impl Sink<Sqlite> for UserCoupons {
    fn write<'a>(&'a self, transaction: &'a mut SqliteConnection, records: &'a [Record]) -> SinkFuture<'a> {
        Box::pin(async move {
            for record in records {
                match record.what {
                    What::Issued => insert(transaction, record).await?,
                    What::Revoked => delete(transaction, record).await?,
                    // Openings, pauses and holds are nothing to this table.
                    _ => {}
                }
            }
            if self.fails_next.swap(false, Ordering::SeqCst) {
                return Err(SinkError::Database(sqlx::Error::WorkerCrashed));
            }
            Ok(())
        })
    }
}

async fn insert(transaction: &mut SqliteConnection, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO user_coupon VALUES (?, ?, ?, ?)")
        .bind(record.user.as_ref().map(|user| user.as_str()))
        .bind(record.campaign.name.as_str())
        .bind(record.seq.and_then(|seq| i64::try_from(seq).ok()))
        .bind(i64::try_from(record.at.as_millis()).ok())
        .execute(transaction)
        .await?;
    Ok(())
}

async fn delete(transaction: &mut SqliteConnection, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM user_coupon WHERE coupon_id = ? AND number = ?")
        .bind(record.campaign.name.as_str())
        .bind(record.seq.and_then(|seq| i64::try_from(seq).ok()))
        .execute(transaction)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // One connection, because the database lives in memory here.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query(USER_COUPON).execute(&pool).await?;

    let gate = Gate::open("memory").await?;
    let coupon = gate.coupon("welcome")?;
    coupon.open(&Terms::new(100)?).await?;
    for person in 0..120 {
        coupon.issue(format!("person-{person}")).await?;
    }

    let fails_next = Arc::new(AtomicBool::new(true));
    let sink = UserCoupons { fails_next: Arc::clone(&fails_next) };
    let ledger = Ledger::with_sink(pool.clone(), sink).await?;
    let writer = ledger.start(gate.store(), WriterConfig::default())?;
    writer.drained().await;
    writer.shutdown().await;

    let rows: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM user_coupon").fetch_one(&pool).await?;
    let grants: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM lockgate_grants").fetch_one(&pool).await?;
    assert!(!fails_next.load(Ordering::SeqCst), "the first transaction was to fail");
    assert_eq!((rows, grants), (100, 100));
    assert_eq!(coupon.issue("person-0").await?, Issue::AlreadyIssued { seq: 1 });
    let audit = ledger.audit(gate.store().as_ref()).await?;
    assert!(audit.is_green());
    println!("{rows} rows in user_coupon, {grants} in the ledger; the audit is {}", audit.light().as_str());
    Ok(())
}
