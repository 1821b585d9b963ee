//! One connection that comes back by itself.
//!
//! **Promise:** a lane whose connection failed dials again for the next caller, and asks the sentinels anew who the
//! master is; so it follows a switch-over, also one that it hears of before anything fails ([`Switches`]). Callers that arrive while a dial is under way share its outcome, so a
//! thousand callers of a dead server cost one dial, not a thousand. A dial goes on when the caller that began it has
//! lost patience, so impatient callers still get a connection in the end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError,
    RedisResult, TlsCertificates, Value,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::script::Run;
use super::switches::Switches;
use super::url::Master;
use crate::clock::{Clock, Moment};
use crate::config::RedisConfig;

/// See the [module](self). Cheap to clone; all clones are the same lane.
#[derive(Clone)]
pub(super) struct Lane {
    shared: Arc<Shared>,
    /// Held while dialing; remembers the last dial that failed, for those who waited for it.
    dialing: Arc<Mutex<LastFailure>>,
}

type LastFailure = Option<(Moment, RedisError)>;

struct Shared {
    endpoint: Endpoint,
    settings: AsyncConnectionConfig,
    clock: Clock,
    live: RwLock<Option<Live>>,
    switches: Switches,
    dials: AtomicU64,
}

/// A connection that answered last time.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    pub(super) run: Run,
    /// Tells it from the one that replaces it.
    dial: u64,
    /// How many switches had been heard of when it was dialed.
    pub(super) switches: u64,
}

/// A server, or those who know which one it is.
pub(super) enum Endpoint {
    Server(Box<Client>),
    Sentinel(Box<Announced>),
}

/// A server that sentinels know.
pub(super) struct Announced {
    sentinels: Mutex<SentinelClient>,
    /// How to talk to it, wherever it is.
    access: ConnectionInfo,
    certificates: Option<TlsCertificates>,
    protocol: ProtocolVersion,
}

impl Lane {
    pub(super) fn to(
        master: &Master,
        config: &RedisConfig,
        clock: Clock,
        switches: Switches,
    ) -> RedisResult<Self> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(config.response_timeout));
        let endpoint = Endpoint::of(master, trusted_certificates(config)?, ProtocolVersion::RESP2)?;
        let (live, dials) = (RwLock::new(None), AtomicU64::new(0));
        let shared = Arc::new(Shared { endpoint, settings, clock, live, switches, dials });
        Ok(Self { shared, dialing: Arc::default() })
    }

    /// The present connection, or a new one.
    ///
    /// # Cancel safety
    ///
    /// A dial goes on without its caller, for the next one.
    pub(super) async fn connection(&self) -> RedisResult<Live> {
        if let Some(live) = self.shared.current() {
            return Ok(live);
        }
        let asked_at = self.shared.clock.monotonic();
        let last_failure = Arc::clone(&self.dialing).lock_owned().await;
        if let Some(live) = self.shared.current() {
            return Ok(live);
        }
        if let Some((failed_at, why)) = &*last_failure
            && *failed_at >= asked_at
        {
            return Err(why.clone());
        }
        let dial = tokio::spawn(Arc::clone(&self.shared).dial(last_failure));
        dial.await.unwrap_or_else(|_| Err((ErrorKind::Client, "the runtime is shutting down").into()))
    }

    /// To which run of the server the present connection leads.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn run(&self) -> Run {
        self.shared.current().and_then(|live| live.run)
    }

    /// Returns when the connection leads to a server that is not the master any more, by what the sentinels say.
    pub(super) async fn has_moved_from(&self, switches: u64) {
        self.shared.switches.one_after(switches).await;
    }

    /// Gives up a connection that failed. One that has replaced it meanwhile stays.
    pub(super) fn retire(&self, failed: &Live) {
        if self.shared.current().is_some_and(|live| live.dial == failed.dial) {
            tracing::warn!("the connection to Redis failed; the next call makes a new one");
            self.shared.set_current(None);
        }
    }
}

impl Shared {
    /// Dials, and leaves the outcome where all callers find it.
    async fn dial(self: Arc<Self>, mut last_failure: OwnedMutexGuard<LastFailure>) -> RedisResult<Live> {
        // Before asking who it is: one that is announced meanwhile is dialed next time.
        let switches = self.switches.so_far();
        match self.endpoint.dial(&self.settings, &self.switches).await {
            Ok(mut connection) => {
                let run = run_of(&mut connection).await;
                let dial = self.dials.fetch_add(1, Ordering::Relaxed);
                let live = Live { connection, run, dial, switches };
                self.set_current(Some(live.clone()));
                if last_failure.take().is_some() {
                    tracing::info!("connected to Redis again");
                }
                Ok(live)
            }
            Err(why) => {
                // Once per outage: what every call meets until it is over, the callers are told.
                if last_failure.is_none() {
                    tracing::warn!(%why, "cannot connect to Redis; calls try again until it is back");
                }
                *last_failure = Some((self.clock.monotonic(), why.clone()));
                Err(why)
            }
        }
    }

