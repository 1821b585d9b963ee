//! `lockgate lab`, as people run it: every claim is borne out, on every database, in one process and in several.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::run;

/// Runs the lab with a small crowd; what it found.
fn report_of(arguments: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.json");
    let more = ["--growth", "none", "--json", file.to_str().unwrap()];
    let output = run(&[&["lab"], arguments, &more].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("are what they claim"), "{said}");
    read(&file)
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn seen(report: &Value, strategy: &str) -> Vec<String> {
    let all = report["strategies"].as_array().unwrap();
    let tried = all.iter().find(|tried| tried["name"] == strategy).unwrap();
    let seen = tried["finding"]["seen"].as_array().unwrap();
    seen.iter().map(|flaw| flaw.as_str().unwrap().to_owned()).collect()
}

const SMALL: &[&str] = &["--users", "60", "--stock", "40", "--rounds", "2"];

fn all_claims_match(database: &str, strategies: usize, skipped: usize) -> Value {
    let report = report_of(&[SMALL, &["--db", database]].concat());
    assert_eq!(report["strategies"].as_array().unwrap().len(), strategies, "{database}");
    assert_eq!(report["skipped"].as_array().unwrap().len(), skipped, "{database}");
    assert_eq!(seen(&report, "redis-naive"), ["stuck"], "{database}");
    for oversells in ["atomic-check-then-act", "pipeline"] {
        assert_eq!(seen(&report, oversells), ["oversold"], "{database}: {oversells}");
    }
    for exact in ["cas", "conditional-update", "redis-handoff", "lease-too-short-fenced", "lockgate"] {
        assert_eq!(seen(&report, exact), Vec::<String>::new(), "{database}: {exact}");
    }
    assert!(seen(&report, "lease-too-short").contains(&"lost-updates".to_owned()), "{database}");
    report
}

#[test]
fn every_claim_is_borne_out_on_postgresql() {
    let report = all_claims_match("postgres", 26, 0);
    for loses in ["none", "mutex-inside-tx"] {
        assert!(seen(&report, loses).contains(&"lost-updates".to_owned()), "{loses}");
    }
    let naive = report["strategies"].as_array().unwrap().iter().find(|tried| tried["name"] == "redis-naive");
    let note = naive.unwrap()["rounds"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("kill -9"), "{note}");
}

#[test]
fn every_claim_is_borne_out_on_mariadb() {
    let report = all_claims_match("mysql", 26, 0);
    assert!(seen(&report, "none").contains(&"lost-updates".to_owned()));
}

#[test]
fn every_claim_is_borne_out_on_sqlite() {
    all_claims_match("sqlite", 23, 3);
}

#[test]
fn what_works_in_one_process_only_is_seen_to_break_in_three() {
    let lose = [
        "mutex-no-tx",
        "mutex-around-tx",
        "mutex-with-timeout",
        "spin-in-process",
        "queue-busy",
        "queue-blocking",
    ];
    let oversell = ["cas", "atomic-check-then-act", "pipeline"];
    let exact = [
        "pessimistic",
        "redis-handoff",
        "script-set",
        "script-set-queue",
        "script-sorted-set",
        "queue-stream",
        "lockgate",
    ];
    let all = [lose.as_slice(), &oversell, &exact].concat().join(",");
    let crowd = ["--users", "90", "--stock", "60", "--rounds", "3", "--processes", "3", "--strategies", &all];
    let report = report_of(&crowd);
    for strategy in lose {
        assert!(seen(&report, strategy).contains(&"lost-updates".to_owned()), "{strategy}");
    }
    for strategy in oversell {
        assert_eq!(seen(&report, strategy), ["oversold"], "{strategy}");
    }
    for strategy in exact {
        assert_eq!(seen(&report, strategy), Vec::<String>::new(), "{strategy}");
    }
}

#[test]
fn nonsense_is_told_what_to_write_instead() {
    let told = |arguments: &[&str]| {
        let output = run(&[&["lab"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = told(&["--strategies", "redlok"]);
    assert!(said.contains("no strategy is called \"redlok\"") && said.contains("redlock"), "{said}");
    assert!(told(&["--stock", "0"]).contains("at least 1"));
    assert!(told(&["--processes", "3", "--db", "sqlite"]).contains("--db postgres"));
    assert!(told(&["--growth", "ten"]).contains("write numbers of users"));
}

#[test]
fn a_claim_that_does_not_show_makes_it_fail_loudly() {
    // One user alone loses nothing, and `none` claims that it does: not in the round that is asked for, nor in more.
    let output = run(&["lab", "--users", "1", "--stock", "1", "--rounds", "1", "--strategies", "none"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CLAIM AND FINDING DIFFER for none"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("not seen in 10 rounds"));
}
