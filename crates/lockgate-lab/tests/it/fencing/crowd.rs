//! Many holders at once, old and new, and a witness who counts.

use std::time::Duration;

use lockgate::fencing::FenceError;
use lockgate::store::Fence;
use tokio::task::JoinSet;

use super::tested::{ConnectionOf, Tested};
use super::{STORED, number};

const TASKS: u64 = 8;
const ATTEMPTS_OF_EACH: u64 = 40;

/// Far more than a deadlock or a serialization failure should need.
const MOST_TRIES: u32 = 1_000;

/// What one task saw.
#[derive(Default)]
struct Seen {
    committed: Vec<Fence>,
    refused: Vec<Fence>,
}

pub(super) async fn a_crowd_takes_turns_and_ends_with_the_highest_fence<D: Tested>(database: D) {
    for level in D::ISOLATION_LEVELS {
        start_anew(&database).await;
        let mut crowd = JoinSet::new();
        for task in 0..TASKS {
            let pool = database.pool().clone();
            crowd.spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                D::run(&mut connection, *level).await.unwrap();
                attempt_many::<D>(&mut connection, task).await
            });
        }
        judge(&database, &crowd.join_all().await, level).await;
    }
}

async fn start_anew<D: Tested>(database: &D) {
    let mut connection = database.pool().acquire().await.unwrap();
    for statement in
        ["DELETE FROM lockgate_fences", "DELETE FROM work", "INSERT INTO work (fence, writes) VALUES (0, 0)"]
    {
        D::run(&mut connection, statement).await.unwrap();
    }
}

async fn attempt_many<D: Tested>(connection: &mut ConnectionOf<D>, task: u64) -> Seen {
    let mut seen = Seen::default();
    for attempt in 0..ATTEMPTS_OF_EACH {
        let fence = late_fence(task, attempt);
        match attempt_until_answered::<D>(connection, fence).await {
            Ok(()) => seen.committed.push(fence),
            Err(FenceError::Fenced(refused)) => {
                assert!(refused.mine == fence && refused.stored > fence, "{refused}");
                seen.refused.push(fence);
            }
            Err(other) => panic!("{other}"),
        }
    }
    seen
}

/// Grants come one after the other, as in life, and most holders are some grants late. The lateness is scattered, but
/// the same in every run: what differs between runs is who meets whom.
fn late_fence(task: u64, attempt: u64) -> Fence {
    let grant = attempt * TASKS + task;
    let scattered = grant.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
    Fence::new(100 + grant - scattered)
}

/// Tries again when the database could not decide: it may, and says that nothing has changed.
async fn attempt_until_answered<D: Tested>(
    connection: &mut ConnectionOf<D>,
    fence: Fence,
) -> Result<(), FenceError> {
    for _try in 1..MOST_TRIES {
        match write_after_a_look::<D>(connection, fence).await {
            Err(FenceError::Database(_)) => tokio::time::sleep(Duration::from_millis(1)).await,
            answer => return answer,
        }
    }
    write_after_a_look::<D>(connection, fence).await
}

/// Reads, then writes what depends on it: any two that overlap would lose a write, or read what is newer than they are.
async fn write_after_a_look<D: Tested>(
    connection: &mut ConnectionOf<D>,
    fence: Fence,
) -> Result<(), FenceError> {
    let mut tx = D::begin(connection, "crowd", fence).await?;
    let last = D::number(&mut tx, "SELECT fence FROM work").await?;
    assert!(last.unsigned_abs() <= fence.get(), "{fence} was let through, and {last} has written already");
    let writes = D::number(&mut tx, "SELECT writes FROM work").await? + 1;
    D::run(&mut tx, format!("UPDATE work SET fence = {fence}, writes = {writes}")).await?;
    Ok(tx.commit().await?)
}

async fn judge<D: Tested>(database: &D, seen: &[Seen], level: &str) {
    let highest = seen.iter().flat_map(|seen| seen.committed.iter().chain(&seen.refused)).max().unwrap();
    let committed: usize = seen.iter().map(|seen| seen.committed.len()).sum();
    let refused: usize = seen.iter().map(|seen| seen.refused.len()).sum();
    println!("{level}: {committed} committed, {refused} refused");
    assert_eq!(number(database, STORED).await.unsigned_abs(), highest.get(), "{level}");
    assert_eq!(number(database, "SELECT fence FROM work").await.unsigned_abs(), highest.get(), "{level}");
    let writes = number(database, "SELECT writes FROM work").await;
    assert_eq!(usize::try_from(writes).unwrap(), committed, "a write was lost; {level}");
    assert!(committed > 1 && refused > 1, "too few of one kind to show anything");
}
