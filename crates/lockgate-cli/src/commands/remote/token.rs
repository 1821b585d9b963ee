//! Which token a call shows.
//!
//! | given | admin calls show | app calls show |
//! | --- | --- | --- |
//! | `--token` or `--token-file` | it | it |
//! | `LOCKGATE_ADMIN_TOKEN` | it | it, without `LOCKGATE_APP_TOKEN` |
//! | `LOCKGATE_APP_TOKEN` | no | it |
//! | a data folder with an admin token | it, if there is nothing above | it, if there is nothing above |
//!
//! The server refuses what is wrong or missing.

use std::fmt;
use std::path::{Path, PathBuf};

use lockgate_server::Secret;

use super::{ServerPlace, Who};
use crate::commands::Failure;

/// Something from the command line that neither clap nor `Debug` may print.
#[derive(Clone)]
pub(crate) struct Hidden(String);

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

impl Hidden {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// The token that a call shows.
pub(super) struct Shown(Secret);

impl Shown {
    pub(super) fn find(place: &ServerPlace, who: Who) -> Result<Option<Self>, Failure> {
        if let Some(token) = &place.token {
            return parse("--token", token.reveal()).map(Some);
        }
        if let Some(file) = &place.token_file {
            return read(file).map(Some);
        }
        let variables: &[&str] = match who {
            Who::Admin => &["LOCKGATE_ADMIN_TOKEN"],
            Who::App => &["LOCKGATE_APP_TOKEN", "LOCKGATE_ADMIN_TOKEN"],
        };
        for variable in variables {
            if let Some(token) = std::env::var(variable).ok().filter(|token| !token.is_empty()) {
                return parse(variable, &token).map(Some);
            }
        }
        let kept = kept_in(place).filter(|file| place.data.is_some() || file.exists());
        kept.map(|file| read(&file)).transpose()
    }

    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0.reveal())
    }
}

/// A folder that was not named is looked into for a server on this machine only: its token is nobody else's business.
fn kept_in(place: &ServerPlace) -> Option<PathBuf> {
    let here = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    let unnamed =
        || here.iter().any(|start| place.server.starts_with(start)).then(|| PathBuf::from("lockgate-data"));
    Some(place.data.clone().or_else(unnamed)?.join("admin-token"))
}

fn read(file: &Path) -> Result<Shown, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|why| {
        format!("cannot read the token in {shown}: {why}; name a file that this user may read")
    })?;
    parse(&shown.to_string(), text.trim())
}

fn parse(from: &str, token: &str) -> Result<Shown, Failure> {
    Ok(Shown(token.parse().map_err(|why| format!("{from}: {why}"))?))
}
