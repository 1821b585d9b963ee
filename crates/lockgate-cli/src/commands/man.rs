//! `lockgate man`: the manual, made from the command line itself.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Page;

use super::{Outcome, print};

/// Print the manual page, or write the pages of all commands into a folder.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder for lockgate.1, lockgate-serve.1 and so on; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Of the whole command line, which is `command`.
    pub(crate) fn run(self, command: Command) -> Outcome {
        let command = command.disable_help_subcommand(true);
        let Some(folder) = self.out else {
            let mut page = Vec::new();
            Page::new(command).render(&mut page)?;
            print(&String::from_utf8(page)?);
            return Ok(());
        };
        write_all(command, &folder).map_err(|why| {
            format!("cannot write into {}: {why}; name another folder with --out", folder.display()).into()
        })
    }
}

fn write_all(command: Command, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}
