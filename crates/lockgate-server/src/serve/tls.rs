//! Encrypted connections, with certificates that can be replaced while the server runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::{SignalKind, signal};

use super::StartError;

/// Where certificate and key are, both in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by those between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads them.
pub(super) fn load(files: &TlsFiles) -> Result<RustlsConfig, StartError> {
    Ok(RustlsConfig::from_config(read(files)?))
}

/// Reads them again on every SIGHUP. Connections that are there keep what they have; if the files are wrong, so do new ones. Without
/// any, nothing happens: a server must not end by what others take for a friendly word.
pub(super) async fn reload_on_hangup(tls: Option<(TlsFiles, RustlsConfig)>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(why) => {
            tracing::warn!(%why, "SIGHUP cannot be caught; new certificates need a restart");
            return;
        }
    };
    while hangups.recv().await.is_some() {
        let Some((files, config)) = &tls else { continue };
        match read(files) {
            Ok(renewed) => {
                config.reload_from_config(renewed);
                tracing::info!("the certificates have been read again");
            }
            Err(why) => tracing::error!(%why, "the certificates are as before"),
        }
    }
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, StartError> {
    let TlsFiles { certificate, key } = files;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|why| unreadable("--tls-cert", certificate, why, "the certificate chain"))?;
    if chain.is_empty() {
        return Err(unreadable("--tls-cert", certificate, "there is none in it", "the certificate chain"));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|why| unreadable("--tls-key", key, why, "the private key"))?;
    let misfit = |why: rustls::Error| {
        StartError::new(format!(
            "cannot use {} with the key {}: {why}; give the key that the certificate was made for",
            certificate.display(),
            key.display()
        ))
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(misfit)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(misfit)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Never with the file's content: it may be the key.
fn unreadable(flag: &str, path: &Path, why: impl Display, what: &str) -> StartError {
    StartError::new(format!(
        "cannot read {}: {why}; {flag} takes a file that this user may read, with {what} in PEM (-----BEGIN …)",
        path.display()
    ))
}
