//! Fencing in SQL: every promise on every database.

use std::sync::Arc;
use std::time::Duration;

use lockgate::fencing::{self, FenceError, Fenced, MAX_NAME_BYTES};
use lockgate::store::Fence;
use sqlx::Connection;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

mod crowd;
mod tested;

use self::crowd::a_crowd_takes_turns_and_ends_with_the_highest_fence;
use self::tested::{OnMariaDb, OnPostgres, OnSqlite, Tested};

/// Long enough for any check that does not have to wait.
const A_MOMENT: Duration = Duration::from_millis(100);

const STORED: &str = "SELECT fence FROM lockgate_fences";
const ROWS: &str = "SELECT COUNT(*) FROM lockgate_fences";

/// One test per promise and database.
macro_rules! on_every_database {
    ($($promise:ident)+) => {
        on_every_database! { mod postgres = OnPostgres: $($promise)+ }
        on_every_database! { mod mariadb = OnMariaDb: $($promise)+ }
        on_every_database! { mod sqlite = OnSqlite: $($promise)+ }
    };
    (mod $module:ident = $database:ident: $($promise:ident)+) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(super::with_tables::<super::$database>().await).await;
                }
            )+
        }
    };
}

on_every_database! {
    a_higher_fence_passes_and_is_stored
    the_same_fence_passes_again
    a_lower_fence_is_refused_and_its_writes_can_be_rolled_back
    a_refusal_changes_nothing_even_when_it_is_committed
    a_raise_that_is_rolled_back_leaves_no_trace
    a_stale_holder_waits_for_a_newer_one_that_has_not_committed
    a_snapshot_from_before_the_newer_holder_lets_no_stale_one_through
    a_crowd_takes_turns_and_ends_with_the_highest_fence
    begin_refuses_and_leaves_nothing_locked
    a_transaction_begun_by_hand_is_one_too
    names_are_exact
    what_cannot_be_kept_is_refused_and_nothing_is_stored
    the_table_may_be_created_by_many_at_once
}

/// An empty database with the table of the fences, and one of the caller's.
async fn with_tables<D: Tested>() -> D {
    let database = D::empty().await;
    let mut connection = database.pool().acquire().await.unwrap();
    fencing::create_table(&mut *connection).await.unwrap();
    D::run(&mut connection, "CREATE TABLE work (fence BIGINT, writes BIGINT)").await.unwrap();
    drop(connection);
    database
}

fn fence(number: u64) -> Fence {
    Fence::new(number)
}

async fn number<D: Tested>(database: &D, sql: &'static str) -> i64 {
    D::number(&mut *database.pool().acquire().await.unwrap(), sql).await.unwrap()
}

