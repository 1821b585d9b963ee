//! Start and stop.

use std::fmt;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use lockgate::Gate;
use lockgate::config::Config;
use lockgate::error::OpenError;
use lockgate::ledger::Ledger;
use lockgate::store::About;
use lockgate::store::memory::MemoryStore;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::app;
use crate::auth::Tokens;
use crate::data::DataFolder;
use crate::ledger::LedgerDesk;
use crate::secret::Secret;

/// How long a stopping server waits for requests that are under way.
const DRAIN_BOUND: Duration = Duration::from_secs(10);

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The store's URL: `memory` (decisions in memory, every one of them in a journal in the data folder before it is
    /// answered) or one of Redis.
    pub store: String,
    /// The ledger's URL (`sqlite:<file>`, `postgres://…`, `mysql://…`), if there is to be one.
    pub ledger: Option<String>,
    /// The data folder, for the embedded store.
    pub data: PathBuf,
    /// The admin token; made and kept in the data folder when it is not given.
    pub admin_token: Option<Secret>,
    /// The app token; without one, app calls need none, and only loopback may be listened on.
    pub app_token: Option<Secret>,
    /// How to open the store.
    pub gate: Config,
}

/// Why the server did not start, and what to do about it, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// A server that listens, and serves once it is [run](Server::run).
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    gate: Gate,
    tokens: Tokens,
    about: About,
    admin: AdminToken,
    ledger: Option<LedgerDesk>,
    /// Kept for its lock.
    _data: Option<DataFolder>,
}

impl Server {
    /// Takes the data folder, opens the store, binds the port.
    ///
    /// # Errors
    ///
    /// When any of it cannot be done. Nothing has been served then.
    pub async fn start(mut config: ServeConfig) -> Result<Self, StartError> {
        refuse_open_doors(&config)?;
        let ledger = match &config.ledger {
            Some(url) => Some(LedgerDesk::open(url).await?),
            None => None,
        };
        config.gate.ledger_decides = ledger.is_some();
        let is_embedded = config.store == "memory";
        let data = if is_embedded { Some(DataFolder::take(&config.data)?) } else { None };
        let gate = match &data {
            Some(data) => open_embedded(data, &config.gate),
            None => Gate::open_with(&config.store, &config.gate).await,
        };
        let gate = gate.map_err(|why| StartError::new(why.to_string()))?;
        if let (Some(ledger), Some(data)) = (&ledger, &data) {
            refuse_a_journal_behind_the_ledger(ledger, &gate, data).await?;
        }
        let about = gate.store().about().await.map_err(|why| StartError::new(why.to_string()))?;
        let listener =
            TcpListener::bind(config.listen).await.map_err(|why| cannot_listen(config.listen, &why))?;
        let address = listener.local_addr().map_err(|why| cannot_listen(config.listen, &why))?;
        // Last, because a token is shown only by the start that makes it, and nothing can fail from here on.
        let admin = AdminToken::find(config.admin_token, data.as_ref())?;
        let tokens = Tokens { admin: admin.token.clone(), app: config.app_token };
        let ledger = ledger.map(|ledger| LedgerDesk::start(ledger, &gate)).transpose()?;
        Ok(Self { listener, address, gate, tokens, about, admin, ledger, _data: data })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGTERM or Ctrl-C, then finishes what is under way, for ten seconds at the most: a client that
    /// never finishes its request must not keep the server from stopping.
    ///
    /// # Errors
    ///
    /// When the operating system takes the listening socket away.
    pub async fn run(self) -> io::Result<()> {
        let router = app(self.gate, self.tokens, self.ledger.as_ref().map(LedgerDesk::view));
        let listener = self.listener.tap_io(|connection| {
            // Answers are small; held back for an acknowledgement they would be late, so best effort will do.
            let _ = connection.set_nodelay(true);
        });
        let stopping = CancellationToken::new();
        let told = stopping.clone();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            told_to_stop().await;
            told.cancel();
        });
        let patience_ends = async {
            stopping.cancelled().await;
            tokio::time::sleep(DRAIN_BOUND).await;
        };
        let served = tokio::select! {
            served = serving.into_future() => served,
            () = patience_ends => {
                tracing::warn!("stopping with requests under way, which did not end in time");
                Ok(())
            }
        };
        if let Some(ledger) = self.ledger {
            ledger.shut_down().await;
        }
        served
    }

    /// What a person who has just started it wants to know.
    #[must_use]
    pub fn welcome(&self) -> impl fmt::Display + '_ {
        Welcome(self)
    }
}

