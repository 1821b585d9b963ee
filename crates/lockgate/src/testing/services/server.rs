//! One server process: everything that can happen to a server, on demand.
//!
//! | call | what the clients see | what is left |
//! | --- | --- | --- |
//! | [`Server::stop`] | connections closed in good order | all data |
//! | [`Server::kill`] | connections gone | what had reached the operating system |
//! | [`Server::pause`] | nothing at all: connections stay, no answer comes | everything |
//! | [`Server::resume`] | late answers | everything |
//! | [`Server::restart`] | the same address again | what the row above left |
//!
//! Dropping a server kills it and removes its folder, also during a panic.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::ServiceError;
use super::folder::Folder;
use super::launch::Launch;
use super::process::{self, Identity};
use crate::testing::eventually;

/// Far more than any of them needs on an idle machine, since test machines are seldom idle.
const START_BOUND: Duration = Duration::from_secs(30);
const STOP_BOUND: Duration = Duration::from_secs(15);
const LOG_LINES: usize = 15;

/// Whether a server answers in its own protocol. Gets the id of the process, because on a port that somebody else
/// took first, somebody else answers.
type Probe = Box<dyn Fn(u32) -> io::Result<()> + Send + Sync>;

/// What a kind of server brings along.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The signal that asks it to end in good order without waiting for its clients.
    pub(super) stop_signal: Signal,
    pub(super) probe: Probe,
}

/// A server process of our own. See the table in the [module's documentation](self).
pub struct Server {
    kind: Kind,
    launch: Launch,
    port: u16,
    process: Mutex<Process>,
    /// Last, so that the process is gone before its folder goes.
    folder: Folder,
}

#[derive(Debug)]
enum Process {
    Running(Child),
    Paused(Child),
    Gone,
}

impl Server {
    /// Starts it and returns when it answers.
    pub(super) fn start(kind: Kind, launch: Launch, port: u16, folder: Folder) -> Result<Self, ServiceError> {
        let server = Self { kind, launch, port, folder, process: Mutex::new(Process::Gone) };
        server.start_process(&mut server.process())?;
        Ok(server)
    }