/// One write under the lock "coupon:7", the short way.
async fn write<D: Tested>(database: &D, fence: Fence) -> Result<(), FenceError> {
    let tx = fencing::begin(database.pool(), "coupon:7", fence).await?;
    Ok(tx.commit().await?)
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(outcome: Result<T, FenceError>) -> Fenced {
    match outcome {
        Err(FenceError::Fenced(refused)) => refused,
        other => panic!("must be refused, not {other:?}"),
    }
}

async fn a_higher_fence_passes_and_is_stored<D: Tested>(database: D) {
    for number_of_grant in [1, 2, 1_700_000_000_000_000, (1 << 53) - 1] {
        write(&database, fence(number_of_grant)).await.unwrap();
        assert_eq!(number(&database, STORED).await, i64::try_from(number_of_grant).unwrap());
    }
    assert_eq!(number(&database, ROWS).await, 1);
}

async fn the_same_fence_passes_again<D: Tested>(database: D) {
    let mut tx = fencing::begin(database.pool(), "coupon:7", fence(7)).await.unwrap();
    fencing::check_and_raise(&mut *tx, "coupon:7", fence(7)).await.unwrap();
    tx.commit().await.unwrap();
    write(&database, fence(7)).await.unwrap();
    assert_eq!(number(&database, STORED).await, 7);
}

async fn a_lower_fence_is_refused_and_its_writes_can_be_rolled_back<D: Tested>(database: D) {
    write(&database, fence(9)).await.unwrap();
    let mut tx = database.pool().begin().await.unwrap();
    D::run(&mut tx, "INSERT INTO work VALUES (8, 1)").await.unwrap();
    let refused = refusal(fencing::check_and_raise(&mut *tx, "coupon:7", fence(8)).await);
    assert_eq!(refused, Fenced { name: "coupon:7".to_owned(), mine: fence(8), stored: fence(9) });
    assert_eq!(D::number(&mut tx, "SELECT COUNT(*) FROM work").await.unwrap(), 1, "still usable");
    tx.rollback().await.unwrap();
    assert_eq!(number(&database, "SELECT COUNT(*) FROM work").await, 0);
    assert_eq!(number(&database, STORED).await, 9);
}

async fn a_refusal_changes_nothing_even_when_it_is_committed<D: Tested>(database: D) {
    write(&database, fence(9)).await.unwrap();
    let mut tx = database.pool().begin().await.unwrap();
    refusal(fencing::check_and_raise(&mut *tx, "coupon:7", fence(8)).await);
    refusal(fencing::check_and_raise(&mut *tx, "coupon:7", fence(8)).await);
    tx.commit().await.unwrap();
    assert_eq!(number(&database, STORED).await, 9);
    assert_eq!(number(&database, ROWS).await, 1);
}

async fn a_raise_that_is_rolled_back_leaves_no_trace<D: Tested>(database: D) {
    let first = fencing::begin(database.pool(), "coupon:7", fence(9)).await.unwrap();
    first.rollback().await.unwrap();
    assert_eq!(number(&database, ROWS).await, 0);

    write(&database, fence(3)).await.unwrap();
    drop(fencing::begin(database.pool(), "coupon:7", fence(9)).await.unwrap());
    write(&database, fence(4)).await.unwrap();
    assert_eq!(number(&database, STORED).await, 4);
}

async fn a_stale_holder_waits_for_a_newer_one_that_has_not_committed<D: Tested>(database: D) {
    for (newer_commits, what_is_stored_then) in [(false, 8), (true, 9)] {
        let newer = fencing::begin(database.pool(), "coupon:7", fence(9)).await.unwrap();
        let mut stale = Box::pin(write(&database, fence(8)));
        tokio::time::timeout(A_MOMENT, &mut stale).await.expect_err("must wait for the newer one");
        if newer_commits {
            newer.commit().await.unwrap();
            assert_eq!(refusal(stale.await).stored, fence(9));
        } else {
            newer.rollback().await.unwrap();
            stale.await.unwrap();
        }
        assert_eq!(number(&database, STORED).await, what_is_stored_then);
    }
}

/// The caller has read before the check, against all advice: its snapshot does not know the newer holder. Some
/// databases say `Fenced`, some that they cannot serialize; none may say yes.
async fn a_snapshot_from_before_the_newer_holder_lets_no_stale_one_through<D: Tested>(database: D) {
    write(&database, fence(7)).await.unwrap();
    for (round, level) in (1..).zip(D::ISOLATION_LEVELS) {
        let newer = fence(10 * round);
        let mut connection = database.pool().acquire().await.unwrap();
        D::run(&mut connection, *level).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        D::number(&mut tx, "SELECT COUNT(*) FROM work").await.unwrap();
        write(&database, newer).await.unwrap();
        let stale = fencing::check_and_raise(&mut *tx, "coupon:7", fence(newer.get() - 1)).await;
        assert!(stale.is_err(), "{level}");
        tx.rollback().await.unwrap();
        let again = D::begin(&mut connection, "coupon:7", fence(newer.get() - 1)).await;
        assert_eq!(refusal(again).stored, newer, "{level}");
    }
}

async fn begin_refuses_and_leaves_nothing_locked<D: Tested>(database: D) {
    write(&database, fence(9)).await.unwrap();
    let mut idle = database.pool().acquire().await.unwrap();
    refusal(D::begin(&mut idle, "coupon:7", fence(8)).await);
    assert!(!idle.is_in_transaction());
    // The refused one's connection does nothing more; a lock that it left would stay.
    let newer = tokio::time::timeout(Duration::from_secs(5), write(&database, fence(10))).await;
    newer.expect("nobody is in the way").unwrap();
    D::run(&mut idle, "INSERT INTO work VALUES (1, 1)").await.unwrap();
    assert_eq!(number(&database, "SELECT COUNT(*) FROM work").await, 1, "outside of any transaction");
}

async fn a_transaction_begun_by_hand_is_one_too<D: Tested>(database: D) {
    let mut connection = database.pool().acquire().await.unwrap();
    for (grant, end, what_is_stored_then) in [(1, "COMMIT", 1), (2, "ROLLBACK", 1), (3, "COMMIT", 3)] {
        D::run(&mut connection, "BEGIN").await.unwrap();
        fencing::check_and_raise(&mut *connection, "coupon:7", fence(grant)).await.unwrap();
        D::run(&mut connection, end).await.unwrap();
        assert_eq!(number(&database, STORED).await, what_is_stored_then, "{end}");
    }
}

async fn names_are_exact<D: Tested>(database: D) {
    let names = [
        "a", "A", "a ", " a", "a\t", "á", "a\u{301}", "ａ", "ß", "ss", "🎟", "🎫", "\0", "a\0", "a\0b", "%",
        "_", "'", "\\", "\"", "1", "01", "null", "NULL",
    ];
    let longest = ["x".repeat(MAX_NAME_BYTES), "🎟".repeat(MAX_NAME_BYTES / 4)];
    let names: Vec<&str> = names.into_iter().chain(longest.iter().map(String::as_str)).collect();
    for (grant, name) in (1..).zip(&names) {
        // Falling, so that a name that is taken for another one is refused.
        let falling = fence(1_000 - grant);
        fencing::begin(database.pool(), name, falling).await.unwrap().commit().await.unwrap();
        assert_eq!(number(&database, ROWS).await, i64::try_from(grant).unwrap(), "{name:?}");
        let lower = fencing::begin(database.pool(), name, fence(1)).await;
        assert_eq!(refusal(lower), Fenced { name: (*name).to_owned(), mine: fence(1), stored: falling });
    }
}

async fn what_cannot_be_kept_is_refused_and_nothing_is_stored<D: Tested>(database: D) {
    let too_long = "x".repeat(MAX_NAME_BYTES + 1);
    let cases = [
        ("name", too_long.as_str(), fence(7)),
        ("name", "", fence(7)),
        ("fence", "coupon:7", Fence::NONE),
        ("fence", "coupon:7", fence(1 << 53)),
        ("fence", "coupon:7", fence(u64::MAX)),
    ];
    for (field, name, fence) in cases {
        let mut tx = database.pool().begin().await.unwrap();
        match fencing::check_and_raise(&mut *tx, name, fence).await {
            Err(FenceError::InvalidInput(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{name:?} with {fence} must not be kept, but: {other:?}"),
        }
        tx.commit().await.unwrap();
    }
    assert_eq!(number(&database, ROWS).await, 0);
}

async fn the_table_may_be_created_by_many_at_once<D: Tested>(database: D) {
    for _round in 0..10 {
        D::run(&mut *database.pool().acquire().await.unwrap(), "DROP TABLE lockgate_fences").await.unwrap();
        create_by_eight_at_once(&database).await;
    }
    write(&database, fence(7)).await.unwrap();
    fencing::create_table(&mut *database.pool().acquire().await.unwrap()).await.unwrap();
    assert_eq!(number(&database, STORED).await, 7, "what is there stays");
}

async fn create_by_eight_at_once<D: Tested>(database: &D) {
    let all_are_there = Arc::new(Barrier::new(8));
    let mut creators = JoinSet::new();
    for _creator in 0..8 {
        let (pool, all_are_there) = (database.pool().clone(), Arc::clone(&all_are_there));
        creators.spawn(async move {
            let mut connection = pool.acquire().await.unwrap();
            all_are_there.wait().await;
            fencing::create_table(&mut *connection).await
        });
    }
    while let Some(created) = creators.join_next().await {
        created.unwrap().unwrap();
    }
}
