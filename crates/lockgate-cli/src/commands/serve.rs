//! `lockgate serve`: the HTTP server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use lockgate::config::Config;
use lockgate_server::{Secret, ServeConfig, Server};

use super::{Outcome, runtime};

/// Serve locks and stock over HTTP.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; beyond loopback only with an app token
    #[arg(long, env = "LOCKGATE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// memory, redis://…, rediss://…, redis+sentinel://…/master-name or redis+cluster://…
    #[arg(
        long,
        env = "LOCKGATE_STORE",
        default_value = "memory",
        value_name = "URL",
        hide_env_values = true
    )]
    store: String,

    /// The folder for what the embedded server keeps
    #[arg(long, env = "LOCKGATE_DATA", default_value = "lockgate-data", value_name = "DIR")]
    data: PathBuf,

    /// The token for admin calls; made and kept in the data folder if not given (required with Redis)
    #[arg(long, env = "LOCKGATE_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    admin_token: Option<Secret>,

    /// The token for app calls; none is needed if not given
    #[arg(long, env = "LOCKGATE_APP_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    app_token: Option<Secret>,
}

impl Serve {
    pub(crate) fn run(self) -> Outcome {
        let config = ServeConfig {
            listen: self.listen,
            store: self.store,
            data: self.data,
            admin_token: self.admin_token,
            app_token: self.app_token,
            gate: Config::default(),
        };
        runtime()?.block_on(async {
            let server = Server::start(config).await?;
            print!("{}", server.welcome());
            Ok(server.run().await?)
        })
    }
}
