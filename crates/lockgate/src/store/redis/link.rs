//! Sends a call until it has an answer or its time is up.
//!
//! **Promise:** a call ends within `call_timeout`. The error says whether the call may have happened:
//!
//! | what was met last | an earlier sending got no answer | the caller gets |
//! | --- | --- | --- |
//! | nobody there, loading, read-only, cluster down | no | `Unavailable` |
//! | the same | yes | `UnknownOutcome` |
//! | no answer in time, connection lost | either | `UnknownOutcome` |
//! | an error that sending again cannot cure | no | `Refused` |
//! | the same | yes | `UnknownOutcome` |
//!
//! Re-sending is allowed because every script is idempotent: that is part of the store's contract.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value};
use tokio::time::{sleep, timeout};

use super::lane::{Lane, Live, tcp_settings, trusted_certificates};
#[cfg(any(test, feature = "testing"))]
use super::script::Run;
use super::script::ScriptCall;
use super::switches::Switches;
use super::url::{Master, RedisUrl, Topology};
use crate::clock::Clock;
use crate::config::RedisConfig;
use crate::error::{OpenError, StoreError};
use crate::jitter::jittered;

/// See the [module](self).
pub(super) struct Link {
    route: Route,
    config: RedisConfig,
    shown_url: String,
}

enum Route {
    Lanes { lanes: Vec<Lane>, next: AtomicUsize },
    Cluster(ClusterConnection),
}

/// What can be sent.
pub(super) enum Request<'a> {
    /// A script, to whoever owns its keys.
    Script(&'a ScriptCall<'a>),
    /// A plain command, to whoever owns its key.
    Command(&'a Cmd),
    /// Plain commands, one behind the other over one connection, to whoever owns their keys, which belong to one partition. The
    /// answer is a list.
    InARow(&'a Pipeline),
    /// A plain command to every server that owns data; the answer is a map if there are several.
    ToAllMasters(&'a Cmd),
}

/// The connection over which one sending goes.
enum Way<'a> {
    Lane(&'a Lane, Live),
    Cluster(ClusterConnection),
}

/// What is known of the sendings so far.
#[derive(Default)]
struct Trail {
    may_have_happened: bool,
    last_error: String,
}

/// What an error says about the sending that met it.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// It did not happen; it might if it were sent again.
    DidNotHappen,
    /// Nobody knows.
    MayHaveHappened,
    /// It did not happen, and never will.
    Refused,
}

impl Link {
    pub(super) async fn open(
        url: &RedisUrl,
        config: &RedisConfig,
        clock: Clock,
        switches: &Switches,
    ) -> Result<Self, OpenError> {
        let connecting = async {
            match &url.topology {
                Topology::Cluster { nodes } => connect_cluster(nodes.clone(), config).await,
                Topology::OneMaster(master) => connect_lanes(master, config, &clock, switches).await,
            }
        };
        let route = match timeout(config.call_timeout, connecting).await {
            Ok(Ok(route)) => route,
            Ok(Err(why)) => return Err(explain_no_connection(&url.shown, &why.to_string())),
            Err(_) => return Err(explain_no_connection(&url.shown, "no answer in time")),
        };
        Ok(Self { route, config: config.clone(), shown_url: url.shown.clone() })
    }

    /// The URL, fit for messages.
    pub(super) fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// To which run of the server the next call goes, as far as it is known.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn run(&self) -> Run {
        match &self.route {
            Route::Lanes { lanes, .. } => lanes.first().and_then(Lane::run),
            Route::Cluster(_) => None,
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.route, Route::Cluster(_))
    }

    /// Sends `request` until there is an answer or the time is up.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Value, StoreError> {
        let mut trail = Trail::default();
        match timeout(self.config.call_timeout, self.try_repeatedly(&request, &mut trail)).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(trail.into_error("")),
            Err(_) => Err(trail.into_error("no answer in time")),
        }
    }

    /// `None` when no more attempts will be made.
    async fn try_repeatedly(
        &self,
        request: &Request<'_>,
        trail: &mut Trail,
    ) -> Option<Result<Value, StoreError>> {
        for attempt in 0..=self.config.retry_attempts {
            if attempt > 0 {
                sleep(jittered(self.config.retry_interval)).await;
            }
            let mut way = match self.way().await {
                Ok(way) => way,
                Err(why) => {
                    trail.last_error = why.to_string();
                    continue;
                }
            };
            // Set before sending: if this future is dropped while it waits, the truth is that nobody knows.
            let unknown_before = std::mem::replace(&mut trail.may_have_happened, true);
            let why = match way.send(request).await {
                Ok(value) => return Some(Ok(value)),
                Err(why) => why,
            };
            trail.last_error = why.to_string();
            match judge(&why) {
                Judgement::Refused if unknown_before => return None,
                Judgement::Refused => return Some(Err(StoreError::Refused(why.to_string()))),
                Judgement::DidNotHappen => trail.may_have_happened = unknown_before,
                Judgement::MayHaveHappened => {}
            }
            way.retire_if_useless(&why);
        }
        None
    }

    async fn way(&self) -> RedisResult<Way<'_>> {
        match &self.route {
            Route::Cluster(connection) => Ok(Way::Cluster(connection.clone())),
            Route::Lanes { lanes, next } => {
                let lane = &lanes[next.fetch_add(1, Ordering::Relaxed) % lanes.len()];
                Ok(Way::Lane(lane, lane.connection().await?))
            }
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("url", &self.shown_url).finish_non_exhaustive()
    }
}