    fn current(&self) -> Option<Live> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
        live.filter(|live| live.switches == self.switches.so_far())
    }

    fn set_current(&self, live: Option<Live>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }
}

impl Endpoint {
    pub(super) fn of(
        master: &Master,
        certificates: Option<TlsCertificates>,
        protocol: ProtocolVersion,
    ) -> RedisResult<Self> {
        Ok(match master {
            Master::At(server) => Endpoint::Server(Box::new(client(server, certificates, protocol)?)),
            Master::KnownToSentinels { sentinels, name, access } => {
                let client = sentinel_client(sentinels, name, access, certificates.clone(), protocol)?;
                let (sentinels, access) = (Mutex::new(client), (**access).clone());
                Endpoint::Sentinel(Box::new(Announced { sentinels, access, certificates, protocol }))
            }
        })
    }

    pub(super) async fn dial(
        &self,
        settings: &AsyncConnectionConfig,
        switches: &Switches,
    ) -> RedisResult<MultiplexedConnection> {
        let before = switches.so_far();
        tokio::select! {
            connection = self.dial_once(settings, switches) => connection,
            // It may be the old master that does not answer.
            () = switches.one_after(before) => self.dial_once(settings, switches).await,
        }
    }

    async fn dial_once(
        &self,
        settings: &AsyncConnectionConfig,
        switches: &Switches,
    ) -> RedisResult<MultiplexedConnection> {
        let announced = match self {
            Endpoint::Server(client) => {
                return client.get_multiplexed_async_connection_with_config(settings).await;
            }
            Endpoint::Sentinel(announced) => announced,
        };
        // The sentinel that is asked may be the last one to learn what another has said already.
        if let Some((host, port)) = switches.master()
            && let Ok(connection) = announced.dial_master_at(host, port, settings).await
        {
            return Ok(connection);
        }
        announced.sentinels.lock().await.get_async_connection_with_config(settings).await
    }
}

impl Announced {
    async fn dial_master_at(
        &self,
        host: String,
        port: u16,
        settings: &AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let address = match self.access.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let server = self.access.clone().set_addr(address);
        let client = client(&server, self.certificates.clone(), self.protocol)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(settings).await?;
        let role: Vec<Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
        match role.first() {
            Some(Value::BulkString(role)) if role == b"master" => Ok(connection),
            _ => Err((ErrorKind::Client, "it is not the master any more").into()),
        }
    }
}

/// To which run of its server a connection leads; `None` when the server does not tell.
async fn run_of(connection: &mut MultiplexedConnection) -> Run {
    let info: String = redis::cmd("INFO").arg("server").query_async(connection).await.ok()?;
    run_in(&info)
}

/// The run in what `INFO` says: the first digits of the run id, as many as a script can count.
pub(super) fn run_in(info: &str) -> Run {
    let id = info.lines().find_map(|line| line.strip_prefix("run_id:"))?;
    u64::from_str_radix(id.get(..12)?, 16).ok()
}

pub(super) fn client(
    server: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
    protocol: ProtocolVersion,
) -> RedisResult<Client> {
    let settings = server.redis_settings().clone().set_protocol(protocol);
    let server = server.clone().set_tcp_settings(tcp_settings()).set_redis_settings(settings);
    match certificates {
        Some(certificates) if matches!(server.addr(), ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(server, certificates)
        }
        _ => Client::open(server),
    }
}

fn sentinel_client(
    sentinels: &[ConnectionInfo],
    name: &str,
    access: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
    protocol: ProtocolVersion,
) -> RedisResult<SentinelClient> {
    let addresses = sentinels.iter().map(|sentinel| sentinel.addr().clone());
    let mut builder = SentinelClientBuilder::new(addresses, name, SentinelServerType::Master)?
        .set_client_to_redis_db(access.redis_settings().db())
        .set_client_to_redis_protocol(protocol)
        .set_client_to_redis_tcp_settings(tcp_settings())
        .set_client_to_sentinel_tcp_settings(tcp_settings());
    if let Some(username) = access.redis_settings().username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = access.redis_settings().password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if matches!(access.addr(), ConnectionAddr::TcpTls { .. }) {
        builder = builder.set_client_to_redis_tls_mode(redis::TlsMode::Secure);
        builder = builder.set_client_to_sentinel_tls_mode(redis::TlsMode::Secure);
        if let Some(certificates) = certificates {
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates);
        }
    }
    builder.build()
}

/// Small requests must leave at once: Nagle's algorithm would hold each back for the previous one's acknowledgement.
pub(super) fn tcp_settings() -> redis::io::tcp::TcpSettings {
    redis::io::tcp::TcpSettings::default().set_nodelay(true)
}

/// The certificates that the configuration trusts instead of the system's.
pub(super) fn trusted_certificates(config: &RedisConfig) -> RedisResult<Option<TlsCertificates>> {
    let Some(path) = &config.ca_file else { return Ok(None) };
    Ok(Some(TlsCertificates { client_tls: None, root_cert: Some(std::fs::read(path)?) }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn requests_do_not_wait_for_acknowledgements() {
        assert!(super::tcp_settings().nodelay());
    }
}
