//! 0 done, 1 it could not be done, 2 the command line makes no sense: each command, each code.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::completions::commands;
use crate::process::{ADMIN_TOKEN, ServerProcess, run};

/// Tried elsewhere with all that they need: `serve` in `serve` and `bad_days`, `bench` in `bench`, a draw in `draw`, the lab in
/// `lab_report`.
const DONE_ELSEWHERE: [&str; 16] = [
    "serve",
    "bench lock",
    "bench lock-family",
    "bench lock-rush",
    "bench lock-held",
    "bench lock-cost",
    "bench stock",
    "bench stock-size",
    "bench line",
    "bench ledger",
    "bench http",
    "lines audit",
    "lines verify",
    "lab",
    "lab cost",
    "lab report",
];

/// These have commands below them, and do something without.
const ALSO_ALONE: [&str; 1] = ["lab"];

/// All that can be typed, without arguments: `coupons list`, `health`, ….
fn all_commands() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for name in commands(&[]) {
        let below = commands(&[&name]);
        all.extend(below.iter().map(|below| format!("{name} {below}")));
        if below.is_empty() || ALSO_ALONE.contains(&name.as_str()) {
            all.insert(name);
        }
    }
    all
}

/// Fills in where things are, and runs it.
struct Places {
    server: ServerProcess,
    token_file: String,
    ledger: String,
    journal: String,
    folder: TempDir,
}

impl Places {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (token_file, users) = (inside("token"), inside("users"));
        std::fs::write(&token_file, ADMIN_TOKEN).unwrap();
        std::fs::write(&users, "bob\n").unwrap();
        let ledger = format!("sqlite:{}", inside("ledger.db"));
        // One that has stopped, to be looked after; and one that runs.
        let stopped = folder.path().join("stopped");
        let past = ServerProcess::start(&stopped, &["--ledger", &ledger]);
        assert_eq!(past.put("/v1/coupons/summer", &json!({ "quantity": 5 })).0, 201);
        assert_eq!(past.post("/v1/coupons/summer/issues", &json!({ "user": "alice" })).0, 201);
        assert_eq!(past.put("/v1/coupons/over", &json!({ "quantity": 5 })).0, 201);
        assert_eq!(past.post("/v1/coupons/over/issues", &json!({ "user": "alice" })).0, 201);
        let close = ["coupons", "close", "over", "--server", &past.url, "--token-file", &token_file];
        assert!(run(&close).status.success());
        let early =
            json!({ "batch": 1, "every_ms": 1_000, "opens_at": "2099-01-01T00:00:00Z", "prequeue": true });
        assert_eq!(past.put("/v1/lines/early", &early).0, 201);
        assert_eq!(past.terminate(), Some(0));
        let journal = format!("sqlite:{}", stopped.join("journal.db").display());
        let server = ServerProcess::start(&folder.path().join("running"), &[]);
        Self { server, token_file, ledger, journal, folder }
    }

    /// `{server}`, `{store}` and `{ledger}` stand for the flags that name them, `{folder}` for a folder.
    fn code(&self, line: &str) -> (Option<i32>, String, Vec<u8>) {
        let line = line
            .replace("{server}", &format!("--server {} --token-file {}", self.server.url, self.token_file))
            .replace("{store}", &format!("--store {}", self.journal))
            .replace("{ledger}", &format!("--ledger {}", self.ledger))
            .replace("{url}", &self.server.url)
            .replace("{folder}", self.folder.path().to_str().unwrap());
        let output = run(&line.split_whitespace().collect::<Vec<_>>());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout)
    }
}

/// What can be done, in this order; with `--json`, where there is one, prints nothing or JSON.
const DONE: &str = "
    coupons create a --quantity 5 {server}
    coupons change a --quantity 6 {server} --json
    coupons list {server} --json
    coupons show a {server} --json
    coupons issue a --user u {server} --json
    coupons issued a --user u {server} --json
    coupons pause a {server} --json
    coupons resume a {server} --json
    coupons close a {server} --json
    deals create a --stock 5 {server} --json
    deals change a --stock 6 {server} --json
    deals list {server} --json
    deals show a {server} --json
    deals purchase a --user u {server} --json
    deals pause a {server} --json
    deals resume a {server} --json
    deals close a {server} --json
    lines create a --batch 1 --every 1s {server} --json
    lines change a --batch 2 {server} --json
    lines list {server} --json
    lines show a {server} --json
    lines enter a --user u {server} --json
    lines admit a --count 1 {server} --json
    lines pause a {server} --json
    lines resume a {server} --json
    lines close a {server} --json
    lines forget a {server} --json
    lines commitment early {store} --json
    locks list {server} --json
    locks show a {server} --json
    locks acquire a --owner o {server} --json
    locks force-release a {server} --json
    actions {server} --json
    audit {store} {ledger} --json
    recover {store} {ledger} --json
    ledger export coupon summer {ledger} --format jsonl
    ledger import summer --file {folder}/users {store} --json
    ledger dead-letters {ledger} --json
    ledger replay --all {ledger} --json
    ledger discard --all {ledger} --json
    ledger erase alice {store} {ledger} --json
    ledger purge coupon over --older-than-days 0 {store} {ledger} --json
    health --url {url}/readyz --json
    demo --shoppers 2 --stock 1 --batch 2 --every 10ms --json
    completions bash
    man
