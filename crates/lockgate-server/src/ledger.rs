//! The ledger beside the server: written all the time, audited every few seconds.

use std::time::Duration;

use lockgate::Gate;
use lockgate::ledger::{Ledger, Light, Writer, WriterConfig, WriterStatus};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::serve::StartError;

/// How often the ledger is audited. An audit counts every row, so not all the time.
const AUDIT_EVERY: Duration = Duration::from_secs(15);

/// How long a stopping server waits until the ledger has everything.
const FLUSH_BOUND: Duration = Duration::from_secs(5);

/// The ledger at work. Stops when it is dropped; [`LedgerDesk::shut_down`] finishes first.
#[derive(Debug)]
pub(crate) struct LedgerDesk {
    writer: Writer,
    view: LedgerView,
    _auditing: DropGuard,
}

/// What can be seen of the ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LedgerView {
    status: watch::Receiver<WriterStatus>,
    light: watch::Receiver<Option<Light>>,
}

impl LedgerDesk {
    pub(crate) async fn open(url: &str) -> Result<Ledger, StartError> {
        Ledger::open(url).await.map_err(|why| StartError::new(why.to_string()))
    }

    pub(crate) fn start(ledger: Ledger, gate: &Gate) -> Result<Self, StartError> {
        let writer = ledger.start(gate.store(), WriterConfig::default());
        let writer = writer.map_err(|why| StartError::new(why.to_string()))?;
        let (tells, light) = watch::channel(None);
        let stop = CancellationToken::new();
        tokio::spawn(audit_now_and_then(ledger, gate.clone(), tells, stop.clone()));
        let view = LedgerView { status: writer.watch(), light };
        Ok(Self { writer, view, _auditing: stop.drop_guard() })
    }

    pub(crate) fn view(&self) -> LedgerView {
        self.view.clone()
    }

    /// Returns when the ledger has everything, or after [`FLUSH_BOUND`]: what it has not got then stays in the journal.
    pub(crate) async fn shut_down(self) {
        if tokio::time::timeout(FLUSH_BOUND, self.writer.drained()).await.is_err() {
            tracing::warn!("the ledger does not have everything yet; the rest stays in the journal");
        }
        self.writer.shutdown().await;
    }
}

async fn audit_now_and_then(
    ledger: Ledger,
    gate: Gate,
    light: watch::Sender<Option<Light>>,
    stop: CancellationToken,
) {
    loop {
        match ledger.audit(gate.store().as_ref()).await {
            Ok(audit) => {
                let found = audit.light();
                let before = light.send_replace(Some(found));
                if found == Light::Red && before != Some(Light::Red) {
                    tracing::error!(
                        "the audit is red: `lockgate audit` says what is missing or was decided twice"
                    );
                }
            }
            Err(why) => {
                tracing::warn!(%why, "the ledger cannot be audited");
                light.send_replace(None);
            }
        }
        if tokio::time::timeout(AUDIT_EVERY, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

impl LedgerView {
    /// Whether nothing can be written at the moment.
    pub(crate) fn is_failing(&self) -> bool {
        self.status.borrow().failing.is_some()
    }

    /// What anybody may know: no more than that, because anybody may ask.
    pub(crate) fn to_json(&self) -> Value {
        let status = self.status.borrow();
        let light = self.light.borrow().map_or("unknown", Light::as_str);
        json!({
            "behind_ms": u64::try_from(status.behind.as_millis()).unwrap_or(u64::MAX),
            "is_written": status.failing.is_none(),
            "dead_letters": status.dead_letters,
            "audit": light,
        })
    }
}