impl Way<'_> {
    async fn send(&mut self, request: &Request<'_>) -> RedisResult<Value> {
        match self {
            Way::Lane(lane, live) => {
                let moved = lane.has_moved_from(live.switches);
                tokio::select! {
                    biased;
                    // Before the answer: what the old master says does not count any more.
                    () = moved => Err(has_moved()),
                    answer = send_to_master(request, live) => answer,
                }
            }
            Way::Cluster(connection) => send_to_cluster(request, connection).await,
        }
    }

    /// Gives the connection up when a new one could do better: after a loss, after silence, and when the server turned
    /// out to be no longer the master. The cluster's client looks after its own.
    fn retire_if_useless(&self, why: &RedisError) {
        let no_reply = judge(why) == Judgement::MayHaveHappened;
        let useless = no_reply || code_of(why) == Some("READONLY");
        if let (Way::Lane(lane, live), true) = (self, useless) {
            lane.retire(live);
        }
    }
}

async fn send_to_master(
    request: &Request<'_>,
    Live { connection, run, .. }: &mut Live,
) -> RedisResult<Value> {
    match request {
        Request::Script(call) => call.run(connection, *run).await,
        Request::InARow(commands) => commands.query_async(connection).await,
        Request::Command(command) | Request::ToAllMasters(command) => command.query_async(connection).await,
    }
}

async fn send_to_cluster(request: &Request<'_>, connection: &mut ClusterConnection) -> RedisResult<Value> {
    match request {
        Request::Script(call) => call.run(connection, None).await,
        Request::InARow(commands) => commands.query_async(connection).await,
        Request::Command(command) => command.query_async(connection).await,
        Request::ToAllMasters(command) => {
            let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            connection.route_command((*command).clone(), all).await
        }
    }
}

/// The end of a call that was under way to a master that is none any more.
fn has_moved() -> RedisError {
    std::io::Error::other("the sentinels say that another server is the master now").into()
}

impl Trail {
    fn into_error(self, end: &str) -> StoreError {
        let why = if self.last_error.is_empty() { end.to_owned() } else { self.last_error };
        if self.may_have_happened { StoreError::UnknownOutcome(why) } else { StoreError::Unavailable(why) }
    }
}

/// Errors of a server that is there but cannot serve now. It says so before it runs or writes anything.
const NOT_NOW: [&str; 11] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "TRYAGAIN",
];

fn judge(why: &RedisError) -> Judgement {
    match why.kind() {
        // Something came back that is no reply: the end of a connection in the middle of one looks like this.
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Judgement::MayHaveHappened,
        ErrorKind::ClusterConnectionNotFound => Judgement::DidNotHappen,
        _ if code_of(why).is_some_and(|code| NOT_NOW.contains(&code)) => Judgement::DidNotHappen,
        _ => Judgement::Refused,
    }
}