/// The admin token, and how the person who starts the server may learn it.
#[derive(Debug)]
struct AdminToken {
    token: Secret,
    /// The file that keeps it, unless it was given.
    kept_in: Option<PathBuf>,
    is_new: bool,
}

impl AdminToken {
    /// Embedded, the token lives in the data folder. On Redis several servers must agree on it, so it must be given.
    fn find(given: Option<Secret>, data: Option<&DataFolder>) -> Result<Self, StartError> {
        match (given, data) {
            (Some(token), _) => Ok(Self { token, kept_in: None, is_new: false }),
            (None, Some(data)) => {
                let (token, is_new) = data.admin_token()?;
                Ok(Self { token, kept_in: Some(data.admin_token_path()), is_new })
            }
            (None, None) => Err(StartError::new(
                "a server on a shared store needs the admin token that all its servers share; \
                 give it with --admin-token or LOCKGATE_ADMIN_TOKEN",
            )),
        }
    }
}

/// The embedded store, with its journal in the data folder.
fn open_embedded(data: &DataFolder, config: &Config) -> Result<Gate, OpenError> {
    let store = MemoryStore::open(data.journal_path(), config)?;
    Ok(Gate::on_with(Arc::new(store), config))
}

/// The embedded store believes its own journal. If that was lost or is an old copy, it would sell again what the ledger knows to
/// be sold.
async fn refuse_a_journal_behind_the_ledger(
    ledger: &Ledger,
    gate: &Gate,
    data: &DataFolder,
) -> Result<(), StartError> {
    let ahead = ledger.ahead_of(gate.store().as_ref()).await;
    let ahead = ahead.map_err(|why| StartError::new(why.to_string()))?;
    let Some(first) = ahead.first() else { return Ok(()) };
    let journal = data.journal_path().display().to_string();
    Err(StartError::new(format!(
        "the ledger knows more than {journal} about {} campaigns, the first of them {first:?}; move that file away (with its \
         -wal and -shm) and run `lockgate recover --store sqlite:{journal} --ledger …`",
        ahead.len()
    )))
}

fn refuse_open_doors(config: &ServeConfig) -> Result<(), StartError> {
    if config.listen.ip().is_loopback() || config.app_token.is_some() {
        return Ok(());
    }
    Err(StartError::new(format!(
        "{} can be reached from other machines, and without an app token anybody there could take stock; \
         give --app-token, or listen on 127.0.0.1",
        config.listen
    )))
}

fn cannot_listen(address: SocketAddr, why: &io::Error) -> StartError {
    let remedy = "choose another address with --listen";
    StartError::new(match why.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is in use by another program; stop it, or {remedy}")
        }
        _ => format!("cannot listen on {address}: {why}; {remedy}"),
    })
}

async fn told_to_stop() {
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! { _ = interrupt => {}, _ = terminate.recv() => {} },
        Err(why) => {
            tracing::warn!(%why, "SIGTERM cannot be caught; Ctrl-C still stops the server in good order");
            let _ = interrupt.await;
        }
    }
}

struct Welcome<'a>(&'a Server);

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Server { address, about, admin, .. } = self.0;
        writeln!(f, "lockgate {} listens on http://{address}", env!("CARGO_PKG_VERSION"))?;
        writeln!(f, "  store: {} ({})", about.description, about.persistence)?;
        match &admin.kept_in {
            Some(path) if admin.is_new => {
                let token = admin.token.reveal();
                writeln!(f, "  admin token: {token} (shown only now, kept in {})", path.display())?;
            }
            Some(path) => writeln!(f, "  admin token: kept in {}", path.display())?,
            None => {}
        }
        writeln!(f, "\nWhere to look next:")?;
        writeln!(f, "  curl http://{address}/readyz")?;
        writeln!(
            f,
            "  curl -X PUT http://{address}/v1/coupons/welcome -H 'Content-Type: application/json' \\"
        )?;
        writeln!(f, "       -H 'Authorization: Bearer <admin token>' -d '{{\"quantity\": 100}}'")?;
        write!(
            f,
            "  curl -X POST http://{address}/v1/coupons/welcome/issues -H 'Content-Type: application/json' "
        )?;
        writeln!(f, "-d '{{\"user\": \"alice\"}}'")
    }
}
