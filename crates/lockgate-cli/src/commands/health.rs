//! `lockgate health`: asks a running server whether it is well, for containers that have nothing else to ask with.

use std::time::Duration;

use clap::Args;

use super::Outcome;

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
}

/// A server that takes longer than this is not well.
const PATIENCE: Duration = Duration::from_secs(5);

impl Health {
    pub(crate) fn run(self) -> Outcome {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
        let agent: ureq::Agent = config.into();
        let answered = agent.get(&self.url).call();
        answered
            .map(|_| ())
            .map_err(|why| format!("{}: {why}; is the server there, and the address right?", self.url).into())
    }
}
