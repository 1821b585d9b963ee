//! A certificate for 127.0.0.1 that only this test run trusts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ServiceError;
use super::launch::Launch;
use super::program::OPENSSL;

const BOUND: Duration = Duration::from_secs(30);

/// Signed by itself, so it is also the authority to trust.
pub(super) struct Certificate {
    pub(super) certificate_file: PathBuf,
    pub(super) key_file: PathBuf,
}

impl Certificate {
    /// Where it is in a folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { certificate_file: folder.join("tls.crt"), key_file: folder.join("tls.key") }
    }

    /// Writes both files into the folder.
    pub(super) fn create(folder: &Path) -> Result<Self, ServiceError> {
        let certificate = Self::in_folder(folder);
        // An elliptic curve: such a key is made in milliseconds.
        let launch = Launch::of(OPENSSL)?
            .arguments(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .arguments(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .arguments(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            // Not an authority: rustls refuses one that a server shows as its own.
            .arguments(["-addext", "basicConstraints=critical,CA:FALSE"])
            .argument("-keyout")
            .argument(&certificate.key_file)
            .argument("-out")
            .argument(&certificate.certificate_file);
        launch.run_to_its_end("openssl", folder, &folder.join("openssl.log"), BOUND)?;
        Ok(certificate)
    }
}
