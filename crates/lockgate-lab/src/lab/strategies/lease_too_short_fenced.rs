//! **Exact across processes**, although the lease is too short: the database refuses whoever has lost the lock.
//!
//! ```text
//! A: lock → fence 7; … slow …
//!      B: lock → fence 8; BEGIN; 8 is the highest so far; read 5; write 4; COMMIT
//! A: BEGIN; 7 is lower than 8: refused; take the lock anew → fence 9; read 4; write 3; COMMIT
//! ```
//!
//! The same lock, the same lease and the same slow work as `lease-too-short`. Every grant has a number above all before it, and
//! the transaction shows it before it reads (`lockgate::fencing`). Who is refused has written nothing, and begins anew.

use lockgate::lock::{Mutex, MutexGuard};

use super::lease_too_short::{short_lease, slow_work_of_some};
use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::shop::raise_fence;
use crate::lab::strategy::{Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_by_number;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "lease-too-short-fenced",
    title: "The same, and the database checks the fence",
    family: Family::RedisLock,
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    open: |scene| {
        Box::pin(async {
            let mutex = short_lease(&scene).await?;
            opened(Fenced { mutex, scene })
        })
    },
    ..PLAIN
};

struct Fenced {
    mutex: Mutex,
    scene: Scene,
}

impl Fenced {
    /// `None` when a newer holder has written.
    async fn take_if_still_ours(&self, guard: &MutexGuard, user: u64) -> Result<Option<Answer>, Failure> {
        let mut transaction = self.scene.begin().await?;
        if !raise_fence(&mut transaction, guard.name().as_str(), guard.fence()).await? {
            return Ok(None);
        }
        let answer = take_by_number(&mut transaction, user).await?;
        transaction.commit().await?;
        Ok(Some(answer))
    }
}

impl Taker for Fenced {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            // Slow once, as the other one: what was done need not be done again.
            let mut guard = self.mutex.lock().await?;
            slow_work_of_some(user).await;
            loop {
                let answer = self.take_if_still_ours(&guard, user).await;
                guard.release().await?;
                if let Some(answer) = answer? {
                    return Ok(answer);
                }
                self.scene.count_retry();
                guard = self.mutex.lock().await?;
            }
        })
    }
}
