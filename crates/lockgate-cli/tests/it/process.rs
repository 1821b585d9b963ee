//! Runs the binary.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate::line::pass::PassKeys;
use lockgate::testing::eventually;
use serde_json::Value;
use ureq::Agent;

pub(crate) const ADMIN_TOKEN: &str = "test-admin-token";

/// The key that all servers of one run of the tests share.
fn pass_key_file() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| {
        let file = format!("{}/pass-key-{}.pem", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        std::fs::write(&file, PassKeys::generate().to_pkcs8_pem()).unwrap();
        file
    })
}

/// `lockgate` with these arguments, and with nothing in its environment that the tests did not put there.
pub(crate) fn lockgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
    for (variable, _) in std::env::vars().filter(|(variable, _)| variable.starts_with("LOCKGATE_")) {
        command.env_remove(variable);
    }
    command.args(arguments);
    command
}

/// Runs it to its end, which must come soon.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let mut command = lockgate(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Read while it runs: a pipe that is full would hold it up.
    let (stdout, stderr) = (read_all(child.stdout.take().unwrap()), read_all(child.stderr.take().unwrap()));
    let ended = eventually(Duration::from_secs(60), || child.try_wait().unwrap().is_some());
    if !ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    let output = Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() };
    assert!(ended, "`lockgate {}` did not end: {output:?}", arguments.join(" "));
    output
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all
    })
}

/// A server that was started for one test. Killed when the test ends, however it ends.
pub(crate) struct ServerProcess {
    child: Child,
    /// Kept open: a server that cannot print must not be what the test is about.
    _stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
    pub(crate) welcome: String,
    agent: Agent,
}

impl ServerProcess {
    /// Starts `lockgate serve` on a free port, with `data` as its data folder and the tests' admin token and pass key.
    pub(crate) fn start(data: &Path, more: &[&str]) -> Self {
        let mut arguments = vec!["--admin-token", ADMIN_TOKEN, "--pass-key", pass_key_file()];
        arguments.extend(more);
        Self::start_without_token(data, &arguments)
    }

    /// The same without the token.
    pub(crate) fn start_without_token(data: &Path, more: &[&str]) -> Self {
        let data = data.to_str().unwrap();
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--data", data];
        arguments.extend(more);
        Self::launch(lockgate(&arguments))
    }

    /// Runs a command that serves, and waits until it does.
    pub(crate) fn launch(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut welcome = String::new();
        // The welcome ends with the example of how to issue.
        while !welcome.contains("/issues") && stdout.read_line(&mut welcome).unwrap() > 0 {}
        let url =
            welcome.split_whitespace().find(|word| word.starts_with("http")).unwrap_or("none").to_owned();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .build();
        Self { child, _stdout: stdout, url, welcome, agent: config.into() }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        read(self.agent.get(format!("{}{path}", self.url)).call().unwrap())
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.agent.put(format!("{}{path}", self.url));
        let request = request.header("authorization", format!("Bearer {ADMIN_TOKEN}"));
        read(request.content_type("application/json").send(body.to_string()).unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.agent.post(format!("{}{path}", self.url));
        read(request.content_type("application/json").send(body.to_string()).unwrap())
    }

    /// The same, under an idempotency key.
    pub(crate) fn post_as(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        let request = self.agent.post(format!("{}{path}", self.url)).header("idempotency-key", key);
        read(request.content_type("application/json").send(body.to_string()).unwrap())
    }

    /// Asks it to stop, as an operator's tools do, and says how it ended.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(
            eventually(Duration::from_secs(30), || self.child.try_wait().unwrap().is_some()),
            "it does not stop"
        );
        self.child.wait().unwrap().code()
    }
}

fn read(response: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let (parts, mut body) = response.into_parts();
    let text = body.read_to_string().unwrap();
    (parts.status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
