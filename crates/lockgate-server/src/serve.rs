//! Start and stop.
//!
//! A server that has started can do all that it will ever need to: data folder, ledger, store, certificates and port are there,
//! and whatever was not is named in one sentence with its remedy. A server that is told to stop loses nothing that it has
//! answered, and does not let a client keep it from stopping:
//!
//! ```text
//! told to stop ─▶ accept nobody ─▶ end streams ─▶ finish requests (≤ 10 s) ─▶ flush the ledger (≤ 5 s) ─▶ give locks back (≤ 5 s)
//! told again   ─▶ none of it any longer
//! ```

mod connections;
mod open_files;
mod stop;
mod tls;
mod welcome;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use lockgate::Gate;
use lockgate::config::Config;
use lockgate::error::OpenError;
use lockgate::ledger::Ledger;
use lockgate::line::pass::{PassKeyError, PassKeys, PassVerifier};
use lockgate::store::About;
use lockgate::store::memory::MemoryStore;
use tokio_util::task::AbortOnDropHandle;

pub use self::stop::Stop;
pub use self::tls::TlsFiles;

use self::connections::{Doorman, bound_connections};
use self::welcome::{AdminToken, Welcome};
use crate::app::{Service, app};
use crate::auth::Tokens;
use crate::data::DataFolder;
use crate::edge::Edge;
use crate::ledger::LedgerDesk;
use crate::metrics::Metrics;
use crate::secret::Secret;

/// How long a stopping server waits for requests that are under way.
const DRAIN_BOUND: Duration = Duration::from_secs(10);

/// How long it waits until locks that were dropped have been given back; they end by their leases otherwise.
const RELEASE_BOUND: Duration = Duration::from_secs(5);

/// How much the server takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there may be; more are closed at once.
    pub connections: usize,
    /// How long a connection may take until the head of its next request is there, and so how long an idle one is kept.
    pub head_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 10_000, head_timeout: Duration::from_secs(10) }
    }
}

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
    /// The file of the key that signs passes (Ed25519, PKCS#8 PEM); made and kept in the data folder when it is not given.
    pub pass_key: Option<PathBuf>,
    /// The files of keys whose passes are accepted as well, and that are published: see [`PassKeys::and_accept`].
    pub accept_pass_keys: Vec<PathBuf>,
    /// How to open the store.
    pub gate: Config,
    /// Certificate and key, to be reached by `https://` only.
    pub tls: Option<TlsFiles>,
    /// How much it takes on.
    pub limits: Limits,
    /// How much is allowed to whom.
    pub edge: Edge,
    /// What `/metrics` tells: see [`Metrics::install`].
    pub metrics: Option<Metrics>,
}

impl ServeConfig {
    /// The embedded store in that folder, on that address, and the defaults for everything else.
    #[must_use]
    pub fn new(listen: SocketAddr, data: PathBuf) -> Self {
        Self {
            listen,
            store: "memory".to_owned(),
            ledger: None,
            data,
            admin_token: None,
            app_token: None,
            pass_key: None,
            accept_pass_keys: Vec::new(),
            gate: Config::default(),
            tls: None,
            limits: Limits::default(),
            edge: Edge::default(),
            metrics: None,
        }
    }
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
    service: Service,
    about: About,
    admin: AdminToken,
    ledger: Option<LedgerDesk>,
    tls: Option<(TlsFiles, RustlsConfig)>,
    limits: Limits,
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
        open_files::raise_limit_for(config.limits.connections);
        let tls =
            config.tls.take().map(|files| tls::load(&files).map(|loaded| (files, loaded))).transpose()?;
        let is_embedded = config.store == "memory";
        let data = if is_embedded { Some(DataFolder::take(&config.data)?) } else { None };
        // After the folder: a ledger in SQLite may want to live there.
        let ledger = match &config.ledger {
            Some(url) => Some(LedgerDesk::open(url).await?),
            None => None,
        };
        config.gate.ledger_decides = ledger.is_some();
        let gate = match &data {
            Some(data) => open_embedded(data, &config.gate),
            None => Gate::open_with(&config.store, &config.gate).await,
        };
        let gate = gate.map_err(|why| StartError::new(why.to_string()))?;
        if let (Some(ledger), Some(data)) = (&ledger, &data) {
            refuse_a_journal_behind_the_ledger(ledger, &gate, data).await?;
        }
        let about = gate.store().about().await.map_err(|why| StartError::new(why.to_string()))?;
        let listener = bind(config.listen).map_err(|why| cannot_listen(config.listen, &why))?;
        let passes = Arc::new(find_pass_keys(&config, data.as_ref())?);
        let address = listener.local_addr().map_err(|why| cannot_listen(config.listen, &why))?;
        // Last, because a token is shown only by the start that makes it, and nothing can fail from here on.
        let admin = AdminToken::find(config.admin_token, data.as_ref())?;
        let tokens = Tokens { admin: admin.token.clone(), app: config.app_token };
        let ledger = ledger.map(|ledger| LedgerDesk::start(ledger, &gate)).transpose()?;
        let mut service = Service::new(gate, tokens);
        service.passes = passes;
        service.ledger = ledger.as_ref().map(LedgerDesk::view);
        (service.edge, service.metrics) = (config.edge, config.metrics);
        let limits = config.limits;
        Ok(Self { listener, address, service, about, admin, ledger, tls, limits, _data: data })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGTERM or Ctrl-C, then finishes what is under way, for ten seconds at the most: a client that
    /// never finishes its request must not keep the server from stopping. A second signal stops at once.
    ///
    /// # Errors
    ///
    /// When the operating system takes the listening socket away.
    pub async fn run(self) -> io::Result<()> {
        self.run_until(Stop::on_signals(), app).await
    }

