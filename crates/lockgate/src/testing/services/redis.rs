//! One Redis server, as durable as asked for.
//!
//! ```no_run
//! use lockgate::testing::services::{Persistence, Redis};
//!
//! let redis = Redis::start(Persistence::AofAlways)?;
//! redis.command(&["SET", "a", "1"])?;
//! redis.kill();
//! redis.restart()?;
//! assert_eq!(redis.command(&["GET", "a"])?.as_str(), Some("1"));
//! # Ok::<(), lockgate::testing::services::ServiceError>(())
//! ```

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::ServiceError;
use super::certificate::Certificate;
use super::folder::Folder;
use super::launch::Launch;
use super::port::{free_port, retry_on_taken_port};
use super::program::REDIS_SERVER;
use super::resp::{self, Endpoint, Reply};
use super::server::{Kind, Server};

/// How long the harness's own commands wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
const PROBE_PATIENCE: Duration = Duration::from_millis(500);

/// What survives the end of a Redis process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: no snapshot, no log.
    Off,
    /// The append-only file, synced once a second: what a machine loses when the power fails is about a second. A
    /// killed *process* loses nothing that it had acknowledged, since the file's pages are the kernel's.
    AofEverysec,
    /// The append-only file, synced before every answer.
    AofAlways,
}

impl Persistence {
    fn lines(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Persistence::Off => &[("appendonly", "no")],
            Persistence::AofEverysec => &[("appendonly", "yes"), ("appendfsync", "everysec")],
            Persistence::AofAlways => &[("appendonly", "yes"), ("appendfsync", "always")],
        }
    }
}

/// A Redis of our own. What can be done to any server ([`Server::pause`] and so on) can be done to it.
#[derive(Debug)]
pub struct Redis {
    endpoint: Endpoint,
    ca_file: Option<PathBuf>,
    server: Server,
}

impl Redis {
    /// Starts a server on a free port and returns when it answers.
    ///
    /// # Errors
    ///
    /// When `redis-server` is not installed or does not come up; the message names the remedy.
    pub fn start(persistence: Persistence) -> Result<Self, ServiceError> {
        Self::builder().persistence(persistence).start()
    }

    /// For a server with a configuration of its own.
    pub fn builder() -> RedisBuilder {
        RedisBuilder { persistence: Persistence::Off, lines: Vec::new(), tls: false, sentinel: false }
    }

