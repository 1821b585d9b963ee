//! The library without features brings no HTTP, SQL or Redis crate, and no macros, to those who compile it.

use crate::steps::cargo;

const NOT_WELCOME: &[&str] = &[
    "axum",
    "http",
    "hyper",
    "reqwest",
    "tower",
    "ureq",
    "redis",
    "rustls",
    "sqlx",
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "mysql_async",
    "lockgate-macros",
];

pub(crate) fn check() -> Result<(), String> {
    let arguments = ["tree", "--package", "lockgate", "--no-default-features", "--prefix", "none"];
    let output = cargo().args(arguments).output().map_err(|why| why.to_string())?;
    let tree = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !tree.starts_with("lockgate ") {
        return Err(format!("`cargo {}` did not list the library's crates", arguments.join(" ")));
    }
    let crates = tree.lines().filter_map(|line| line.split(' ').next());
    match crates.into_iter().find(|name| NOT_WELCOME.contains(name)) {
        Some(unwelcome) => Err(format!("the crate `{unwelcome}` is in it; put it behind a feature")),
        None => Ok(()),
    }
}
