//! `lockgate actions`: what admins did.

use clap::Args;

use super::Outcome;
use super::remote::{Remote, ServerPlace};
use super::show::table;

/// List what admins did through a running server lately, the latest first.
#[derive(Debug, Args)]
pub(crate) struct Actions {
    #[command(flatten)]
    server: ServerPlace,
}

const COLUMNS: &[&str] = &["at", "action", "target", "outcome", "address"];

impl Actions {
    pub(crate) fn run(self) -> Outcome {
        Remote::new(self.server)?.tell_all("actions", |all, more| table(all, COLUMNS, more))
    }
}
