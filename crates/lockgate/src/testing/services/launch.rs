//! Starting programs so that they die with us, however we die.
//!
//! The kernel sends a child the signal that it asked for (`setpriv --pdeathsig`) when its parent dies, and by
//! parent it means the *thread* that started it. Tests run in threads that come and go, so all children are started
//! by one thread that lives as long as the process.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::ServiceError;
use super::program::{Program, SETPRIV};
use super::server::last_lines_of;
use super::user::User;
use crate::testing::eventually;

/// A command line that can be started again and again.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    user: Option<User>,
}

impl Launch {
    /// Fails when the program is not installed.
    pub(super) fn of(program: Program) -> Result<Self, ServiceError> {
        let program = program.find().ok_or(ServiceError::NotInstalled(program))?;
        Ok(Self { program, arguments: Vec::new(), user: None })
    }

    pub(super) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(super) fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// `None` is the user that we are.
    pub(super) fn run_by(mut self, user: Option<User>) -> Self {
        self.user = user;
        self
    }

    /// Starts the program in a folder; whatever it prints is appended to `log`.
    pub(super) fn start(&self, folder: &Path, log: &Path) -> Result<Child, ServiceError> {
        self.command(folder, log)
            .and_then(spawn_from_the_long_lived_thread)
            .map_err(ServiceError::while_trying_to(format!("start {}", self.program.display())))
    }

    /// Starts a program that does one thing, and waits until it has done it.
    pub(super) fn run_to_its_end(
        &self,
        name: &'static str,
        folder: &Path,
        log: &Path,
        bound: Duration,
    ) -> Result<(), ServiceError> {
        let mut child = self.start(folder, log)?;
        let mut ended = None;
        let _ = eventually(bound, || {
            ended = child.try_wait().ok().flatten();
            ended.is_some()
        });
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(ServiceError::Ended { server: name, status, log: last_lines_of(log) }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let (why, log) = (String::new(), last_lines_of(log));
                Err(ServiceError::NotInTime { server: name, goal: "done", bound, why, log })
            }
        }
    }

    fn command(&self, folder: &Path, log: &Path) -> io::Result<Command> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = self.program_that_dies_with_us();
        command
            .args(&self.arguments)
            .current_dir(folder)
            // Nobody's `PGPORT` or language may change what a test sees.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for the test run, which takes its servers with it; not for each of them in its own way.
            .process_group(0);
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        Ok(command)
    }

    /// The user changes *before* `setpriv` runs: a change of user would make the kernel forget the signal.
    fn program_that_dies_with_us(&self) -> Command {
        let Some(setpriv) = SETPRIV.find() else { return Command::new(&self.program) };
        let mut command = Command::new(setpriv);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program);
        command
    }
}

struct Order {
    command: Command,
    outcome: Sender<io::Result<Child>>,
}

fn spawn_from_the_long_lived_thread(command: Command) -> io::Result<Child> {
    let (outcome, arrives) = channel();
    long_lived_thread()?.send(Order { command, outcome }).map_err(io::Error::other)?;
    arrives.recv().map_err(io::Error::other)?
}

fn long_lived_thread() -> io::Result<Sender<Order>> {
    static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
    if let Some(orders) = ORDERS.get() {
        return Ok(orders.clone());
    }
    let (orders, incoming) = channel::<Order>();
    // When two threads come here at once, one of these threads ends at once, and has started nothing.
    thread::Builder::new().name("lockgate-services".into()).spawn(move || {
        for mut order in incoming {
            // The caller waits for the answer, so it is there.
            let _ = order.outcome.send(order.command.spawn());
        }
    })?;
    Ok(ORDERS.get_or_init(|| orders).clone())
}
