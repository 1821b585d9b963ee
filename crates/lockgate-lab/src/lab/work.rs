//! What everybody does inside: read, check, write. Which of these steps others can get between is up to the strategy.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::Failure;
use super::audit::Answer;
use super::session::Session;
use super::strategy::Scene;

/// Reads the stock, and takes one by writing the next lower number: right only if nobody else does so in between.
pub(super) async fn take_by_number(session: &mut Session, user: u64) -> Result<Answer, Failure> {
    let stock = session.stock().await?;
    if stock <= 0 {
        return Ok(Answer::SoldOut);
    }
    session.set_stock(stock - 1).await?;
    session.add_issue(user).await?;
    Ok(Answer::Got)
}

/// [`take_by_number`] in a transaction that is committed when this returns.
pub(super) async fn take_in_transaction(scene: &Scene, user: u64) -> Result<Answer, Failure> {
    let mut transaction = scene.begin().await?;
    let answer = take_by_number(&mut transaction, user).await?;
    transaction.commit().await?;
    Ok(answer)
}

/// Writes what was decided elsewhere.
pub(super) async fn write_down(scene: &Scene, user: u64) -> Result<(), Failure> {
    let mut transaction = scene.begin().await?;
    transaction.take(1).await?;
    transaction.add_issue(user).await?;
    transaction.commit().await
}

/// Writes what was decided elsewhere for many, in one transaction.
pub(super) async fn write_all_down(scene: &Scene, users: &[u64]) -> Result<(), Failure> {
    if users.is_empty() {
        return Ok(());
    }
    let mut transaction = scene.begin().await?;
    transaction.take(users.len()).await?;
    transaction.add_issues(users).await?;
    transaction.commit().await
}

/// Pauses that double up to a longest one, give or take a half, so that those who failed together do not come back together.
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    pub(super) async fn pause(&mut self) {
        // A hasher of the standard library is seeded at random, which is all that is asked for here.
        let chance = RandomState::new().hash_one(0) >> 48;
        let share = 0.5 + f64::from(u32::try_from(chance).unwrap_or(0)) / f64::from(u16::MAX);
        tokio::time::sleep(self.next.mul_f64(share)).await;
        self.next = (self.next * 2).min(self.longest);
    }
}
