//! A server in a process of its own, for as long as the bench needs it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::line::pass::PassKeys;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::caller::{ADMIN_TOKEN, Caller};
use crate::bench::{Failure, NAMESPACE};

/// How long a server may take to be ready, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_millis(1);

/// Killed when it is dropped.
pub(super) struct Process {
    pub(super) address: String,
    /// From the start of the process until it answered that it is ready.
    pub(super) ready_after: Duration,
    child: Child,
    /// Kept open: a server that cannot print must not be what is measured.
    _says: BufReader<ChildStdout>,
    _data: TempDir,
}

impl Process {
    /// The handler that decides nothing.
    pub(super) async fn bare(program: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(["bench", "http-bare"]);
        Self::start(command, tempfile::tempdir()?).await
    }

    /// Decisions in memory, each of them on disk before it is answered.
    pub(super) async fn embedded(program: &Path) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        Self::start(serve(program, data.path()), data).await
    }

    /// The same for so many connections.
    pub(super) async fn embedded_for(program: &Path, connections: u64) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let mut command = serve(program, data.path());
        command.args(["--max-connections", &connections.to_string()]);
        Self::start(command, data).await
    }

    pub(super) async fn on_redis(program: &Path, redis: &str) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let pass_key = data.path().join("pass-key.pem");
        std::fs::write(&pass_key, PassKeys::generate().to_pkcs8_pem())?;
        let mut command = serve(program, data.path());
        command.args(["--store", redis, "--namespace", NAMESPACE, "--pass-key"]).arg(pass_key);
        Self::start(command, data).await
    }

    async fn start(mut command: Command, data: TempDir) -> Result<Self, Failure> {
        for (variable, _) in std::env::vars_os().filter(|(variable, _)| is_ours(variable.as_encoded_bytes()))
        {
            command.env_remove(variable);
        }
        command.env("LOCKGATE_ADMIN_TOKEN", ADMIN_TOKEN);
        let clock = Clock::system();
        let began = clock.monotonic();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut says = BufReader::new(child.stdout.take().ok_or("a process without pipes")?);
        let mut line = String::new();
        says.read_line(&mut line).await?;
        let address = line.trim().rsplit_once("http://").ok_or_else(|| format!("a server said {line:?}"))?.1;
        let address = address.to_owned();
        while Caller::connect(&address).await?.is_ready().await.is_err() {
            if clock.monotonic().since(began) > PATIENCE {
                return Err(format!("the server on {address} does not become ready").into());
            }
            tokio::time::sleep(ASKED_EVERY).await;
        }
        Ok(Self { address, ready_after: clock.monotonic().since(began), child, _says: says, _data: data })
    }

    /// What it has in memory, in bytes. `None` where the system does not tell.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes * 1_024)
    }

    /// How long it has been at work on all cores, in microseconds. `None` where the system does not tell.
    pub(super) fn busy_micros(&self) -> Option<u64> {
        busy_micros(&self.child.id()?.to_string())
    }
}

/// The same of this process, where the callers are.
pub(super) fn own_busy_micros() -> Option<u64> {
    busy_micros("self")
}

fn busy_micros(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything; user and system time are the 12th and 13th after it.
    let mut times = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(ticks * 1_000_000 / TICKS_PER_SECOND)
}

/// Ticks of the clock that processes are charged by.
const TICKS_PER_SECOND: u64 = 100;

fn is_ours(variable: &[u8]) -> bool {
    variable.starts_with(b"LOCKGATE_")
}

/// As it is started without a word of configuration, but for where it listens.
fn serve(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command
}
