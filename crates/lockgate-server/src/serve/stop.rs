//! How a server is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Two ways to stop: in good order, and at once.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled: accept nobody any more, end streams, finish what is under way, flush the ledger.
    pub gently: CancellationToken,
    /// Cancelled: do none of it any longer. What has been answered is as safe as ever.
    pub at_once: CancellationToken,
}

impl Stop {
    /// SIGTERM or Ctrl-C stops in good order, the second one at once. To be called in a runtime.
    #[must_use]
    pub fn on_signals() -> Self {
        let stop = Self::default();
        let signals = Signals::catch();
        tokio::spawn(tell(stop.clone(), signals));
        stop
    }
}

async fn tell(stop: Stop, mut signals: Signals) {
    signals.next().await;
    tracing::info!("stopping; a second signal stops at once");
    stop.gently.cancel();
    signals.next().await;
    stop.at_once.cancel();
}

struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

impl Signals {
    fn catch() -> Self {
        let catch = |kind: SignalKind, name: &str| {
            let caught = signal(kind);
            caught
                .inspect_err(
                    |why| tracing::warn!(%why, "{name} cannot be caught, and ends the server at once"),
                )
                .ok()
        };
        let terminate = catch(SignalKind::terminate(), "SIGTERM");
        Self { terminate, interrupt: catch(SignalKind::interrupt(), "SIGINT") }
    }

    async fn next(&mut self) {
        tokio::select! { () = received(&mut self.terminate) => {}, () = received(&mut self.interrupt) => {} }
    }
}

async fn received(signal: &mut Option<Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}