";

/// What makes sense and cannot be done.
const NOT_DONE: &str = "
    serve --store nonsense
    coupons create b --quantity 5 --server http://127.0.0.1:1
    coupons change b --quantity 5 {server}
    coupons list --server http://127.0.0.1:1
    coupons show b {server}
    coupons issue b --user u {server}
    coupons issued b --user u {server}
    coupons pause b {server}
    coupons resume b {server}
    coupons close b {server}
    deals create b --stock 0 --server http://127.0.0.1:1
    deals change b --stock 5 {server}
    deals list --server http://127.0.0.1:1
    deals show b {server}
    deals purchase b --user u {server}
    deals pause b {server}
    deals resume b {server}
    deals close b {server}
    lines create b --batch 0 --every 1s {server}
    lines change b --batch 2 {server}
    lines list --server http://127.0.0.1:1
    lines show b {server}
    lines enter b --user u {server}
    lines ticket b 0-1-00000000000000000000000000000000 {server}
    lines leave b 0-1-00000000000000000000000000000000 {server}
    lines admit b --count 1 {server}
    lines pause b {server}
    lines resume b {server}
    lines close b {server}
    lines forget b --server http://127.0.0.1:1
    lines commitment nowhere {store}
    lines audit nowhere {store}
    lines verify /no/such/file
    locks list --server http://127.0.0.1:1
    locks show b --server http://127.0.0.1:1
    locks acquire b --owner o --wait 2h {server}
    locks renew b --lock-token 00000000000000000000000000000000 {server}
    locks release b --lock-token 00000000000000000000000000000000 {server}
    locks force-release b --server http://127.0.0.1:1
    actions --server http://127.0.0.1:1
    audit {store} --ledger nonsense
    recover {store} --ledger nonsense
    ledger export coupon winter {ledger}
    ledger import winter --file {folder}/users {store}
    ledger purge coupon summer {store} {ledger}
    ledger dead-letters --ledger nonsense
    ledger replay --all --ledger nonsense
    ledger discard --all --ledger nonsense
    ledger erase alice {store} --ledger nonsense
    bench stock --redis redis://127.0.0.1:1
    health --url http://127.0.0.1:1/healthz --json
    demo --listen {url}
    man --out {folder}/token
    lab --stock 0
    lab cost --redis redis://127.0.0.1:1
    lab report {folder}/token
";

fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Which of them a line of a table tries.
fn tried(table: &str) -> BTreeSet<String> {
    let known = all_commands();
    let name = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        // The longer one first: `lab cost` is not `lab`.
        [words[..2.min(words.len())].join(" "), words[..1].join(" ")]
            .into_iter()
            .find(|name| known.contains(name))
    };
    lines(table)
        .map(|line| name(line).unwrap_or_else(|| panic!("there is no such command: {line}")))
        .collect()
}

#[test]
fn each_command_ends_with_the_code_that_says_what_happened() {
    let places = Places::new();
    for line in lines(DONE) {
        let (code, said, stdout) = places.code(line);
        assert_eq!(code, Some(0), "{line}: {said}");
        if line.contains("json") && !stdout.is_empty() {
            let documents = serde_json::Deserializer::from_slice(&stdout).into_iter::<Value>();
            assert!(documents.into_iter().all(|document| document.is_ok()), "{line}: {stdout:?}");
        }
    }
    let address = places.server.url.trim_start_matches("http://").to_owned();
    for line in lines(NOT_DONE) {
        let line = line.replace("--listen {url}", &format!("--listen {address}"));
        let (code, said, _) = places.code(&line);
        assert_eq!(code, Some(1), "{line}: {said}");
        assert!(said.contains("lockgate: ") && !said.contains("panicked"), "{line}: {said}");
    }
    for name in all_commands() {
        let (code, said, stdout) = places.code(&format!("{name} --no-such-flag"));
        assert_eq!((code, stdout.len()), (Some(2), 0), "{name}: {said}");
        assert!(said.contains("--help"), "{name}: {said}");
    }
    for senseless in [
        "",
        "coupon",
        "coupons",
        "demo --shoppers 0",
        "demo --listen 0.0.0.0:80",
        "lines create a --batch 1 --every 5",
    ] {
        assert_eq!(places.code(senseless).0, Some(2), "{senseless:?}");
    }
}

#[test]
fn no_command_is_left_out() {
    let done_elsewhere = DONE_ELSEWHERE.map(str::to_owned);
    // These need what another one has printed: `operator` has them.
    let with_a_token = ["lines ticket", "lines leave", "locks renew", "locks release"].map(str::to_owned);
    let mut done = tried(DONE);
    done.extend(done_elsewhere.into_iter().chain(with_a_token));
    assert_eq!(done, all_commands());
    let cannot_fail = ["completions"].map(str::to_owned);
    let mut not_done = tried(NOT_DONE);
    not_done.extend(cannot_fail);
    let benches = all_commands().into_iter().filter(|name| name.starts_with("bench "));
    not_done.extend(benches);
    assert_eq!(not_done, all_commands());
}
