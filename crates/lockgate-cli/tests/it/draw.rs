//! The proof of a draw, as operators publish it and as anybody verifies it.

use std::path::Path;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::line::{LineTerms, Whereabouts};
use lockgate::testing::services::{Persistence, Redis};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::run;

/// A line on that store with ten people who came early, open by now.
async fn drawn(url: &str) {
    let gate = Gate::open(url).await.unwrap();
    let line = gate.line("concert").unwrap();
    let clock = Clock::system();
    let opens_at = clock.wall() + Duration::from_millis(300);
    let terms = LineTerms::new(100, Duration::from_millis(10)).unwrap().grace(None).unwrap();
    line.open(&terms.prequeue_until(opens_at)).await.unwrap();
    for user in 0..10 {
        line.enter(format!("user-{user}")).await.unwrap();
    }
    let last = line.enter("last").await.unwrap();
    let lockgate::line::Entry::In { ticket, .. } = last else { panic!("{last:?}") };
    let admitted = tokio::time::timeout(Duration::from_secs(20), ticket.admitted()).await.unwrap().unwrap();
    assert!(!matches!(admitted, Err(Whereabouts::Unknown)), "{admitted:?}");
    gate.shutdown().await;
}

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Why a command could not be done.
fn refusal(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_published_and_verified() {
    let redis = Redis::start(Persistence::Off).unwrap();
    drawn(&redis.url()).await;
    let store = ["--store", &redis.url()];
    let commitment = text(&[&["lines", "commitment", "concert"], &store[..]].concat());
    let commitment = commitment.trim();
    let audit = text(&[&["lines", "audit", "concert"], &store[..]].concat());
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("audit.json");
    std::fs::write(&file, &audit).unwrap();
    let shown = file.to_str().unwrap();

    let verified =
        text(&["lines", "verify", shown, "--commitment", commitment, "--user", "user-3", "--user", "nobody"]);
    assert!(verified.contains("11 people came early") && verified.contains("the order holds"), "{verified}");
    assert!(verified.contains("user-3: came as number 4, stood at place "), "{verified}");
    assert!(verified.contains("nobody: did not come early"), "{verified}");
    let json: Value = serde_json::from_str(&text(&["lines", "verify", shown, "--json"])).unwrap();
    assert_eq!((json["holds"].as_bool(), json["commitment_compared"].as_bool()), (Some(true), Some(false)));
    let mut order: Vec<_> =
        json["order"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect();
    order.sort_unstable();
    assert_eq!(order, (0..11).collect::<Vec<_>>());

    // The same with the users themselves.
    let mut value: Value = serde_json::from_str(&audit).unwrap();
    value.as_object_mut().unwrap().remove("arrivals");
    let users = (0..10).map(|user| format!("user-{user}")).chain(["last".to_owned()]);
    value["users"] = users.collect();
    write(&file, &value);
    text(&["lines", "verify", shown, "--commitment", commitment]);
    // One of them came a little earlier, they say.
    value["users"].as_array_mut().unwrap().swap(0, 1);
    write(&file, &value);
    assert!(refusal(&["lines", "verify", shown]).contains("the list of arrivals"), "not noticed");
}

#[test]
fn what_cannot_be_verified_is_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("audit.json");
    let shown = file.to_str().unwrap();
    // Its old name still goes.
    assert!(refusal(&["line", "verify", shown]).contains("cannot read"));
    for wrong in ["", "[]", "{}", r#"{"line": ""}"#, r#"{"line": "a", "commitment": "12"}"#] {
        std::fs::write(&file, wrong).unwrap();
        let why = refusal(&["lines", "verify", shown]);
        assert!(why.contains("is not what `lockgate lines audit` prints"), "{wrong}: {why}");
    }
    let redis = Redis::start(Persistence::Off).unwrap();
    let why = refusal(&["lines", "commitment", "concert", "--store", &redis.url()]);
    assert!(why.contains("no line concert with a pre-queue"), "{why}");
    let why = refusal(&["lines", "audit", "concert", "--store", &redis.url()]);
    assert!(why.contains("nothing to verify"), "{why}");
}
