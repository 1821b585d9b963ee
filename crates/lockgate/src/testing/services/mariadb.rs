//! One MariaDB server.
//!
//! It does not sync to the disk unless asked to, which makes it fast and changes nothing for a killed process: what it wrote is the
//! operating system's by then.

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, geteuid};

use super::ServiceError;
use super::folder::Folder;
use super::launch::Launch;
use super::port::{free_port, retry_on_taken_port};
use super::program::{MARIADB_INSTALL_DB, MARIADBD};
use super::server::{Kind, Server};

const NAME: &str = "mariadbd";
const DATABASE: &str = "lockgate";
const INSTALL_BOUND: Duration = Duration::from_secs(60);
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// Runs at every start, before the first connection is let in.
const INIT_FILE: &str = "\
CREATE DATABASE IF NOT EXISTS lockgate CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'lockgate'@'127.0.0.1' IDENTIFIED BY 'lockgate';
GRANT ALL ON *.* TO 'lockgate'@'127.0.0.1';
";

/// A MariaDB of our own. What can be done to any server ([`Server::pause`] and so on) can be done to it.
#[derive(Debug)]
pub struct MariaDb {
    server: Server,
}

impl MariaDb {
    /// Makes a new data folder, starts a server on it, and returns when it answers.
    ///
    /// # Errors
    ///
    /// When MariaDB is not installed or does not come up; the message names the remedy.
    pub fn start() -> Result<Self, ServiceError> {
        Self::builder().start()
    }

    /// For a server that is to be otherwise.
    pub fn builder() -> MariaDbBuilder {
        MariaDbBuilder { fsync: false }
    }

    /// `mysql://lockgate:lockgate@127.0.0.1:<port>/lockgate`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://lockgate:lockgate@127.0.0.1:{}/{DATABASE}", self.port())
    }
}

impl Deref for MariaDb {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// How a [`MariaDb`] is to be.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until it is started"]
pub struct MariaDbBuilder {
    fsync: bool,
}

impl MariaDbBuilder {
    /// Whether a commit waits for the disk, with as much memory and log as in production. Off unless said.
    pub fn fsync(self, on: bool) -> Self {
        Self { fsync: on }
    }

    /// Makes a new data folder, starts a server on it, and returns when it answers.
    ///
    /// # Errors
    ///
    /// As [`MariaDb::start`].
    pub fn start(&self) -> Result<MariaDb, ServiceError> {
        retry_on_taken_port(|| start_on(free_port()?, self.fsync))
    }

    fn settings(fsync: bool) -> &'static [&'static str] {
        if fsync { LASTING } else { FAST }
    }
}

/// For making the data folder: small files and no waiting for the disk.
const STORAGE: &[&str] = &["--innodb-log-file-size=8M", "--innodb-flush-method=nosync"];

/// For serving it without waiting for the disk.
const FAST: &[&str] = &[
    "--innodb-log-file-size=8M",
    "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=32M",
];

/// For serving it as in production.
const LASTING: &[&str] =
    &["--innodb-log-file-size=256M", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=256M"];

const SERVING: &[&str] = &[
    "--bind-address=127.0.0.1",
    // The users are those of 127.0.0.1; asking a name server who that is costs time and can fail.
    "--skip-name-resolve",
    "--skip-log-bin",
    // All three relative to the data folder: an absolute path would soon be too long for a socket.
    "--socket=mariadb.sock",
    "--pid-file=mariadb.pid",
    "--tmpdir=.",
];

fn start_on(port: u16, fsync: bool) -> Result<MariaDb, ServiceError> {
    let folder = Folder::create(NAME)?;
    let data = folder.path().join("data");
    make_data_folder(folder.path(), &data)?;
    let init_file = folder.path().join("init.sql");
    fs::write(&init_file, INIT_FILE).map_err(ServiceError::while_trying_to("write init.sql"))?;
    let launch = Launch::of(MARIADBD)?
        // Must be the first: nobody's `my.cnf` may change what a test sees.
        .argument("--no-defaults")
        .arguments([format!("--datadir={}", data.display()), format!("--port={port}")])
        .argument(format!("--init-file={}", init_file.display()))
        .arguments(MariaDbBuilder::settings(fsync).iter().chain(SERVING))
        .arguments(as_root());
    let kind = kind(port, &data);
    Ok(MariaDb { server: Server::start(kind, launch, port, folder)? })
}

fn make_data_folder(folder: &Path, data: &Path) -> Result<(), ServiceError> {
    Launch::of(MARIADB_INSTALL_DB)?
        .argument("--no-defaults")
        .argument(format!("--datadir={}", data.display()))
        .arguments(["--skip-test-db", "--auth-root-authentication-method=normal"])
        .arguments(STORAGE)
        .arguments(as_root())
        .run_to_its_end("mariadb-install-db", folder, &folder.join("install.log"), INSTALL_BOUND)
}

/// MariaDB runs as root only when told so; everybody else cannot choose.
fn as_root() -> Option<&'static str> {
    geteuid().is_root().then_some("--user=root")
}

fn kind(port: u16, data: &Path) -> Kind {
    let pid_file = data.join("mariadb.pid");
    let probe = move |pid| answers_as(port, &pid_file, pid);
    Kind { name: NAME, stop_signal: Signal::TERM, probe: Box::new(probe) }
}

/// It writes its pid file once it has its port, and greets whoever comes once it lets clients in.
fn answers_as(port: u16, pid_file: &Path, pid: u32) -> io::Result<()> {
    if fs::read_to_string(pid_file)?.trim() != pid.to_string() {
        return Err(io::Error::other("its pid file is not written yet"));
    }
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PROBE_PATIENCE)?;
    stream.set_read_timeout(Some(PROBE_PATIENCE))?;
    stream.read_exact(&mut [0])
}
