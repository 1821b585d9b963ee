//! `lockgate serve`: the HTTP server.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lockgate::config::Config;
use lockgate_server::{
    Edge, Limits, Metrics, Network, Origin, Rate, Secret, ServeConfig, Server, Stop, TlsFiles, app,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{Outcome, runtime};
use crate::telemetry::traced;

/// How lines of the log look.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object per line
    Json,
}

/// Serve locks, stock and lines over HTTP.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A TOML file with a key for every flag, as in docs/lockgate.toml; flags and the environment win over it
    #[arg(long, env = "LOCKGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

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

    /// The key that signs the passes of lines (Ed25519, PKCS#8 PEM); made and kept in the data folder if not given (required with
    /// Redis)
    #[arg(long, env = "LOCKGATE_PASS_KEY", value_name = "FILE")]
    pass_key: Option<PathBuf>,

    /// A key whose passes are accepted as well, and that is published: the one before, or the next one (PEM, or a key set in
    /// JSON); may be repeated
    #[arg(long, env = "LOCKGATE_ACCEPT_PASS_KEY", value_name = "FILE", value_delimiter = ',')]
    accept_pass_key: Vec<PathBuf>,

    /// The prefix of all keys in Redis: servers that belong together share it
    #[arg(long, env = "LOCKGATE_NAMESPACE", default_value = "lg", value_name = "NAME")]
    namespace: String,

    /// Certificates (PEM) to trust for rediss:// instead of the system's
    #[arg(long, env = "LOCKGATE_REDIS_CA", value_name = "FILE")]
    redis_ca: Option<PathBuf>,

    /// The server's certificate chain (PEM), to be reached by https:// only; read again on SIGHUP
    #[arg(long, env = "LOCKGATE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, env = "LOCKGATE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// How many connections there may be; more are closed at once
    #[arg(long, env = "LOCKGATE_MAX_CONNECTIONS", default_value = "10000", value_name = "N")]
    max_connections: usize,

    /// How long the head of a request may take to arrive, and so how long an idle connection is kept
    #[arg(long, env = "LOCKGATE_HEADER_TIMEOUT", default_value = "10", value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    header_timeout: u64,

    /// How long a request may take; those that wait on purpose get so much more
    #[arg(long, env = "LOCKGATE_REQUEST_TIMEOUT", default_value = "30", value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    request_timeout: u64,

    /// How often one client address may ask, as in 100/s; twice as often for a moment
    #[arg(long, env = "LOCKGATE_RATE_LIMIT_PER_ADDRESS", value_name = "N/s")]
    rate_limit_per_address: Option<Rate>,

    /// How often all who hold the same token may ask, as in 5000/s; twice as often for a moment
    #[arg(long, env = "LOCKGATE_RATE_LIMIT_PER_TOKEN", value_name = "N/s")]
    rate_limit_per_token: Option<Rate>,

    /// A proxy whose X-Forwarded-For is believed, as in 10.0.0.0/8 (may be repeated)
    #[arg(long, env = "LOCKGATE_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',')]
    trusted_proxy: Vec<Network>,

    /// An origin whose pages may ask from a browser, as in https://shop.example (may be repeated)
    #[arg(long, env = "LOCKGATE_CORS_ORIGIN", value_name = "URL", value_delimiter = ',')]
    cors_origin: Vec<Origin>,

    /// How lines of the log look; LOCKGATE_LOG says which there are, as in info or lockgate_server=debug,warn
    #[arg(long, env = "LOCKGATE_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

impl Serve {
    pub(crate) fn run(self) -> Outcome {
        let mut config = self.into_config()?;
        runtime()?.block_on(async {
            // Before the store is opened: it counts from then on.
            config.metrics = Some(Metrics::install()?);
            let server = Server::start(config).await?;
            // Before anybody is told where it is: a signal that follows at once is to be heard, not to end it.
            let (stop, _hangups) = (Stop::on_signals(), signal(SignalKind::hangup())?);
            // Whoever has stopped reading does not want to know.
            let _ = write!(std::io::stdout(), "{}", server.welcome());
            Ok(server.run_until(stop, |service| traced(app(service))).await?)
        })
    }

    fn into_config(self) -> Result<ServeConfig, String> {
        let mut gate = Config::default();
        gate.namespace = self.namespace;
        gate.redis.ca_file = self.redis_ca;
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            _ => {
                return Err(
                    "--tls-cert and --tls-key belong together: give both, or none for http://".to_owned()
                );
            }
        };
        Ok(ServeConfig {
            listen: self.listen,
            store: self.store,
            ledger: self.ledger,
            data: self.data,
            admin_token: parse_token("--admin-token", self.admin_token)?,
            app_token: parse_token("--app-token", self.app_token)?,
            pass_key: self.pass_key,
            accept_pass_keys: self.accept_pass_key,
            gate,
            tls,
            limits: Limits {
                connections: self.max_connections,
                head_timeout: Duration::from_secs(self.header_timeout),
            },
            edge: Edge {
                request_timeout: Duration::from_secs(self.request_timeout),
                rate_per_address: self.rate_limit_per_address,
                rate_per_token: self.rate_limit_per_token,
                trusted_proxies: self.trusted_proxy,
                cors_origins: self.cors_origin,
                ..Edge::default()
            },
            metrics: None,
        })
    }
}

/// Not clap's to parse: it would print the token that it complains about.
fn parse_token(flag: &str, token: Option<String>) -> Result<Option<Secret>, String> {
    token.map(|token| token.parse()).transpose().map_err(|why| format!("{flag}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Command;

    use super::super::config_file::{keys, with_defaults_of};
    use super::*;

    const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lockgate.toml");

    fn command() -> Command {
        Serve::augment_args(Command::new("serve"))
    }

    #[test]
    fn the_reference_file_names_every_key_with_its_default_and_sets_none() {
        let text = std::fs::read_to_string(REFERENCE).unwrap();
        assert!(text.parse::<toml::Table>().unwrap().is_empty(), "as it stands, it changes nothing");
        // `#key = value` is a setting, `# words` is a comment.
        let uncommented = text.lines().filter_map(|line| line.strip_prefix('#'));
        let settings: Vec<_> = uncommented.filter(|line| line.starts_with(char::is_alphabetic)).collect();
        let settings_text = settings.join("\n");
        let settings: toml::Table = settings_text.parse().unwrap();
        let named: Vec<_> = settings.keys().cloned().collect();
        let mut expected: Vec<_> = keys(&command()).map(|arg| arg.get_id().to_string()).collect();
        expected.sort();
        assert_eq!(named, expected);
        let defaults: BTreeMap<_, _> = keys(&command())
            .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_default_values().first()?.to_owned())))
            .collect();
        for (key, default) in defaults {
            let said = &settings[&key];
            let said = said
                .as_integer()
                .map_or_else(|| said.as_str().unwrap_or_default().to_owned(), |n| n.to_string());
            assert_eq!(said.as_str(), default.to_str().unwrap(), "{key}");
        }
        // Each of them is one that the flag would take.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), settings_text).unwrap();
        with_defaults_of(command(), file.path()).unwrap();
    }

    #[test]
    fn every_flag_can_come_from_the_environment_under_its_own_name() {
        for arg in command().get_arguments() {
            let expected = format!("LOCKGATE_{}", arg.get_id().as_str().to_uppercase());
            assert_eq!(arg.get_env().and_then(|name| name.to_str()), Some(expected.as_str()));
        }
    }
}
