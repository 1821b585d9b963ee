//! One PostgreSQL server.
//!
//! It does not sync to the disk unless asked to, which makes it fast and changes nothing for a killed process: what
//! it wrote is the operating system's by then. When we are root, it runs as another user, since it insists.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::ServiceError;
use super::certificate::Certificate;
use super::folder::Folder;
use super::launch::Launch;
use super::port::{free_port, retry_on_taken_port};
use super::program::{INITDB, POSTGRES};
use super::server::{Kind, Server};
use super::user::User;

const NAME: &str = "postgres";
const USER: &str = "lockgate";
/// The database that every new PostgreSQL has.
const DATABASE: &str = "postgres";
const INITDB_BOUND: Duration = Duration::from_secs(60);
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// A PostgreSQL of our own. What can be done to any server ([`Server::pause`] and so on) can be done to it.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
}

impl Postgres {
    /// Makes a new data folder, starts a server on it, and returns when it answers.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed or does not come up; the message names the remedy.
    pub fn start() -> Result<Self, ServiceError> {
        Self::builder().start()
    }

    /// For a server with settings of its own.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder { settings: Vec::new(), is_encrypted: false }.fsync(false)
    }

    /// The authority to trust, of a server that was started [encrypted](PostgresBuilder::encrypted).
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        Certificate::in_folder(self.folder()).certificate_file
    }

    /// `postgres://lockgate@127.0.0.1:<port>/postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{DATABASE}", self.port())
    }
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// How a [`Postgres`] is to be.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until it is started"]
pub struct PostgresBuilder {
    settings: Vec<(String, String)>,
    is_encrypted: bool,
}

impl PostgresBuilder {
    /// Whether a commit waits for the disk, as in production. Off unless said.
    pub fn fsync(self, on: bool) -> Self {
        let value = if on { "on" } else { "off" };
        // Not `synchronous_commit`: without it, a killed process takes with it what it has acknowledged.
        self.setting("fsync", value).setting("full_page_writes", value)
    }

    /// A setting of `postgresql.conf`, for example `setting("max_connections", "20")`. The last one counts.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// Lets clients speak TLS, with a certificate for 127.0.0.1 of its own.
    pub fn encrypted(mut self) -> Self {
        self.is_encrypted = true;
        self
    }

    /// Makes a new data folder, starts a server on it, and returns when it answers.
    ///
    /// # Errors
    ///
    /// As [`Postgres::start`].
    pub fn start(&self) -> Result<Postgres, ServiceError> {
        retry_on_taken_port(|| self.start_on(free_port()?))
    }

    fn start_on(&self, port: u16) -> Result<Postgres, ServiceError> {
        let folder = Folder::create(NAME)?;
        let user = User::unprivileged()?;
        if let Some(user) = user {
            user.own(folder.path())?;
        }
        make_data_folder(folder.path(), user)?;
        if self.is_encrypted {
            let certificate = Certificate::create(folder.path())?;
            // PostgreSQL reads no key that is somebody else's.
            if let Some(user) = user {
                user.own(&certificate.key_file)?;
            }
        }
        let encryption = if self.is_encrypted { ENCRYPTION } else { &[] };
        let launch = Launch::of(POSTGRES)?
            .run_by(user)
            .arguments(["-D", "data", "-c", "listen_addresses=127.0.0.1", "-c"])
            .argument(format!("port={port}"))
            .arguments(FIXED_SETTINGS.iter().flat_map(|setting| ["-c", *setting]))
            .arguments(encryption.iter().flat_map(|setting| ["-c", *setting]))
            .arguments(
                self.settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]),
            );
        let kind = kind(port, folder.path());
        Ok(Postgres { server: Server::start(kind, launch, port, folder)? })
    }
}

const FIXED_SETTINGS: &[&str] = &[
    // Relative to the data folder: an absolute path would soon be too long for a socket.
    "unix_socket_directories=.",
    // In the data folder as well; elsewhere it would outlive a killed server.
    "dynamic_shared_memory_type=mmap",
    "max_connections=200",
    "shared_buffers=32MB",
];

/// Relative to the data folder.
const ENCRYPTION: &[&str] = &["ssl=on", "ssl_cert_file=../tls.crt", "ssl_key_file=../tls.key"];

fn make_data_folder(folder: &Path, user: Option<User>) -> Result<(), ServiceError> {
    Launch::of(INITDB)?
        .run_by(user)
        .arguments(["--no-sync", "--no-instructions", "--no-locale", "-E", "UTF8", "-A", "trust"])
        .arguments(["-U", USER, "-D", "data"])
        .run_to_its_end("initdb", folder, &folder.join("initdb.log"), INITDB_BOUND)
}

fn kind(port: u16, folder: &Path) -> Kind {
    let pid_file = folder.join("data/postmaster.pid");
    let probe = move |pid| answers_as(port, &pid_file, pid);
    // SIGINT is PostgreSQL's "fast" shutdown: SIGTERM would wait for every client to leave.
    Kind { name: NAME, stop_signal: Signal::INT, probe: Box::new(probe) }
}

/// The first line of the pid file says who owns this data folder, the eighth that it lets clients in: what `pg_ctl`
/// goes by too. The rest is knocking.
fn answers_as(port: u16, pid_file: &Path, pid: u32) -> io::Result<()> {
    let notes = std::fs::read_to_string(pid_file)?;
    let lines: Vec<&str> = notes.lines().map(str::trim).collect();
    if lines.first() != Some(&pid.to_string().as_str()) || lines.get(7) != Some(&"ready") {
        return Err(io::Error::other("it does not say \"ready\" yet"));
    }
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PROBE_PATIENCE).map(|_| ())
}
