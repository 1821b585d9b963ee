//! What a person who has just started a server reads.

use std::fmt;
use std::path::PathBuf;

use super::{Server, StartError};
use crate::data::DataFolder;
use crate::secret::Secret;

/// The admin token, and how the person who starts the server may learn it.
#[derive(Debug)]
pub(super) struct AdminToken {
    pub(super) token: Secret,
    /// The file that keeps it, unless it was given.
    kept_in: Option<PathBuf>,
    is_new: bool,
}

impl AdminToken {
    /// Embedded, the token lives in the data folder. On Redis several servers must agree on it, so it must be given.
    pub(super) fn find(given: Option<Secret>, data: Option<&DataFolder>) -> Result<Self, StartError> {
        match (given, data) {
            (Some(token), _) => Ok(Self { token, kept_in: None, is_new: false }),
            (None, Some(data)) => {
                let (token, is_new) = data.admin_token()?;
                Ok(Self { token, kept_in: Some(data.admin_token_path()), is_new })
            }
            (None, None) => Err(StartError::new(
                "a server on a shared store needs the admin token that all its servers share; \
                 give it with --admin-token or LOCKGATE_ADMIN_TOKEN",
            )),
        }
    }
}

/// What a person who has just started a server wants to know.
pub(super) struct Welcome<'a>(pub(super) &'a Server);

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Server { address, about, admin, tls, .. } = self.0;
        let scheme = if tls.is_some() { "https" } else { "http" };
        writeln!(f, "lockgate {} listens on {scheme}://{address}", env!("CARGO_PKG_VERSION"))?;
        writeln!(f, "  store: {} ({})", about.description, about.persistence)?;
        match &admin.kept_in {
            Some(path) if admin.is_new => {
                let token = admin.token.reveal();
                writeln!(f, "  admin token: {token} (shown only now, kept in {})", path.display())?;
            }
            Some(path) => writeln!(f, "  admin token: kept in {}", path.display())?,
            None => {}
        }
        writeln!(f, "\nWhere to look next:")?;
        writeln!(f, "  curl {scheme}://{address}/readyz")?;
        writeln!(
            f,
            "  curl -X PUT {scheme}://{address}/v1/coupons/welcome -H 'Content-Type: application/json' \\"
        )?;
        writeln!(f, "       -H 'Authorization: Bearer <admin token>' -d '{{\"quantity\": 100}}'")?;
        write!(
            f,
            "  curl -X POST {scheme}://{address}/v1/coupons/welcome/issues -H 'Content-Type: application/json' "
        )?;
        writeln!(f, "-d '{{\"user\": \"alice\"}}'")
    }
}
