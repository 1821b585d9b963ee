//! The contract as it is published.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use lockgate_server::openapi;
use serde_json::{Value, json};

use crate::client::{APP, Client};

/// Where it is committed.
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

fn published() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

/// `UPDATE_SNAPSHOTS=1 cargo test -p lockgate-server` writes it anew.
#[test]
fn the_committed_contract_is_the_one_that_is_served() {
    let text = serde_json::to_string_pretty(&published()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(SNAPSHOT, &text).unwrap();
    }
    let committed = std::fs::read_to_string(Path::new(SNAPSHOT)).unwrap_or_default();
    assert!(committed == text, "docs/openapi.json is not what is served: UPDATE_SNAPSHOTS=1 writes it anew");
}

#[tokio::test]
async fn the_contract_and_its_page_are_served_and_fetch_nothing_from_elsewhere() {
    let client = Client::admin().as_(None);
    client.get("/openapi.json").await.expect(200, &published());
    assert_eq!(published()["openapi"], "3.1.0");
    let page = client.text("/docs/").await;
    assert_eq!(page.0, 200);
    let policy = page.1["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("http"), "{policy}");
    assert!(page.2.contains("swagger") && !page.2.contains("https://"), "{}", page.2);
}

/// Every operation: method, path with ids filled in, and what it demands.
fn operations() -> Vec<(String, String, Value)> {
    let contract = published();
    let mut all = Vec::new();
    for (path, item) in contract["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let filled = path.replace("{id}", "x").replace("{user}", "u");
            let filled = filled.replace("{hold}", "deal:x:00000000000000000000000000000000");
            let filled = filled.replace("{order}", "x:00000000000000000000000000000000");
            let filled = filled.replace("{ticket}", "1-1-00000000000000000000000000000000");
            let filled = filled.replace("{letter}", "0:1-0:1");
            assert!(!filled.contains('{'), "{filled}: what to fill in?");
            all.push((method.to_uppercase(), filled, operation["security"].clone()));
        }
    }
    all
}

fn demands(security: &Value, scheme: &str) -> bool {
    let any = security.as_array().is_some_and(|all| !all.is_empty());
    any && security.as_array().unwrap().iter().all(|one| one.get(scheme).is_some() || one == &json!({}))
}

#[tokio::test]
async fn every_admin_call_refuses_no_token_a_wrong_one_and_the_app_token() {
    let client = Client::admin_with_app_token();
    let admin_calls: Vec<_> =
        operations().into_iter().filter(|(_, _, security)| security == &json!([{ "admin": [] }])).collect();
    assert!(admin_calls.len() >= 9, "{admin_calls:?}");
    for (method, path, _) in &admin_calls {
        for wrong in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic the-admin"), Some(APP)] {
            // Guessing is slowed down.
            client.clock.advance(Duration::from_secs(1));
            let answer = client.as_(wrong).send(method, path, Some("application/json"), b"{}".into()).await;
            assert_eq!(answer.status, 401, "{method} {path} with {wrong:?}: {}", answer.body);
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
}

#[tokio::test]
async fn every_app_call_refuses_no_token_and_a_wrong_one_once_one_is_set() {
    let client = Client::admin_with_app_token();
    let app_calls: Vec<_> =
        operations().into_iter().filter(|(_, _, security)| demands(security, "app")).collect();
    assert!(app_calls.len() >= 12, "{app_calls:?}");
    for (method, path, _) in &app_calls {
        for wrong in [None, Some("Bearer wrong")] {
            // Guessing is slowed down.
            client.clock.advance(Duration::from_secs(1));
            let answer = client.as_(wrong).send(method, path, Some("application/json"), b"{}".into()).await;
            assert_eq!(answer.status, 401, "{method} {path} with {wrong:?}: {}", answer.body);
        }
    }
}

/// Nothing is open to everybody by accident.
#[test]
fn what_needs_no_token_is_known() {
    let open: BTreeSet<_> = operations()
        .into_iter()
        .filter(|(_, _, security)| security.is_null())
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    // Whoever has a ticket may do what can be done with it: it cannot be guessed.
    let ticket = "/v1/lines/x/tickets/1-1-00000000000000000000000000000000";
    let with_ticket =
        [("GET", ""), ("GET", "/events"), ("POST", "/finish"), ("POST", "/renew"), ("DELETE", "")];
    let with_ticket = with_ticket.map(|(method, what)| format!("{method} {ticket}{what}"));
    let others = ["GET /.well-known/jwks.json", "GET /healthz", "GET /readyz"].map(str::to_owned);
    let expected: BTreeSet<_> = with_ticket.into_iter().chain(others).collect();
    assert_eq!(open, expected);
}
