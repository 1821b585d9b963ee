//! What admins did, in the ledger's database: of all servers that share it, and longer than any of them runs.
//!
//! **Promise:** nobody waits for it. An action is written beside its answer; while the database is away it waits here and is written
//! when the database is back, once. A server that stops writes what waits, as long as the database answers.
//! **Not promised:** more than [`MOST_WAITING`] that wait. Beyond that the newest are dropped, with a warning and a count; the log has
//! them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockgate::ledger::{Action, Ledger};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many may wait.
const MOST_WAITING: usize = 1_000;

/// How many are written at once.
const AT_ONCE: usize = 100;

/// The pause after a first failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long the database may take to write some, or to tell the latest.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_OF_READERS: Duration = Duration::from_millis(500);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Diary {
    ledger: Ledger,
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    actions: VecDeque<Action>,
    dropped: u64,
}

impl Waiting {
    /// Whether there is room for it; if not, it is counted.
    fn take(&mut self, action: Action) -> bool {
        let has_room = self.actions.len() < MOST_WAITING;
        if has_room {
            self.actions.push_back(action);
        } else {
            self.dropped += 1;
        }
        has_room
    }
}

impl Diary {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, waiting: Mutex::default(), wake: Notify::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it written soon.
    pub(crate) fn note(&self, action: Action) {
        let mut waiting = self.waiting();
        if !waiting.take(action) {
            metrics::counter!("lockgate_http_dropped_actions_total").increment(1);
            if waiting.dropped == 1 {
                tracing::warn!(
                    "more than {MOST_WAITING} admin calls wait for the ledger's database; from now on they are in the log only"
                );
            }
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// The latest of all servers, if the database tells them soon.
    pub(crate) async fn latest(&self, limit: usize) -> Option<Vec<Action>> {
        tokio::time::timeout(PATIENCE_OF_READERS, self.ledger.actions(limit)).await.ok()?.ok()
    }

    /// Writes until it is told to stop, and then until nothing waits.
    pub(crate) async fn write(self: Arc<Self>, stop: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let some: Vec<_> = self.waiting().actions.iter().take(AT_ONCE).cloned().collect();
            if some.is_empty() {
                tokio::select! {
                    // What was noted before the stop is looked at before it.
                    biased;
                    () = self.wake.notified() => {}
                    () = stop.cancelled() => return,
                }
                continue;
            }
            if self.is_written(&some).await {
                pause = FIRST_PAUSE;
                let mut waiting = self.waiting();
                waiting.actions.drain(..some.len());
                let dropped = std::mem::take(&mut waiting.dropped);
                drop(waiting);
                if dropped > 0 {
                    tracing::warn!(
                        dropped,
                        "the ledger's database is back; some admin calls are in the log only"
                    );
                }
            } else {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    async fn is_written(&self, some: &[Action]) -> bool {
        match tokio::time::timeout(PATIENCE, self.ledger.note_actions(some.to_vec())).await {
            Ok(Ok(())) => true,
            Ok(Err(why)) => {
                tracing::warn!(%why, "admin calls cannot be written down; they wait");
                false
            }
            Err(_) => {
                tracing::warn!("admin calls cannot be written down, the database does not answer; they wait");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lockgate::clock::Timestamp;
    use lockgate::store::Token;

    use super::*;

    fn action(at: u64) -> Action {
        let (at, text) = (Timestamp::from_micros(at), String::new);
        Action { id: Token::random(), at, action: text(), target: text(), outcome: text(), address: None }
    }

    async fn diary() -> Diary {
        Diary::new(Ledger::open("sqlite::memory:").await.unwrap())
    }

    #[tokio::test]
    async fn so_many_wait_and_the_newest_are_dropped() {
        let diary = diary().await;
        for at in 0..1_003 {
            diary.note(action(at));
        }
        let waiting = diary.waiting();
        let last = waiting.actions.back().unwrap().at.as_micros();
        assert_eq!((waiting.actions.len(), last, waiting.dropped), (1_000, 999, 3));
    }

    #[tokio::test]
    async fn what_waits_when_it_is_told_to_stop_is_written_first() {
        let diary = Arc::new(diary().await);
        for at in 0..250 {
            diary.note(action(at));
        }
        let stop = CancellationToken::new();
        stop.cancel();
        Arc::clone(&diary).write(stop).await;
        let written = diary.latest(1_000).await.unwrap();
        assert_eq!((written.len(), written[0].at.as_micros()), (250, 249));
    }
}
