//! Somebody who dies: a process that takes a lock, and is killed with `kill -9` before it can give it back.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Failure;
use super::crew::{Member, next_line, reply};
use super::redis_link::RedisLink;
use super::strategies::take_and_never_release;

/// Which lock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fate {
    pub(super) redis: String,
    pub(super) mark: String,
    pub(super) coupon: i64,
}

/// A process that waits for the crowd to begin.
pub(super) struct Victim {
    member: Member,
}

impl Victim {
    pub(super) async fn start(program: &Path, fate: &Fate) -> Result<Self, Failure> {
        let mut member = Member::start(program, "victim", 1)?;
        member.say(fate).await?;
        member.hear::<String>().await?;
        Ok(Self { member })
    }

    /// Joins the crowd when it is told to, and dies as soon as it has the lock; a note says so. Dies in any case when `all_over`
    /// is said.
    pub(super) fn join_and_die(
        mut self,
        begun: oneshot::Receiver<()>,
        all_over: oneshot::Receiver<()>,
    ) -> JoinHandle<Result<Option<String>, Failure>> {
        tokio::spawn(async move {
            // Said or not, it goes on: it is killed in the end.
            let _ = begun.await;
            self.member.say("go").await?;
            let had_it = tokio::select! {
                held = self.member.hear::<String>() => held.is_ok(),
                _ = all_over => false,
            };
            let id = self.member.id();
            self.member.kill().await?;
            let note = id.map(|id| format!("process {id} was killed with kill -9 while it had the lock"));
            Ok(note.filter(|_| had_it))
        })
    }
}

/// The life of the victim.
pub(super) async fn live() -> Result<(), Failure> {
    let Some(fate) = next_line().await? else { return Ok(()) };
    let Fate { redis, mark, coupon } = serde_json::from_str(&fate)?;
    let redis = RedisLink::connect(&redis).await?;
    reply("ready")?;
    next_line().await?;
    take_and_never_release(&redis, &mark, coupon).await?;
    reply("held")?;
    // Until it is killed, or whoever started it has gone.
    next_line().await?;
    Ok(())
}
