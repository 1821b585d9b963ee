//! Finds or installs the programs that the tests run.

use std::collections::BTreeSet;
use std::process::Command;

use crate::program;

/// Installs, with apt, the Debian packages of all programs that are not there; says what to do when it may not.
pub(crate) fn install_missing_programs() -> Result<(), String> {
    let packages = missing_packages();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.iter().copied().collect::<Vec<_>>().join(" ");
    println!("xtask: installing {list}");
    apt_get(&["update", "--quiet"]).and_then(|()| install(&packages)).map_err(|why| {
        format!("{why}\nThe tests need these Debian packages; install them and run this again:\n\n    sudo apt-get install {list}\n")
    })?;
    match missing_packages() {
        none if none.is_empty() => Ok(()),
        still => {
            Err(format!("apt-get installed {list}, but the programs of {still:?} cannot be found in PATH"))
        }
    }
}

fn missing_packages() -> BTreeSet<&'static str> {
    program::ALL
        .iter()
        .filter(|program| program.find().is_none())
        .map(|program| program.debian_package)
        .collect()
}

/// Installs these.
pub(crate) fn install_packages(packages: &[&'static str]) -> Result<(), String> {
    println!("xtask: installing {}", packages.join(" "));
    apt_get(&["update", "--quiet"]).and_then(|()| install(&packages.iter().copied().collect()))
}

fn install(packages: &BTreeSet<&'static str>) -> Result<(), String> {
    let mut arguments = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

/// Runs apt-get as root or through a sudo that asks nothing.
fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["--non-interactive", "--preserve-env=DEBIAN_FRONTEND,RUNLEVEL", "apt-get"]);
        sudo
    };
    // The packages start their services when they are installed. The tests start their own, on free ports.
    command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1").args(arguments);
    let shown = format!("apt-get {}", arguments.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})")),
        Err(why) => Err(format!("`{shown}` could not be run: {why}")),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