    /// The same until `stop` says so, with the router that `router` makes: [`app`], or that with routes of your own.
    ///
    /// # Errors
    ///
    /// When the operating system takes the listening socket away.
    pub async fn run_until(self, stop: Stop, router: impl FnOnce(Service) -> Router) -> io::Result<()> {
        let (service, handle) = (self.service, Handle::new());
        let _upkeep = service
            .metrics
            .clone()
            .map(|metrics| AbortOnDropHandle::new(tokio::spawn(metrics.look_after(service.closing.clone()))));
        let _reload = AbortOnDropHandle::new(tokio::spawn(tls::reload_on_hangup(self.tls.clone())));
        let tls = self.tls.map(|(_, config)| config);
        let serving = serve(self.listener, tls, self.limits, handle.clone(), router(service.clone()));
        let served = until_stopped(serving, &handle, &service, &stop).await;
        tokio::select! {
            () = finish(self.ledger, &service.gate) => {}
            () = stop.at_once.cancelled() => tracing::warn!("stopped at once; the ledger gets the rest at the next start"),
        }
        served
    }

    /// What a person who has just started it wants to know.
    #[must_use]
    pub fn welcome(&self) -> impl fmt::Display + '_ {
        Welcome(self)
    }
}

/// Not to block on it, as the runtime wants it.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    limits: Limits,
    handle: Handle<SocketAddr>,
    router: Router,
) -> io::Result<()> {
    let mut server = axum_server::from_tcp(listener)?.handle(handle);
    bound_connections(&mut server, limits.head_timeout);
    let doorman = Doorman::new(limits.connections);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    match tls {
        None => server.acceptor(doorman).http1_only().serve(service).await,
        Some(tls) => {
            let acceptor = RustlsAcceptor::new(tls).handshake_timeout(limits.head_timeout).acceptor(doorman);
            server.acceptor(acceptor).http1_only().serve(service).await
        }
    }
}

/// The key that signs passes, and those that are accepted besides.
fn find_pass_keys(config: &ServeConfig, data: Option<&DataFolder>) -> Result<PassKeys, StartError> {
    let keys = match (&config.pass_key, data) {
        (Some(file), _) => read_key("--pass-key", file, PassKeys::from_pkcs8_pem)?,
        (None, Some(data)) => data.pass_keys()?,
        (None, None) => {
            return Err(StartError::new(
                "a server on a shared store needs the pass key that all its servers share, besides the admin token (--admin-token or \
                 LOCKGATE_ADMIN_TOKEN); make one with `openssl genpkey -algorithm ed25519 -out pass-key.pem` and give its file \
                 with --pass-key or LOCKGATE_PASS_KEY",
            ));
        }
    };
    config.accept_pass_keys.iter().try_fold(keys, |keys, file| {
        Ok(keys.and_accept(&read_key("--accept-pass-key", file, read_accepted_key)?))
    })
}

/// A private key as it signs or signed, or only what was published of it.
fn read_accepted_key(text: &str) -> Result<PassVerifier, PassKeyError> {
    if text.trim_start().starts_with('{') {
        return PassVerifier::from_jwks(text);
    }
    PassKeys::from_pkcs8_pem(text).map(|keys| keys.verifier())
}

fn read_key<K>(
    flag: &str,
    file: &Path,
    read: impl FnOnce(&str) -> Result<K, PassKeyError>,
) -> Result<K, StartError> {
    let refused = |why: String| StartError::new(format!("{flag} {}: {why}", file.display()));
    let text = std::fs::read_to_string(file)
        .map_err(|why| refused(format!("it cannot be read ({why}); name a file that this user may read")))?;
    read(&text).map_err(|why| refused(why.to_string()))
}

/// Serves, and stops in good order when told to.
async fn until_stopped(
    serving: impl Future<Output = io::Result<()>>,
    handle: &Handle<SocketAddr>,
    service: &Service,
    stop: &Stop,
) -> io::Result<()> {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => return served,
        () = stop.gently.cancelled() => {}
        () = stop.at_once.cancelled() => {}
    }
    // Streams first: they would go on for as long as anybody listens.
    service.closing.cancel();
    handle.graceful_shutdown(Some(DRAIN_BOUND));
    tokio::select! {
        served = &mut serving => {
            if handle.connection_count() > 0 {
                tracing::warn!("stopping with requests under way, which did not end in time");
            }
            served
        }
        () = stop.at_once.cancelled() => {
            handle.shutdown();
            Ok(())
        }
    }
}

/// The ledger before the gate: the gate may give locks back for as long as its leases last.
async fn finish(ledger: Option<LedgerDesk>, gate: &Gate) {
    if let Some(ledger) = ledger {
        ledger.shut_down().await;
    }
    if tokio::time::timeout(RELEASE_BOUND, gate.shutdown()).await.is_err() {
        tracing::warn!("some locks could not be given back; they end by their leases");
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
