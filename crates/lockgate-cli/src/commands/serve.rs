//! `lockgate serve`: the HTTP server.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use lockgate::config::Config;
use lockgate_server::{Secret, ServeConfig, Server};

use super::{Outcome, runtime};

/// Serve coupons over HTTP.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; beyond loopback only with an app token
    #[arg(long, env = "LOCKGATE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// memory (with a journal in the data folder), redis://…, rediss://…, redis+sentinel://…/master-name or redis+cluster://…
    #[arg(
        long,
        env = "LOCKGATE_STORE",
        default_value = "memory",
        value_name = "URL",
        hide_env_values = true
    )]
    store: String,

    /// Where every decision is written down, besides the store: sqlite:<file>, postgres://… or mysql://…
    #[arg(long, env = "LOCKGATE_LEDGER", value_name = "URL", hide_env_values = true)]
    ledger: Option<String>,

    /// The folder for what the embedded server keeps
    #[arg(long, env = "LOCKGATE_DATA", default_value = "lockgate-data", value_name = "DIR")]
    data: PathBuf,

    /// The token for admin calls; made and kept in the data folder if not given (required with Redis)
    #[arg(long, env = "LOCKGATE_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    admin_token: Option<String>,

    /// The token for app calls; none is needed if not given
    #[arg(long, env = "LOCKGATE_APP_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    app_token: Option<String>,

    /// The prefix of all keys in Redis: servers that belong together share it
    #[arg(long, env = "LOCKGATE_NAMESPACE", default_value = "lg", value_name = "NAME")]
    namespace: String,

    /// Certificates (PEM) to trust for rediss:// instead of the system's
    #[arg(long, env = "LOCKGATE_REDIS_CA", value_name = "FILE")]
    redis_ca: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self) -> Outcome {
        let mut gate = Config::default();
        gate.namespace = self.namespace;
        gate.redis.ca_file = self.redis_ca;
        let config = ServeConfig {
            listen: self.listen,
            store: self.store,
            ledger: self.ledger,
            data: self.data,
            admin_token: parse_token("--admin-token", self.admin_token)?,
            app_token: parse_token("--app-token", self.app_token)?,
            gate,
        };
        runtime()?.block_on(async {
            let server = Server::start(config).await?;
            // Whoever has stopped reading does not want to know.
            let _ = write!(std::io::stdout(), "{}", server.welcome());
            Ok(server.run().await?)
        })
    }
}

/// Not clap's to parse: it would print the token that it complains about.
fn parse_token(flag: &str, token: Option<String>) -> Result<Option<Secret>, String> {
    token.map(|token| token.parse()).transpose().map_err(|why| format!("{flag}: {why}"))
}
