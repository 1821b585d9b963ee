//! `cargo xtask faults`: kills, stops and cuts off the users of a lock for as long as it is told.

use crate::setup;
use crate::steps::cargo;

const RUN: &[&str] =
    &["run", "--release", "--quiet", "--package", "lockgate-lab", "--bin", "lockgate-faults", "--"];

/// Runs the suite with these flags of its own.
pub(crate) fn run(flags: &[&str]) -> Result<(), String> {
    setup::install_missing_programs()?;
    match cargo().args(RUN).args(flags).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the fault suite ended with {status}")),
        Err(why) => Err(format!("cargo could not be run: {why}")),
    }
}
