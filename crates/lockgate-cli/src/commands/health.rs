//! `lockgate health`: asks a running server whether it is well, for containers that have nothing else to ask with.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::remote::trusting;
use super::{Failure, Outcome, print};

/// Ask a running server whether it runs (exit code 0) or not (1).
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Where it is; /readyz in the place of /healthz asks whether it can reach its store, too
    #[arg(
        long,
        env = "LOCKGATE_HEALTH_URL",
        default_value = "http://127.0.0.1:8080/healthz",
        value_name = "URL"
    )]
    url: String,

    /// Certificates (PEM) to trust for https:// instead of the system's
    #[arg(long, env = "LOCKGATE_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Print the server's answer as it is, in JSON
    #[arg(long)]
    json: bool,
}

/// A server that takes longer than this is not well.
const PATIENCE: Duration = Duration::from_secs(5);

impl Health {
    pub(crate) fn run(self) -> Outcome {
        let mut config =
            ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        if self.url.starts_with("https://") {
            config = config.tls_config(trusting(self.ca.as_deref())?);
        }
        let agent: ureq::Agent = config.build().into();
        let mut answered = agent.get(&self.url).call().map_err(|why| self.is_not_well(&why))?;
        if self.json {
            let text = answered.body_mut().read_to_string().map_err(|why| self.is_not_well(&why))?;
            print(&format!("{text}\n"));
        }
        match answered.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.is_not_well(&status)),
        }
    }

    fn is_not_well(&self, why: &dyn Display) -> Failure {
        format!("{}: {why}; is the server there, and the address right?", self.url).into()
    }
}