/// The word by which the server names an error. Before version 7 it hides the word of an error that a script met:
/// `ERR Error running script (call to f_…): @user_script:36: -READONLY You can't write …`.
fn code_of(why: &RedisError) -> Option<&str> {
    let hidden = why.detail().filter(|detail| detail.contains("Error running script")).and_then(|detail| {
        detail.split_whitespace().find_map(|word| word.strip_prefix('-')).filter(|word| !word.is_empty())
    });
    hidden.or(why.code())
}

/// To be called before anything is dialed.
pub(super) fn choose_cryptography(url: &RedisUrl) {
    if url.is_tls() {
        // Another part of the program may have chosen already; any choice will do.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
    }
}

async fn connect_lanes(
    master: &Master,
    config: &RedisConfig,
    clock: &Clock,
    switches: &Switches,
) -> RedisResult<Route> {
    let lanes = (0..config.connections.max(1))
        .map(|_| Lane::to(master, config, clock.clone(), switches.clone()))
        .collect::<RedisResult<Vec<_>>>()?;
    for lane in &lanes {
        lane.connection().await?;
    }
    Ok(Route::Lanes { lanes, next: AtomicUsize::new(0) })
}

async fn connect_cluster(nodes: Vec<redis::ConnectionInfo>, config: &RedisConfig) -> RedisResult<Route> {
    // By itself the client pauses for 1.3 s before it looks who has taken over from a master that is gone.
    let pause = u64::try_from(config.retry_interval.as_millis()).unwrap_or(u64::MAX).clamp(2, 60_000);
    let mut builder = ClusterClientBuilder::new(nodes)
        .tcp_settings(tcp_settings())
        .connection_timeout(config.connect_timeout)
        .response_timeout(config.response_timeout)
        .min_retry_wait(pause / 2)
        .max_retry_wait(pause * 2)
        .retry_wait_formula(pause, 2)
        .retries(config.retry_attempts);
    if let Some(certificates) = trusted_certificates(config)? {
        builder = builder.certs(certificates);
    }
    Ok(Route::Cluster(builder.build()?.get_async_connection().await?))
}

/// The sentence for a server that cannot be had, with what to do about it.
pub(super) fn explain_no_connection(shown_url: &str, why: &str) -> OpenError {
    let wants_password =
        ["NOAUTH", "WRONGPASS", "authentication failed"].iter().any(|sign| why.contains(sign));
    OpenError::Unreachable(if wants_password {
        format!(
            "{shown_url} wants another password ({why}); write it into the URL, as in redis://user:password@host:port"
        )
    } else {
        format!("cannot connect to {shown_url}: {why}; start the server there, or correct the store URL")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(text: &str) -> RedisError {
        redis::parse_redis_value(format!("-{text}\r\n").as_bytes())
            .and_then(Value::extract_error)
            .expect_err("an error")
    }

    #[test]
    fn errors_say_whether_the_call_may_have_happened() {
        for code in NOT_NOW {
            let error = server_error(&format!("{code} 1 127.0.0.1:1"));
            assert_eq!(judge(&error), Judgement::DidNotHappen, "{code}");
        }
        for never in ["WRONGTYPE x", "ERR x", "NOPERM x", "NOAUTH x"] {
            assert_eq!(judge(&server_error(never)), Judgement::Refused, "{never}");
        }
        let silence = RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        assert_eq!(judge(&silence), Judgement::MayHaveHappened);
    }

    #[test]
    fn what_redis_6_hides_in_a_script_error_is_found() {
        let hide = |inner: &str| {
            server_error(&format!(
                "ERR Error running script (call to f_5f5e385d): @user_script:54: @user_script: 54: {inner}"
            ))
        };
        let demoted = hide("-READONLY You can't write against a read only replica.");
        assert_eq!((code_of(&demoted), judge(&demoted)), (Some("READONLY"), Judgement::DidNotHappen));
        let full = hide("-OOM command not allowed when used memory > 'maxmemory'.");
        assert_eq!(judge(&full), Judgement::DidNotHappen);
        assert_eq!(judge(&hide("-WRONGTYPE Operation against a key")), Judgement::Refused);
        assert_eq!(judge(&hide("attempt to compare nil with number")), Judgement::Refused);
    }
}
