//! `lockgate bench`: its JSON can be read as it comes, and it counts what clients sent.

use lockgate::testing::services::{Persistence, Redis};
use serde_json::Value;

use crate::process::run;

fn lines_of(arguments: &[&str]) -> Vec<Value> {
    let short = ["--seconds", "0.4", "--rounds", "2", "--json"];
    let output = run(&[&["bench"], arguments, &short].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn results_of(lines: &[Value]) -> Vec<Value> {
    let case = lines.iter().find(|line| line["kind"] == "case").unwrap();
    case["results"].as_array().unwrap().clone()
}

fn result<'a>(results: &'a [Value], contender: &str) -> &'a Value {
    results.iter().find(|result| result["contender"] == contender).unwrap()
}

#[test]
fn lock_measures_limit_peer_and_ours_between_processes_in_one_run() {
    let lines = lines_of(&["lock", "--processes", "2", "--tasks", "4"]);
    let slices = lines.iter().filter(|line| line["kind"] == "slice");
    let (warm_up, counted): (Vec<_>, Vec<_>) = slices.partition(|line| line["warm_up"] == true);
    assert_eq!((warm_up.len(), counted.len()), (6, 12), "a warm-up and two rounds of six contenders");
    assert_eq!(lines.last().unwrap()["kind"], "noise");

    let results = results_of(&lines);
    assert_eq!(results[0]["role"], "limit");
    assert_eq!(results[0]["ratio_to_limit"]["median"], 1.0);
    assert_eq!(result(&results, "rslock 0.10")["role"], "peer");
    for contender in &results[1..] {
        assert_eq!(contender["violations"], 0, "{contender}");
        assert!(contender["gap_mean_us"].as_f64().unwrap() > 0.0, "{contender}");
    }
    let cohort = result(&results, "lockgate, hand-off with cohort");
    assert!(cohort["client_commands"].as_f64().unwrap() < 0.5, "{cohort}");
}

#[test]
fn a_rush_ends_with_an_exact_count() {
    for contender in results_of(&lines_of(&["lock-rush"])) {
        assert_eq!(contender["violations"], 0, "{contender}");
    }
}

#[test]
fn locks_that_are_held_at_once_are_counted() {
    let held = &lines_of(&["lock-held", "--locks", "500"])[0];
    assert_eq!((&held["locks"], &held["lost"]), (&500.into(), &0.into()), "{held}");
}

#[test]
fn the_cost_of_waiting_is_printed_beside_its_estimate() {
    let lines = lines_of(&["lock-cost"]);
    let model = |line: &Value| line["commands_by_the_model"].as_f64();
    let polled = lines.iter().rfind(|line| model(line).is_some()).unwrap();
    // Half of it would mean that the model, or the count, is wrong; the rest is a busy machine.
    assert!(polled["commands"].as_f64().unwrap() > model(polled).unwrap() / 2.0, "{polled}");
}

#[test]
fn stock_measures_limit_peer_and_ours_in_one_run() {
    let results = results_of(&lines_of(&["stock", "--tasks", "4"]));
    let per_issue = |contender: &str| result(&results, contender)["client_commands"].as_f64();
    assert_eq!(per_issue("one EVALSHA per request: set and queue"), Some(1.0));
    assert!(per_issue("lockgate on Redis").unwrap() < 1.0, "callers that come together share no call");
    assert_eq!(per_issue("lockgate embedded, in memory"), None);
    assert_eq!(per_issue("lockgate embedded, journal on disk before each answer"), None);
    assert!(per_issue("the batch script alone, 500 users a call, plain socket").unwrap() < 0.01);
    assert!(results.iter().any(|result| result["contender"] == "PostgreSQL: SELECT … FOR UPDATE"));
}

#[test]
fn what_many_issued_coupons_cost_is_counted() {
    let output = run(&["bench", "stock-size", "--users", "20000", "--json"]);
    let size: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((30..=130).contains(&size["bytes_per_user"].as_u64().unwrap()), "{size}");
    assert!(size["seconds_to_start"].as_f64().unwrap() > 0.0, "{size}");
}

