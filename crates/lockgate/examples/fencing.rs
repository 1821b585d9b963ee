//! What a lock alone cannot prevent, and what the fence in the database does about it.
//!
//! ```sh
//! cargo run -p lockgate --features sqlite --example fencing
//! ```
//!
//! A shop keeps its stock in SQLite, and sells under a lock: read the quantity, take one away, write it back.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockgate::Gate;
use lockgate::fencing::{self, FenceError, Fenced};
use lockgate::lock::MutexGuard;
use lockgate::store::Token;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{SqliteConnection, SqlitePool};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome {
    let folder = Folder::create()?;
    let shop = Shop::open(folder.path()).await?;
    a_holder_that_slept_is_refused(&shop).await?;
    released_before_the_commit_a_sale_is_lost(&shop).await?;
    released_before_the_commit_but_refused(&shop).await?;
    released_after_the_commit_all_sales_count(&shop).await?;
    shop.pool.close().await;
    Ok(())
}

async fn a_holder_that_slept_is_refused(shop: &Shop) -> Outcome {
    println!("1. Anna's lease runs out while she sleeps.");
    shop.stock_up(10).await?;
    let anna = lock(&shop.gate, SHORT).await?;
    let seen_by_anna = shop.quantity().await?;
    tokio::time::sleep(SHORT * 2).await;

    let ben = lock(&shop.gate, LONG).await?;
    println!("   Ben gets the lock with fence {}, above Anna's {}, and sells.", ben.fence(), anna.fence());
    assert!(ben.fence() > anna.fence());
    assert!(anna.check().is_err(), "she could know, if she asked");
    sell(shop, &ben).await?;
    ben.release().await?;

    println!("   Anna wakes up, still believes in a stock of {seen_by_anna}, and wants to write.");
    let refused = must_be_refused(sell(shop, &anna).await)?;
    println!("   Refused: {refused}");
    assert_eq!(shop.quantity().await?, 9, "one sale, one less");
    Ok(())
}

/// `fencing::begin` would not compile here: its transaction borrows the guard's name until the commit.
async fn released_before_the_commit_a_sale_is_lost(shop: &Shop) -> Outcome {
    println!("\n2. The wrong way: Anna releases the lock, and commits then.");
    shop.stock_up(10).await?;
    let anna = lock(&shop.gate, LONG).await?;
    let mut annas = shop.pool.begin().await?;
    fencing::check_and_raise(&mut *annas, anna.name().as_str(), anna.fence()).await?;
    take_one_away(&mut annas).await?;
    anna.release().await?;

    let ben = lock(&shop.gate, LONG).await?;
    let seen_by_ben = shop.quantity().await?;
    println!("   Ben gets the lock and reads {seen_by_ben}: Anna's sale is not there yet.");
    annas.commit().await?;
    let mut bens = fencing::begin(&shop.pool, ben.name().as_str(), ben.fence()).await?;
    write_quantity(&mut bens, seen_by_ben - 1).await?;
    bens.commit().await?;
    ben.release().await?;

    let left = shop.quantity().await?;
    println!("   Two sales, and {left} of 10 are left. Ben's fence is the higher one: it cannot help Anna.");
    assert_eq!(left, 9, "one sale is lost");
    Ok(())
}

async fn released_before_the_commit_but_refused(shop: &Shop) -> Outcome {
    println!("\n3. The same mistake, but Ben writes first: now the fence notices.");
    shop.stock_up(10).await?;
    let anna = lock(&shop.gate, LONG).await?;
    let (annas_name, annas_fence) = (anna.name().to_owned(), anna.fence());
    anna.release().await?;

    let ben = lock(&shop.gate, LONG).await?;
    sell(shop, &ben).await?;
    ben.release().await?;

    let late = fencing::begin(&shop.pool, annas_name.as_str(), annas_fence).await.map(drop);
    must_be_refused(late)?;
    println!("   Anna is refused, and knows that she has sold nothing.");
    assert_eq!(shop.quantity().await?, 9, "one sale, one less");
    Ok(())
}

async fn released_after_the_commit_all_sales_count(shop: &Shop) -> Outcome {
    println!("\n4. The right way: lock, check first, read and write, commit, release.");
    shop.stock_up(10).await?;
    tokio::try_join!(lock_sell_unlock(shop), lock_sell_unlock(shop), lock_sell_unlock(shop))?;
    let left = shop.quantity().await?;
    println!("   Three sales at once, and {left} of 10 are left.");
    assert_eq!(left, 7, "every sale counts");
    Ok(())
}

async fn lock_sell_unlock(shop: &Shop) -> Outcome {
    let held = lock(&shop.gate, LONG).await?;
    sell(shop, &held).await?;
    held.release().await?;
    Ok(())
}

/// The pattern to copy. The lock cannot be released in here: it is only borrowed.
async fn sell(shop: &Shop, held: &MutexGuard) -> Result<(), FenceError> {
    let mut tx = fencing::begin(&shop.pool, held.name().as_str(), held.fence()).await?;
    take_one_away(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// In two steps, as programs do it whose rules do not fit into one statement.
async fn take_one_away(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let quantity = read_quantity(connection).await?;
    write_quantity(connection, quantity - 1).await
}

async fn read_quantity(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT quantity FROM stock").fetch_one(connection).await
}

async fn write_quantity(connection: &mut SqliteConnection, quantity: i64) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE stock SET quantity = ?").bind(quantity).execute(connection).await.map(drop)
}

fn must_be_refused(outcome: Result<(), FenceError>) -> Outcome<Fenced> {
    match outcome {
        Err(FenceError::Fenced(refused)) => Ok(refused),
        Err(other) => Err(other.into()),
        Ok(()) => Err("an old fence was let through".into()),
    }
}

/// Waits until the lock on the stock is ours.
async fn lock(gate: &Gate, lease: Duration) -> Outcome<MutexGuard> {
    Ok(gate.mutex("stock")?.lease(lease)?.lock().await?)
}

struct Shop {
    gate: Gate,
    pool: SqlitePool,
}

impl Shop {
    async fn open(folder: &Path) -> Outcome<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join("shop.db"))
            .create_if_missing(true)
            // With a write-ahead log one may read while another has not committed yet, as in a big database.
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePool::connect_with(options).await?;
        fencing::create_table(&mut *pool.acquire().await?).await?;
        sqlx::query("CREATE TABLE stock AS SELECT 0 AS quantity").execute(&pool).await?;
        Ok(Self { gate: Gate::open("memory").await?, pool })
    }

    async fn stock_up(&self, quantity: i64) -> Outcome {
        Ok(write_quantity(&mut *self.pool.acquire().await?, quantity).await?)
    }

    async fn quantity(&self) -> Outcome<i64> {
        Ok(read_quantity(&mut *self.pool.acquire().await?).await?)
    }
}

/// A folder for the database, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("lockgate-fencing-{}", Token::random()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to sweep.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