    /// The port on 127.0.0.1; the same for life.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that holds its data, its configuration and its log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of its process, if it has one now.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.process() {
            Process::Running(child) | Process::Paused(child) => Some(child.id()),
            Process::Gone => None,
        }
    }

    /// The last lines that it wrote to its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        last_lines_of(&self.log_file())
    }

    /// Asks it to end in good order, and returns when it has. Resumes it first if it is paused.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotInTime`] when it does not end; it is killed then.
    pub fn stop(&self) -> Result<(), ServiceError> {
        let mut process = self.process();
        self.resume_process(&mut process)?;
        self.stop_process(&mut process)
    }

    /// Ends it as a power failure of its own would: `kill -9` for all its processes at once. Returns when they are
    /// gone. Does nothing when it is not running.
    pub fn kill(&self) {
        kill_family(&mut self.process());
    }

    /// Freezes it: connections stay open and new ones are accepted by the kernel, but no answer comes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::System`] when it is not running.
    pub fn pause(&self) -> Result<(), ServiceError> {
        let mut process = self.process();
        match std::mem::replace(&mut *process, Process::Gone) {
            Process::Running(child) => {
                let outcome = self.freeze_family(&child);
                *process = if outcome.is_ok() { Process::Paused(child) } else { Process::Running(child) };
                outcome
            }
            Process::Paused(child) => {
                *process = Process::Paused(child);
                Ok(())
            }
            Process::Gone => Err(self.not_running("pause")),
        }
    }

    /// Lets it go on after [`Server::pause`]. Does nothing when it was not paused.
    ///
    /// # Errors
    ///
    /// [`ServiceError::System`] when the operating system refuses.
    pub fn resume(&self) -> Result<(), ServiceError> {
        self.resume_process(&mut self.process())
    }

    /// Starts it again with the same address and folder, and returns when it answers. Stops it first if it runs.
    ///
    /// # Errors
    ///
    /// When it does not stop, or does not come up again; the message says why.
    pub fn restart(&self) -> Result<(), ServiceError> {
        let mut process = self.process();
        self.resume_process(&mut process)?;
        self.stop_process(&mut process)?;
        self.start_process(&mut process)
    }

    fn start_process(&self, process: &mut Process) -> Result<(), ServiceError> {
        // What an earlier life wrote is not the reason why this one does not start.
        let _ = fs::remove_file(self.log_file());
        *process = Process::Running(self.launch.start(self.folder(), &self.log_file())?);
        self.wait_until_it_answers(process).inspect_err(|_| kill_family(process))
    }

    fn wait_until_it_answers(&self, process: &mut Process) -> Result<(), ServiceError> {
        let Process::Running(child) = process else { return Err(self.not_running("wait for")) };
        let (mut ended, mut why) = (None, String::new());
        let came = eventually(START_BOUND, || {
            ended = child.try_wait().ok().flatten();
            let answer = (self.kind.probe)(child.id());
            why = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
            ended.is_some() || answer.is_ok()
        });
        match ended {
            Some(status) => Err(self.ended(status)),
            None if came => Ok(()),
            None => Err(self.not_in_time("ready", START_BOUND, why)),
        }
    }

    fn stop_process(&self, process: &mut Process) -> Result<(), ServiceError> {
        let Process::Running(child) = process else { return Ok(()) };
        self.signal(child, self.kind.stop_signal)?;
        let ended = eventually(STOP_BOUND, || matches!(child.try_wait(), Ok(Some(_))));
        kill_family(process);
        if ended { Ok(()) } else { Err(self.not_in_time("stopped", STOP_BOUND, String::new())) }
    }

    fn resume_process(&self, process: &mut Process) -> Result<(), ServiceError> {
        match std::mem::replace(process, Process::Gone) {
            Process::Paused(child) => {
                let outcome = self.signal_family(&child, Signal::CONT);
                *process = Process::Running(child);
                outcome
            }
            other => {
                *process = other;
                Ok(())
            }
        }
    }

    /// Returns when none of them runs any more. A signal takes effect a little after it was sent, and until then the
    /// parent may still start somebody, so it takes more than one walk through the family.
    fn freeze_family(&self, child: &Child) -> Result<(), ServiceError> {
        let mut outcome = Ok(());
        let _ = eventually(STOP_BOUND, || {
            outcome = self.signal_family(child, Signal::STOP);
            outcome.is_err() || process::is_frozen(Pid::from_child(child))
        });
        outcome
    }

    /// The parent first: when it is stopped, its family does not grow while we walk through it.
    fn signal_family(&self, child: &Child, signal: Signal) -> Result<(), ServiceError> {
        self.signal(child, signal)?;
        for descendant in process::descendants_of(Pid::from_child(child)) {
            process::signal(descendant, signal);
        }
        Ok(())
    }

    fn signal(&self, child: &Child, signal: Signal) -> Result<(), ServiceError> {
        kill_process(Pid::from_child(child), signal)
            .map_err(io::Error::from)
            .map_err(ServiceError::while_trying_to(format!("send {signal:?} to {}", self.kind.name)))
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("log")
    }

    fn not_running(&self, verb: &str) -> ServiceError {
        let source = io::Error::new(io::ErrorKind::NotFound, "it is not running; restart it first");
        ServiceError::System { doing: format!("{verb} {}", self.kind.name), source }
    }

    fn ended(&self, status: ExitStatus) -> ServiceError {
        let (server, log) = (self.kind.name, self.log_tail());
        if log.contains("Address already in use") {
            return ServiceError::PortTaken { server };
        }
        ServiceError::Ended { server, status, log }
    }

    /// The error for waiting in vain.
    pub(super) fn not_in_time(&self, goal: &'static str, bound: Duration, why: String) -> ServiceError {
        ServiceError::NotInTime { server: self.kind.name, goal, bound, why, log: self.log_tail() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on port {} ({:?})", self.kind.name, self.port, self.pid())
    }
}

/// Kills a process and its descendants, and waits until none of them can hold a file, a port or a lock any more.
///
/// The child is stopped first: then it neither starts others nor lets go of the ids of those that ended, so that
/// no stranger can be hit.
fn kill_family(process: &mut Process) {
    let (Process::Running(mut child) | Process::Paused(mut child)) =
        std::mem::replace(process, Process::Gone)
    else {
        return;
    };
    let mut family = Vec::new();
    if matches!(child.try_wait(), Ok(None)) {
        let _ = kill_process(Pid::from_child(&child), Signal::STOP);
        family = process::descendants_of(Pid::from_child(&child));
    }
    for descendant in &family {
        process::signal(*descendant, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    // They are the kernel's to clean up now; a bound only so that a broken kernel cannot hang a test.
    let _ = eventually(STOP_BOUND, || !family.iter().copied().any(Identity::is_alive));
}

/// The last lines of a log, for a message.
pub(super) fn last_lines_of(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