#[test]
fn the_line_measures_what_people_write_and_ours_and_says_what_was_expected() {
    let lines = lines_of(&["line", "--people", "10000", "--tasks", "20"]);
    let cases: Vec<_> = lines.iter().filter(|line| line["kind"] == "case").collect();
    let asked = "entering, positions, both by how many wait, in a crowd and alone, and entering while the table doubles";
    assert_eq!(cases.len(), 7, "{asked}");
    let entering = results_of(&lines);
    let per_entry = |contender: &str| result(&entering, contender)["client_commands"].as_f64();
    assert_eq!(per_entry("ZADD, ZRANK, ZCARD, one after the other"), Some(3.0));
    assert!(per_entry("lockgate on Redis").unwrap() < 1.0, "callers that come together share no call");
    assert_eq!(per_entry("lockgate embedded"), None);

    let figure = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    let found = |name: &str| figure(name)["value"].as_f64().unwrap();
    assert_eq!(figure("positions/s at a glance, times those by ZRANK")["expected"], "≥ 5.00");
    assert!((50.0..=200.0).contains(&found("bytes per person, ids like user-1234567")));
    assert!(found("longest script: entering, 512 a call, ms") > 0.0);
    assert!(found("longest script: drawing all places, ms") > 0.0);
    assert_eq!(found("watchers in one process: how many"), 99.0);
    let calls = found("watchers in one process: store calls per tick");
    // A busy machine may be so late that a batch falls between two ticks.
    assert!((0.9..=2.0).contains(&calls), "{calls}");
    assert_eq!(lines.last().unwrap()["kind"], "noise");
}

#[test]
fn somebodys_redis_is_left_as_it_was() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let slow = || redis.command(&["CONFIG", "GET", "slowlog-*"]).unwrap().to_string();
    let before = slow();
    lines_of(&["line", "--people", "10000", "--tasks", "20", "--redis", &redis.url()]);
    assert_eq!(slow(), before);
    assert_eq!(redis.command(&["DBSIZE"]).unwrap().to_string(), "0");
}

#[test]
fn the_ledger_measures_limit_peer_and_ours_and_says_what_was_expected() {
    for database in ["postgres", "mysql", "sqlite"] {
        let lines = lines_of(&["ledger", "--db", database, "--rows", "2000"]);
        let roles: Vec<_> = results_of(&lines).iter().map(|result| result["role"].clone()).collect();
        assert_eq!(roles, ["limit", "peer", "ours"], "{database}");
        assert_eq!(lines.iter().filter(|line| line["kind"] == "case").count(), 2, "{database}");
        let figures: Vec<_> = lines.iter().filter(|line| line["kind"] == "figure").collect();
        assert_eq!(figures.len(), 7, "{database}");
        let of = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap();
        assert!(of("rows/s")["value"].as_f64().unwrap() > 0.0, "{database}");
        assert_eq!(of("behind meanwhile, most ms")["expected"], "≤ 2000", "{database}");
        assert_eq!(lines.last().unwrap()["kind"], "noise");
    }
}

#[test]
fn http_measures_a_bare_handler_and_ours_and_what_a_server_takes() {
    let lines = lines_of(&["http", "--connections", "4", "--issues", "400", "--watchers", "30"]);
    let results = results_of(&lines);
    let roles: Vec<_> = results.iter().map(|result| result["role"].clone()).collect();
    assert_eq!(roles, ["limit", "ours", "ours"]);
    let per_request = result(&results, "lockgate serve on Redis")["client_commands"].as_f64().unwrap();
    assert!(per_request > 0.0 && per_request <= 1.1, "{per_request}");

    let figure = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    let found = |name: &str| figure(name)["value"].as_f64().unwrap();
    assert_eq!(figure("embedded, journal on disk: requests/s, of the bare handler's")["expected"], "≥ 0.60");
    assert!(found("ms from start to ready, on empty data") > 0.0);
    assert!(found("MiB resident at rest") > 1.0);
    assert_eq!((found("issues, then"), found("streams of events at once")), (400.0, 30.0));
    assert!(found("KiB per open stream of events") > 0.0);
    assert_eq!(lines.last().unwrap()["kind"], "noise");
}

#[test]
fn somebodys_file_is_not_measured_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let url = format!("sqlite:{}", file.path().display());
    let output = run(&["bench", "ledger", "--db", &url, "--rows", "1000"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the file exists") && said.contains("--db"), "{said}");
    assert!(file.path().exists());
}

#[test]
fn a_redis_that_is_not_there_is_told_in_one_sentence() {
    let output = run(&["bench", "lock", "--redis", "redis://127.0.0.1:1", "--seconds", "0.1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot connect to redis://127.0.0.1:1") && said.contains("--redis"), "{said}");
}
