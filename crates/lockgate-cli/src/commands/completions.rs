//! `lockgate completions`: what a shell needs to complete the rest of a command.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::{Outcome, print};

/// Print the completions of a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    /// Of the whole command line, which is `command`.
    pub(crate) fn run(self, mut command: Command) -> Outcome {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "lockgate", &mut script);
        print(&String::from_utf8(script)?);
        Ok(())
    }
}
