//! `lockgate bench`: its JSON can be read as it comes, and it counts what clients sent.

use serde_json::Value;

use crate::process::run;

fn lines_of(subject: &str) -> Vec<Value> {
    let output = run(&["bench", subject, "--seconds", "0.2", "--rounds", "2", "--tasks", "4", "--json"]);
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
fn lock_measures_limit_peer_and_ours_in_one_run() {
    let lines = lines_of("lock");
    let slices = lines.iter().filter(|line| line["kind"] == "slice");
    let (warm_up, counted): (Vec<_>, Vec<_>) = slices.partition(|line| line["warm_up"] == true);
    assert_eq!((warm_up.len(), counted.len()), (3, 6), "a warm-up and two rounds of three contenders");
    assert_eq!(lines.last().unwrap()["kind"], "noise");

    let results = results_of(&lines);
    assert_eq!(results[0]["role"], "limit");
    assert_eq!(results[0]["ratio_to_limit"]["median"], 1.0);
    let ours = result(&results, "lockgate");
    assert_eq!(ours["client_commands"], 2.0, "an acquire and a release, nothing else: {ours}");
    assert!(ours["per_second"]["median"].as_f64().unwrap() > 0.0);
    assert_eq!(result(&results, "rslock 0.10")["role"], "peer");
}

#[test]
fn stock_measures_limit_peer_and_ours_in_one_run() {
    let results = results_of(&lines_of("stock"));
    assert_eq!(result(&results, "lockgate on Redis")["client_commands"], 1.0);
    assert_eq!(result(&results, "lockgate embedded")["client_commands"], Value::Null);
    let limit = result(&results, "the batch script alone, 256 users a call");
    assert!(limit["client_commands"].as_f64().unwrap() < 0.01, "{limit}");
}

#[test]
fn a_redis_that_is_not_there_is_told_in_one_sentence() {
    let output = run(&["bench", "lock", "--redis", "redis://127.0.0.1:1", "--seconds", "0.1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot connect to redis://127.0.0.1:1") && said.contains("--redis"), "{said}");
}
