//! The ledger beside the server: written all the time, audited every few seconds.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::ledger::{Ledger, LedgerError, Light, Writer, WriterConfig, WriterStatus};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::diary::Diary;
use crate::serve::StartError;

/// How often the ledger is audited. An audit counts every row, so not all the time.
const AUDIT_EVERY: Duration = Duration::from_secs(15);

/// How long a stopping server waits until the ledger has everything.
const FLUSH_BOUND: Duration = Duration::from_secs(5);

/// The ledger at work. Stops when it is dropped; [`LedgerDesk::shut_down`] finishes first.
#[derive(Debug)]
pub struct LedgerDesk {
    writer: Writer,
    view: LedgerView,
    stop: DropGuard,
    writing_the_diary: JoinHandle<()>,
}

/// What a service may do with the ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LedgerView {
    ledger: Ledger,
    status: watch::Receiver<WriterStatus>,
    found: watch::Receiver<Found>,
    look_again: Arc<Notify>,
    diary: Arc<Diary>,
}

/// What was found when it was last looked.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// `None`: the last look failed, or there was none yet. What was counted before it stands.
    light: Option<Light>,
    /// How many dead letters there were, whoever made them.
    dead_letters: u64,
    /// How many of them this server had made until then.
    made_here: u64,
}

impl LedgerDesk {
    pub(crate) async fn open(url: &str) -> Result<Ledger, StartError> {
        Ledger::open(url).await.map_err(|why| StartError::new(why.to_string()))
    }

    /// Begins to write what the gate's store decides, and to compare.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime to write in.
    pub fn start(ledger: Ledger, gate: &Gate) -> Result<Self, StartError> {
        let writer = ledger.start(gate.store(), WriterConfig::default());
        let writer = writer.map_err(|why| StartError::new(why.to_string()))?;
        let (tells, found) = watch::channel(Found::default());
        let diary = Arc::new(Diary::new(ledger.clone()));
        let view = LedgerView { ledger, status: writer.watch(), found, look_again: Arc::default(), diary };
        let stop = CancellationToken::new();
        let writing_the_diary = tokio::spawn(Arc::clone(&view.diary).write(stop.clone()));
        tokio::spawn(audit_now_and_then(view.clone(), gate.clone(), tells, stop.clone()));
        Ok(Self { writer, view, stop: stop.drop_guard(), writing_the_diary })
    }

    /// For [`Service::ledger`](crate::Service::ledger).
    #[must_use]
    pub fn view(&self) -> LedgerView {
        self.view.clone()
    }

    /// Returns when the ledger has everything, or after five seconds: what it has not got then stays in the journal, and admin
    /// calls that it has not got are in the log only.
    pub async fn shut_down(self) {
        drop(self.stop);
        let noting = tokio::time::timeout(FLUSH_BOUND, self.writing_the_diary);
        let (drained, noted) = tokio::join!(tokio::time::timeout(FLUSH_BOUND, self.writer.drained()), noting);
        if drained.is_err() {
            tracing::warn!("the ledger does not have everything yet; the rest stays in the journal");
        }
        if noted.is_err() {
            tracing::warn!("some admin calls could not be written down; they are in the log only");
        }
        self.writer.shutdown().await;
    }
}

async fn audit_now_and_then(
    view: LedgerView,
    gate: Gate,
    tells: watch::Sender<Found>,
    stop: CancellationToken,
) {
    loop {
        match view.look(&gate).await {
            Ok(found) => {
                let before = tells.send_replace(found).light;
                if found.light == Some(Light::Red) && before != Some(Light::Red) {
                    tracing::error!(
                        "the audit is red: `lockgate audit` says what is missing or was decided twice"
                    );
                }
            }
            Err(why) => {
                tracing::warn!(%why, "the ledger cannot be audited");
                tells.send_modify(|found| found.light = None);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(AUDIT_EVERY) => {}
            () = view.look_again.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl LedgerView {
    async fn look(&self, gate: &Gate) -> Result<Found, LedgerError> {
        // Before the letters are counted: one that is made meanwhile is counted twice for a while rather than not at all.
        let made_here = self.status.borrow().dead_letters;
        let light = Some(self.ledger.audit(gate.store().as_ref()).await?.light());
        Ok(Found { light, dead_letters: self.ledger.count_dead_letters(None).await?, made_here })
    }

    /// The ledger itself.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn diary(&self) -> &Diary {
        &self.diary
    }

    /// Somebody has changed the ledger by hand: it is looked at again, soon.
    pub(crate) fn look_again(&self) {
        self.look_again.notify_one();
    }

    /// Whether nothing can be written at the moment.
    pub(crate) fn is_failing(&self) -> bool {
        self.status.borrow().failing.is_some()
    }

    /// What anybody may know: no more than that, because anybody may ask.
    pub(crate) fn to_json(&self) -> Value {
        let (status, found) = (self.status.borrow(), *self.found.borrow());
        let since = status.dead_letters.saturating_sub(found.made_here);
        json!({
            "behind_ms": u64::try_from(status.behind.as_millis()).unwrap_or(u64::MAX),
            "is_written": status.failing.is_none(),
            "dead_letters": found.dead_letters + since,
            "audit": found.light.map_or("unknown", Light::as_str),
        })
    }
}
