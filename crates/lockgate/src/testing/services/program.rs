//! Where the programs are that the services run, and which Debian package brings each.
//!
//! One table for the harness, which starts them, and for `cargo xtask`, which installs them. `xtask` compiles
//! this very file, so it depends on nothing but the standard library.

use std::env;
use std::fs;
use std::path::PathBuf;

/// A program that some test, bench or example runs as a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the executable.
    pub name: &'static str,
    /// The Debian package that brings it.
    pub debian_package: &'static str,
    /// Folders to look into that are not in everybody's `PATH`. A `*` stands for a version, the highest wins.
    folders: &'static [&'static str],
}

const SYSTEM_FOLDERS: &[&str] = &["/usr/sbin", "/usr/local/sbin"];
const POSTGRES_FOLDERS: &[&str] = &["/usr/lib/postgresql/*/bin"];

/// Redis itself; as `redis-server --sentinel` also its guardians.
pub const REDIS_SERVER: Program =
    Program { name: "redis-server", debian_package: "redis-server", folders: SYSTEM_FOLDERS };
/// PostgreSQL's server.
pub const POSTGRES: Program =
    Program { name: "postgres", debian_package: "postgresql", folders: POSTGRES_FOLDERS };
/// Makes a PostgreSQL data folder.
pub const INITDB: Program =
    Program { name: "initdb", debian_package: "postgresql", folders: POSTGRES_FOLDERS };
/// MariaDB's server.
pub const MARIADBD: Program =
    Program { name: "mariadbd", debian_package: "mariadb-server", folders: SYSTEM_FOLDERS };
/// Makes a MariaDB data folder.
pub const MARIADB_INSTALL_DB: Program =
    Program { name: "mariadb-install-db", debian_package: "mariadb-server", folders: SYSTEM_FOLDERS };
/// Starts a program under another user, and ties its life to ours.
pub const SETPRIV: Program =
    Program { name: "setpriv", debian_package: "util-linux", folders: SYSTEM_FOLDERS };
/// Runs the commands of the README.
pub const CURL: Program = Program { name: "curl", debian_package: "curl", folders: &[] };
/// Makes the certificate for the test of `rediss://`.
pub const OPENSSL: Program = Program { name: "openssl", debian_package: "openssl", folders: &[] };

/// Shows the dashboard.
pub const CHROMIUM: Program = Program { name: "chromium", debian_package: "chromium", folders: &[] };
/// Drives Chromium.
pub const CHROMEDRIVER: Program =
    Program { name: "chromedriver", debian_package: "chromium-driver", folders: &[] };

/// Everything that `cargo xtask test` needs beside Rust.
pub const ALL: &[Program] = &[
    REDIS_SERVER,
    POSTGRES,
    INITDB,
    MARIADBD,
    MARIADB_INSTALL_DB,
    SETPRIV,
    CURL,
    OPENSSL,
    CHROMIUM,
    CHROMEDRIVER,
];

impl Program {
    /// Where the program is, or `None` when it is not installed.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .chain(self.folders.iter().flat_map(|pattern| expand(pattern)))
            .map(|folder| folder.join(self.name))
            .find(|candidate| candidate.is_file())
    }
}

/// The folders that a pattern with at most one `*` stands for, highest version first.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)] };
    let mut versions: Vec<_> = fs::read_dir(before)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse(version.parse::<u32>().unwrap_or(0)));
    versions.into_iter().map(|version| PathBuf::from(format!("{before}{version}{after}"))).collect()
}
