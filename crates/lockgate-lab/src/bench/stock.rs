//! Issuing coupons to users who come once each.
//!
//! ```text
//! raw       the limit: the shipped script's own bytes from a plain socket
//! peers     what people write: one script per request, a lock around GET and SET, two statements in PostgreSQL
//! ours      the library, on Redis and embedded
//! size      what a million issued coupons cost in memory, per call and at start-up
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use lockgate::testing::services::Postgres;

use super::Failure;
use super::frame::{Case, Contender};

mod ours;
mod peers;
mod raw;
pub(super) mod size;
mod sql;

pub(super) use self::ours::OurWorker;

/// Nobody ever comes twice, in no slice and no case.
static NEXT_USER: AtomicU64 = AtomicU64::new(0);

pub(super) fn new_users(count: u64) -> impl Iterator<Item = String> {
    let first = NEXT_USER.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(|user| format!("user-{user}"))
}

pub(super) fn new_user() -> String {
    new_users(1).next().unwrap_or_default()
}

/// The cases, and the database that they need while they run.
pub(super) struct Stage {
    pub(super) cases: Vec<Case<'static>>,
    _postgres: Option<Postgres>,
}

pub(super) async fn stage(url: &str, tasks: Option<usize>) -> Result<Stage, Failure> {
    let postgres = match Postgres::start() {
        Ok(postgres) => Some(postgres),
        Err(why) => {
            eprintln!("without PostgreSQL: {why}");
            None
        }
    };
    let mut cases = Vec::new();
    for tasks in tasks.map_or(vec![1, 1_000], |tasks| vec![tasks]) {
        let name = "stock: one coupon each, every user new".into();
        cases.push(Case { name, tasks, contenders: contenders(url, tasks, postgres.as_ref()).await? });
    }
    Ok(Stage { cases, _postgres: postgres })
}

/// One caller alone is measured against one bare script call, a crowd against the batch script.
async fn contenders(
    url: &str,
    tasks: usize,
    postgres: Option<&Postgres>,
) -> Result<Vec<Box<dyn Contender>>, Failure> {
    let script: Box<dyn Contender> = Box::new(peers::ScriptPerRequest::connect(url, tasks == 1).await?);
    let mut contenders = if tasks == 1 {
        vec![script]
    } else {
        vec![Box::new(raw::BatchLimit::new(url).await?) as Box<dyn Contender>, script]
    };
    contenders.push(Box::new(peers::LockGetSet::connect(url).await?));
    contenders.push(Box::new(ours::Ours::on_redis(url)));
    contenders.push(Box::new(ours::Ours::in_memory()));
    contenders.push(Box::new(ours::Ours::on_disk()?));
    if let Some(postgres) = postgres {
        contenders.push(Box::new(sql::Sql::connect(&postgres.url(), sql::Way::ConditionalUpdate).await?));
        contenders.push(Box::new(sql::Sql::connect(&postgres.url(), sql::Way::SelectForUpdate).await?));
    }
    Ok(contenders)
}
