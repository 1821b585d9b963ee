//! **Fails: loses updates, and then oversells.** A lock whose lease ends before the work does.
//!
//! ```text
//! A: lock (lease 30 ms); read 5
//! A: … something takes 90 ms: a slow query, a payment, a pause of the runtime …
//!      B: lock (A's lease is over); read 5; write 4; COMMIT; release
//! A: write 4; COMMIT; release                 two inside, one update lost
//! ```
//!
//! One user in 25 is slow here, by a real sleep of 90 ms between reading and writing; for the others 30 ms are plenty. A longer
//! lease makes it rarer and never impossible, and keeps everybody waiting longer after a crash. A watchdog that renews the lease
//! helps against slow work, not against a pause of the whole process. What helps is a fence: see `lease-too-short-fenced`.

use std::time::Duration;

use lockgate::lock::Mutex;

use crate::lab::Failure;
use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};

/// For how long a holder has the lock.
const LEASE: Duration = Duration::from_millis(30);
/// How long the work of a slow user takes.
const SLOW_WORK: Duration = Duration::from_millis(90);
/// One in so many is slow.
const SLOW_ONE_IN: u64 = 25;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "lease-too-short",
    title: "Lock in Redis whose lease ends before the work",
    family: Family::RedisLock,
    claim: || Claim::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always),
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = short_lease(&scene).await?;
            opened(TooShort { mutex, scene })
        })
    },
    ..PLAIN
};

/// The lock, with its lease.
pub(super) async fn short_lease(scene: &Scene) -> Result<Mutex, Failure> {
    Ok(scene.gate().await?.mutex(scene.lock_name())?.lease(LEASE)?)
}

/// What some users have to do that takes longer than their lease.
pub(super) async fn slow_work_of_some(user: u64) {
    if user % SLOW_ONE_IN == SLOW_ONE_IN / 2 {
        tokio::time::sleep(SLOW_WORK).await;
    }
}

struct TooShort {
    mutex: Mutex,
    scene: Scene,
}

impl TooShort {
    async fn take_holding_the_lock(&self, user: u64) -> Result<Answer, Failure> {
        let stock = self.scene.plain().await?.stock().await?;
        if stock <= 0 {
            return Ok(Answer::SoldOut);
        }
        slow_work_of_some(user).await;
        let mut transaction = self.scene.begin().await?;
        transaction.set_stock(stock - 1).await?;
        transaction.add_issue(user).await?;
        transaction.commit().await?;
        Ok(Answer::Got)
    }
}

impl Taker for TooShort {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let guard = self.mutex.lock().await?;
            let answer = self.take_holding_the_lock(user).await;
            // Lost or not: whoever looks only now has written already.
            guard.release().await?;
            answer
        })
    }
}
