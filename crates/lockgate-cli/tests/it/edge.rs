//! The server as a process, around its routes: signals, certificates, logs, configuration.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate::line::pass::PassKeys;
use lockgate::testing::eventually;
use lockgate::testing::services::{Persistence, Redis};
use serde_json::{Value, json};

use crate::process::{ADMIN_TOKEN, ServerProcess, lockgate, run};

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

/// A server whose log is read, too.
struct Logged {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
}

impl Logged {
    fn start(data: &Path, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        arguments.extend(more);
        let mut command = lockgate(&arguments);
        command.envs(environment.iter().copied()).env("LOCKGATE_ADMIN_TOKEN", ADMIN_TOKEN);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut welcome = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut welcome).unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let address = welcome.trim().rsplit('/').next().unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "it has not started: {}", log.lock().unwrap());
        Self { child, address, log }
    }

    /// Sends this over one connection, and reads all that comes back.
    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str, token: &str) -> String {
        self.exchange(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nX-Request-Id: id-4711\r\nConnection: close\r\n\r\n"
        ))
    }

    fn log_has(&self, word: &str) -> bool {
        eventually(Duration::from_secs(10), || self.log.lock().unwrap().contains(word))
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_second_signal_stops_it_at_once() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Logged::start(data.path(), &[], &[("LOCKGATE_LOG", "info")]);
    let mut stuck = TcpStream::connect(&server.address).unwrap();
    stuck.write_all(b"PUT /v1/coupons/w HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer test-admin-token\r\n\r\n{").unwrap();
    assert!(server.get("/healthz", ADMIN_TOKEN).contains("200"));
    signal(&server.child, "-TERM");
    assert!(server.log_has("a second signal stops at once"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.child.try_wait().unwrap().is_none(), "it waits for the request that is under way");
    signal(&server.child, "-INT");
    assert!(
        eventually(Duration::from_secs(3), || server.child.try_wait().unwrap().is_some()),
        "it does not stop"
    );
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// A certificate for 127.0.0.1, of that name.
fn certificate(folder: &Path, name: &str) {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args(["-subj", &format!("/CN={name}"), "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.arg("-keyout").arg(folder.join("tls.key")).arg("-out").arg(folder.join("tls.crt"));
    assert!(openssl.output().unwrap().status.success());
}

/// Which certificate the server shows.
fn shown_by(address: &str) -> String {
    let mut client = Command::new("openssl");
    client.args(["s_client", "-connect", address]).stdin(Stdio::null());
    let said = client.output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines().find(|line| line.starts_with("subject")).unwrap_or_default().to_owned()
}

#[test]
fn certificates_are_read_again_on_a_hangup_and_wrong_ones_change_nothing() {
    let (data, tls) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificate(tls.path(), "first");
    let [cert, key] = ["tls.crt", "tls.key"].map(|file| tls.path().join(file).to_str().unwrap().to_owned());
    let arguments = ["--tls-cert", &cert, "--tls-key", &key];
    let server = Logged::start(data.path(), &arguments, &[("LOCKGATE_LOG", "info")]);
    assert!(shown_by(&server.address).contains("first"));
    certificate(tls.path(), "second");
    signal(&server.child, "-HUP");
    assert!(server.log_has("have been read again"));
    assert!(shown_by(&server.address).contains("second"));
    std::fs::write(&cert, "nonsense").unwrap();
    signal(&server.child, "-HUP");
    assert!(server.log_has("the certificates are as before"));
    assert!(shown_by(&server.address).contains("second"));
}

/// Whatever sends it takes it for a friendly word.
#[test]
fn a_hangup_does_not_end_a_server_without_certificates_and_its_health_can_be_asked() {
    let data = tempfile::tempdir().unwrap();
    // The folder is not there yet, and the ledger lives in it.
    let folder = data.path().join("new");
    let ledger = format!("sqlite:{}", folder.join("ledger.db").display());
    let server = Logged::start(&folder, &["--ledger", &ledger], &[]);
    signal(&server.child, "-HUP");
    let url = |path: &str| format!("http://{}{path}", server.address);
    for path in ["/healthz", "/readyz"] {
        let asked = run(&["health", "--url", &url(path)]);
        assert!(asked.status.success(), "{asked:?}");
    }
    let nobody = run(&["health", "--url", "http://127.0.0.1:1/healthz"]);
    let said = String::from_utf8_lossy(&nobody.stderr);
    assert!(nobody.status.code() == Some(1) && said.contains("is the server there"), "{said}");
}

#[test]
fn the_log_is_json_if_asked_and_tells_the_route_and_no_secret() {
    let data = tempfile::tempdir().unwrap();
    let more = ["--log-format", "json", "--app-token", "app-hunter2", "--rate-limit-per-address", "1000/s"];
    let server = Logged::start(data.path(), &more, &[("LOCKGATE_LOG", "trace")]);
    assert!(
        server.get("/v1/coupons/alice?token=query-hunter2", "app-hunter2").contains("x-request-id: id-4711")
    );
    assert!(server.get("/v1/coupons/alice", "wrong-hunter2").contains("401"));
    let scrape = server.get("/metrics", "app-hunter2");
    assert!(scrape.contains("process_start_time_seconds "), "{scrape}");
    // At least the one that asks; those before it may not have been seen to be over.
    let connections = scrape.lines().find_map(|line| line.strip_prefix("lockgate_http_connections "));
    assert!(connections.is_some_and(|number| (1..=3).contains(&number.parse().unwrap())), "{scrape}");
    assert!(server.log_has("\"status\":401"));
    let log = server.log.lock().unwrap().clone();
    let line = log.lines().find(|line| line.contains("\"status\":404")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["method"]), (&json!("INFO"), &json!("GET")));
    assert_eq!((&line["route"], &line["request_id"]), (&json!("/v1/coupons/{id}"), &json!("id-4711")));
    assert!(line["ms"].is_f64(), "{line}");
    for told in [&log, &scrape] {
        for secret in ["hunter2", ADMIN_TOKEN, "alice"] {
            assert!(!told.contains(secret), "{secret} is in {told}");
        }
    }
}

#[test]
fn why_a_request_failed_is_in_the_log_with_its_id_and_not_in_the_answer() {
    let (redis, data) = (Redis::start(Persistence::AofAlways).unwrap(), tempfile::tempdir().unwrap());
    let key = data.path().join("pass-key.pem");
    std::fs::write(&key, PassKeys::generate().to_pkcs8_pem()).unwrap();
    let (url, key) = (redis.url(), key.to_str().unwrap());
    let server = Logged::start(data.path(), &["--store", &url, "--pass-key", key], &[]);
    redis.kill();
    let answer = server.get("/v1/coupons/alice", ADMIN_TOKEN);
    assert!(answer.contains(" 503 ") && !answer.contains("refused"), "{answer}");
    assert!(server.log_has("a request failed"));
    let log = server.log.lock().unwrap().clone();
    let line = log.lines().find(|line| line.contains("a request failed")).unwrap();
    for part in ["WARN", "status=503", "request_id=\"id-4711\"", "route=\"/v1/coupons/{id}\"", "why="] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!log.contains("alice"), "{log}");
}

#[test]
fn without_being_asked_it_logs_no_request() {
    let data = tempfile::tempdir().unwrap();
    let server = Logged::start(data.path(), &[], &[]);
    assert!(server.get("/healthz", ADMIN_TOKEN).contains("200"));
    assert_eq!(*server.log.lock().unwrap(), "");
}

#[test]
fn flags_win_over_the_environment_which_wins_over_the_file() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("lockgate.toml");
    std::fs::write(
        &file,
        "app_token = \"from-the-file\"\nrate_limit_per_address = \"1000/s\"\nlog_format = \"json\"\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let status = |server: &Logged, token: &str| {
        let answer = server.get("/v1/coupons/w", token);
        answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    for (flags, environment, right) in [
        (&["--config", file][..], &[][..], "from-the-file"),
        (&[], &[("LOCKGATE_CONFIG", file)], "from-the-file"),
        (&["--config", file], &[("LOCKGATE_APP_TOKEN", "from-the-environment")], "from-the-environment"),
        (
            &["--config", file, "--app-token", "from-the-flag"],
            &[("LOCKGATE_APP_TOKEN", "from-the-environment")],
            "from-the-flag",
        ),
    ] {
        let server = Logged::start(data.path(), flags, environment);
        for token in ["from-the-file", "from-the-environment", "from-the-flag"] {
            assert_eq!(
                status(&server, token),
                if token == right { "404" } else { "401" },
                "{token}, not {right}"
            );
        }
    }
}

#[test]
fn a_file_that_makes_no_sense_is_refused_in_one_sentence_without_its_secrets() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("lockgate.toml");
    for (text, words) in [
        ("listn = \"127.0.0.1:0\"", &["listn", "did you mean \"listen\"?"][..]),
        ("listen = \"nowhere\"", &["listen", "invalid value 'nowhere'"]),
        ("admin_token = hunter2", &["line 1", "TOML"]),
        ("tls_cert = \"a.pem\"", &["--tls-cert and --tls-key belong together"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let output =
            run(&["serve", "--config", file.to_str().unwrap(), "--data", data.path().to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is missing in: {said}");
        }
        assert!(!said.contains("hunter2"), "{said}");
    }
    let output = run(&["serve", "--config", "/nowhere/lockgate.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("--config"), "{said}");
}

#[test]
fn a_limit_of_open_files_that_is_too_low_is_raised_or_warned_of() {
    let data = tempfile::tempdir().unwrap();
    let start = |limits: &str| {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let binary = env!("CARGO_BIN_EXE_lockgate");
        let script = format!(
            "{limits}; exec {binary} serve --listen {port} --data {} --max-connections 500",
            data.path().display()
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let up = eventually(Duration::from_secs(20), || TcpStream::connect(port).is_ok());
        assert!(up, "it has not started");
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        child.kill().unwrap();
        let warned = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        (files.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap(), warned)
    };
    let (allowed, warned) = start("ulimit -Sn 200");
    assert!(allowed >= 756 && warned.is_empty(), "{allowed} {warned}");
    let (allowed, warned) = start("ulimit -Sn 200; ulimit -Hn 300");
    assert!(allowed == 300 && warned.contains("--max-connections"), "{allowed} {warned}");
}

#[test]
fn two_thousand_half_open_connections_keep_nobody_from_being_served() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    let address = server.url.trim_start_matches("http://");
    let done = AtomicBool::new(false);
    let half_open: Vec<_> = (0..2_000)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"POST /v1/coupons/w/issues HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for mut stream in &half_open {
                    let _ = stream.write_all(b"a");
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(server.put("/v1/coupons/w", &json!({ "quantity": 100 })).0, 201);
            for user in 0..100 {
                assert_eq!(
                    server.post("/v1/coupons/w/issues", &json!({ "user": format!("u{user}") })).0,
                    201
                );
            }
        }));
        done.store(true, Ordering::Relaxed);
        served.unwrap();
    });
    drop(half_open);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_ledger_that_cannot_be_written_is_told_and_is_no_reason_not_to_be_asked() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("ledger.db");
    let server = ServerProcess::start(data.path(), &["--ledger", &format!("sqlite:{}", file.display())]);
    assert_eq!(server.put("/v1/coupons/w", &json!({ "quantity": 10 })).0, 201);
    let (status, ready) = server.get("/readyz");
    assert!(status == 200 && ready["warnings"].is_null(), "{ready}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _blocking = runtime.block_on(async {
        use sqlx::{Connection as _, Executor as _, SqliteConnection};
        let mut connection = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
        connection.execute("BEGIN IMMEDIATE").await.unwrap();
        connection
    });
    assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": "alice" })).0, 201);
    let mut ready = (0, Value::Null);
    let told = eventually(Duration::from_secs(40), || {
        ready = server.get("/readyz");
        ready.1["warnings"][0]
            .as_str()
            .is_some_and(|warning| warning.contains("the ledger cannot be written"))
    });
    assert!(told && ready.0 == 200, "{ready:?}");
    assert_eq!(ready.1["ledger"]["is_written"], false);
    assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": "bob" })).0, 201, "decisions go on");
}