    /// `redis://127.0.0.1:<port>`, or `rediss://` when it speaks TLS.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.ca_file.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://{}", self.address())
    }

    /// `127.0.0.1:<port>`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The certificate (PEM) that a client has to trust, when the server speaks TLS.
    #[must_use]
    pub fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Runs one command over a connection of its own, waiting up to five seconds.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Refused`] when Redis answers with an error, [`ServiceError::System`] when it does not answer.
    pub fn command(&self, command: &[&str]) -> Result<Reply, ServiceError> {
        self.command_within(PATIENCE, command)
    }

    /// [`Redis::command`], with another patience.
    ///
    /// # Errors
    ///
    /// As [`Redis::command`].
    pub fn command_within(&self, patience: Duration, command: &[&str]) -> Result<Reply, ServiceError> {
        let doing = || format!("ask Redis on port {} to {}", self.port(), command.join(" "));
        match resp::ask(&self.endpoint, patience, command) {
            Ok(Reply::Error(message)) => Err(ServiceError::Refused { server: "redis-server", message }),
            Ok(reply) => Ok(reply),
            Err(error) => Err(ServiceError::while_trying_to(doing())(error)),
        }
    }

    /// One value of `INFO`, for example `info("replication", "role")`. `None` also when it does not answer.
    #[must_use]
    pub fn info(&self, section: &str, name: &str) -> Option<String> {
        let reply = self.command_within(PROBE_PATIENCE, &["INFO", section]).ok()?;
        value_in(reply.as_str()?, name).map(ToOwned::to_owned)
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// How a [`Redis`] is to be.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until it is started"]
pub struct RedisBuilder {
    persistence: Persistence,
    lines: Vec<(String, String)>,
    tls: bool,
    sentinel: bool,
}

impl RedisBuilder {
    /// What survives its end; nothing unless said.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// A line of its configuration file, for example `config("maxmemory-policy", "allkeys-lru")`.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push((name.to_owned(), value.to_string()));
        self
    }

    /// Only encrypted connections, with a fresh certificate for 127.0.0.1: [`Redis::ca_file`].
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A guardian instead of a store.
    pub(super) fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Starts a server on a free port and returns when it answers.
    ///
    /// # Errors
    ///
    /// As [`Redis::start`].
    pub fn start(&self) -> Result<Redis, ServiceError> {
        retry_on_taken_port(|| self.start_on(free_port()?, &[]))
    }

    /// Starts a server on this port, with these files beside its configuration.
    pub(super) fn start_on(&self, port: u16, files: &[(&str, &str)]) -> Result<Redis, ServiceError> {
        let folder = Folder::create(if self.sentinel { "sentinel" } else { "redis" })?;
        let certificate = if self.tls { Some(Certificate::create(folder.path())?) } else { None };
        let socket = folder.path().join("redis.sock");
        let config = self.configuration(port, folder.path(), certificate.as_ref());
        for (name, text) in files.iter().chain([&("redis.conf", config.as_str())]) {
            fs::write(folder.path().join(name), text)
                .map_err(ServiceError::while_trying_to(format!("write {name}")))?;
        }
        let mut launch = Launch::of(REDIS_SERVER)?.argument(folder.path().join("redis.conf"));
        if self.sentinel {
            launch = launch.argument("--sentinel");
        }
        let endpoint = if self.tls { Endpoint::Socket(socket) } else { Endpoint::Port(port) };
        let kind = kind(endpoint.clone());
        let ca_file = certificate.map(|certificate| certificate.certificate_file);
        Ok(Redis { endpoint, ca_file, server: Server::start(kind, launch, port, folder)? })
    }

    fn configuration(&self, port: u16, folder: &Path, certificate: Option<&Certificate>) -> String {
        let mut lines = vec![("bind".to_owned(), "127.0.0.1".to_owned())];
        let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
        line("dir", folder.display().to_string());
        match certificate {
            None => line("port", port.to_string()),
            Some(certificate) => {
                line("port", "0".to_owned());
                line("tls-port", port.to_string());
                line("tls-cert-file", certificate.certificate_file.display().to_string());
                line("tls-key-file", certificate.key_file.display().to_string());
                line("tls-auth-clients", "no".to_owned());
                // The harness itself speaks no TLS.
                line("unixsocket", "redis.sock".to_owned());
            }
        }
        if !self.sentinel {
            line("save", String::new());
            for (name, value) in self.persistence.lines() {
                line(name, (*value).to_owned());
            }
        }
        lines.extend(self.lines.iter().cloned());
        lines.iter().map(|(name, value)| config_line(name, value)).collect()
    }
}

fn config_line(name: &str, value: &str) -> String {
    let value = if value.is_empty() { "\"\"" } else { value };
    format!("{name} {value}\n")
}

fn kind(endpoint: Endpoint) -> Kind {
    let probe = move |pid| answers_as(&endpoint, pid);
    Kind { name: "redis-server", stop_signal: Signal::TERM, probe: Box::new(probe) }
}

/// A server that still loads its data answers `PING` with an error; one on a port that we lost has another pid.
fn answers_as(endpoint: &Endpoint, pid: u32) -> io::Result<()> {
    match resp::ask(endpoint, PROBE_PATIENCE, &["PING"])? {
        Reply::Status(pong) if pong == "PONG" => {}
        other => return Err(io::Error::other(other.to_string())),
    }
    let info = resp::ask(endpoint, PROBE_PATIENCE, &["INFO", "server"])?;
    match value_in(info.as_str().unwrap_or_default(), "process_id") {
        Some(found) if found == pid.to_string() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "another Redis answers on this port")),
    }
}

/// The value in lines of the form `name:value`.
pub(super) fn value_in<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}
