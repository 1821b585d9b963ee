//! Whom to trust for https://.

use std::path::Path;
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::commands::Failure;

/// The certificates of the file; without one, the system's.
pub(crate) fn trusting(file: Option<&Path>) -> Result<TlsConfig, Failure> {
    let trusted = file.map_or_else(of_the_system, of_file)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    Ok(config.root_certs(RootCerts::Specific(Arc::new(trusted))).build())
}

fn of_file(file: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let shown = file.display();
    let text = std::fs::read(file)
        .map_err(|why| format!("cannot read --ca {shown}: {why}; name a file that this user may read"))?;
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(
            format!("--ca {shown} has no certificate (PEM); give the one that signed the server's").into()
        );
    }
    Ok(certificates)
}

fn of_the_system() -> Result<Vec<Certificate<'static>>, Failure> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err("this system has no certificates to trust; name a file of them (PEM) with --ca".into());
    }
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}
