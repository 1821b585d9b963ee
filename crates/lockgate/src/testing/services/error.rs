//! Why a service is not there, and what to do about it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::program::Program;

/// Why a service did not start, stop or answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The program is not on this machine.
    #[error(
        "{} is not installed; run \"cargo xtask setup\" or \"apt-get install {}\"",
        .0.name, .0.debian_package
    )]
    NotInstalled(Program),
    /// Something between us and the operating system.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// Why it did not work.
        source: io::Error,
    },
    /// Somebody else was faster. The harness tries other ports by itself, so this one was fixed.
    #[error("{server} cannot have its port back, another process listens there now; start a new one instead")]
    PortTaken {
        /// Whose port it was.
        server: &'static str,
    },
    /// The process ended instead of serving.
    #[error("{server} ended ({status}) before it was ready; its log ends with:\n{log}")]
    Ended {
        /// Which server.
        server: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote.
        log: String,
    },
    /// The process runs, but what was waited for did not come about.
    #[error("{server} is not {goal} after {bound:?} (is the machine overloaded?): {why}\n{log}")]
    NotInTime {
        /// Which server.
        server: &'static str,
        /// What was waited for.
        goal: &'static str,
        /// For how long.
        bound: Duration,
        /// What was seen at the last look.
        why: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// The server answered, with an error.
    #[error("{server} refused: {message}")]
    Refused {
        /// Which server.
        server: &'static str,
        /// What it said.
        message: String,
    },
}

impl ServiceError {
    /// For `map_err`: says what was being done when the operating system said no.
    pub(super) fn while_trying_to(doing: impl Into<String>) -> impl FnOnce(io::Error) -> ServiceError {
        let doing = doing.into();
        move |source| ServiceError::System { doing, source }
    }
}
