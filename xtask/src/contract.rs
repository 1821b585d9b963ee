//! The server against its own contract: schemathesis reads `/openapi.json` and sends what it allows and what it does not.
//!
//! One of its checks is left out, that everything is accepted which the schemas allow: they cannot say that a window must open before
//! it closes, or that a lock is taken.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::setup;
use crate::steps::cargo;

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

const ADMIN_TOKEN: &str = "of-the-contract-test";

/// A fixed seed: what is found once is found again.
const ARGUMENTS: &[&str] = &[
    "--exclude-checks=positive_data_acceptance",
    // Streams do not end.
    "--exclude-path-regex=/events$",
    "--max-examples=30",
    // A lock may be waited for as long as a minute.
    "--request-timeout=90",
    "--seed=1",
    "--no-color",
    "--suppress-health-check=all",
    "--warnings=off",
];

pub(crate) fn check() -> Result<(), String> {
    let target = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target"));
    let schemathesis = installed(&target.join("schemathesis"))?;
    run(cargo().args(["build", "--quiet", "--package", "lockgate-cli"]))?;
    let server = Server::start(target)?;
    let mut command = Command::new(schemathesis);
    command.arg("run").arg(format!("{}/openapi.json", server.url));
    command.args(["--header", &format!("Authorization: Bearer {ADMIN_TOKEN}")]).args(ARGUMENTS);
    run(command.current_dir(target))
}

/// The program, in an environment of its own below `target`.
fn installed(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("bin/schemathesis");
    let is_right = Command::new(&program).arg("--version").output().is_ok_and(|output| {
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && version.ends_with(SCHEMATHESIS.trim_start_matches("schemathesis=="))
    });
    if is_right {
        return Ok(program);
    }
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    // Debian's python3 comes without it.
    make().or_else(|_| setup::install_packages(&["python3", "python3-venv"]).and_then(|()| make()))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]))?;
    Ok(program)
}

/// A server on a port of its own, with a folder of its own; ends with this value.
struct Server {
    child: Child,
    data: PathBuf,
    url: String,
}

impl Server {
    fn start(target: &Path) -> Result<Self, String> {
        let data = target.join("contract-data");
        let _ = std::fs::remove_dir_all(&data);
        let mut child = Command::new(target.join("debug/lockgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-token", ADMIN_TOKEN, "--data"])
            .arg(&data)
            .env("LOCKGATE_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|why| format!("the server could not be started: {why}"))?;
        let mut lines = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
        let url = lines.find_map(|line| line.ok()?.split_once("listens on ").map(|(_, url)| url.to_owned()));
        let mut server = Self { child, data, url: String::new() };
        server.url = url.ok_or("the server did not say where it listens")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// The least that Redis has to allow is enough, and no more than that.
pub(crate) fn check_acl() -> Result<(), String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    run(cargo().args(["build", "--quiet", "--package", "lockgate-cli"]))?;
    run(Command::new("bash").arg("packaging/check-acl.sh").arg("target/debug/lockgate").current_dir(root))
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{:?}", command.get_program());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(why) => Err(format!("{shown} could not be run: {why}")),
    }
}
