//! `/v1/lines`: what an operator does, and all the answers.

use std::time::Duration;

use lockgate::key::Name;
use lockgate::line::Audit;
use lockgate::line::draw::Hash256;
use lockgate::testing::eventually_async;
use serde_json::{Value, json};

use crate::client::{APP, Answer, Client};
use crate::tickets::{SOON, enter, is_admitted, is_admitted_soon};

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

fn one_a_minute() -> Value {
    json!({ "batch": 1, "every_ms": 60_000 })
}

async fn admit(client: &Client, line: &str, key: &str, count: Value) -> Answer {
    let path = format!("/v1/lines/{line}/admit");
    client.post_with(&path, ("idempotency-key", key), json!({ "count": count })).await
}

#[tokio::test]
async fn putting_creates_then_replaces() {
    let client = Client::admin();
    let mut expected = json!({
        "id": "tour", "state": "open", "waiting": 0, "active": 0, "batch": 2, "every_ms": 1500, "max_active": 7,
        "pass_ttl_ms": 60_000, "grace_ms": 9_000, "prequeue": false, "arrived": 0, "admitted": 0, "left": 0,
        "abandoned": 0, "no_shows": 0, "expired": 0, "finished": 0,
    });
    let all =
        json!({ "batch": 2, "every_ms": 1500, "max_active": 7, "pass_ttl_ms": 60_000, "grace_ms": 9_000 });
    client.put("/v1/lines/tour", all.clone()).await.expect(201, &expected);
    client.get("/v1/lines/tour").await.expect(200, &expected);
    client.put("/v1/lines/tour", all).await.expect(200, &expected);

    // What is left out is as if it had never been said.
    let fields = expected.as_object_mut().unwrap();
    fields.remove("max_active");
    fields.extend(
        json!({ "batch": 1, "every_ms": 60_000, "pass_ttl_ms": 300_000, "grace_ms": 60_000 })
            .as_object()
            .unwrap()
            .clone(),
    );
    client.put("/v1/lines/tour", one_a_minute()).await.expect(200, &expected);
    client.get("/v1/lines/tour").await.expect(200, &expected);

    let patient =
        client.put("/v1/lines/tour", json!({ "batch": 1, "every_ms": 60_000, "grace_ms": null })).await;
    assert_eq!(patient.body.get("grace_ms"), Some(&Value::Null), "nobody is passed over");
}

#[tokio::test]
async fn a_bad_field_is_named() {
    let client = Client::admin();
    let cases: &[(Value, &str)] = &[
        (json!({}), "batch"),
        (json!({ "batch": 1 }), "every_ms"),
        (json!({ "batch": 0, "every_ms": 1000 }), "batch"),
        (json!({ "batch": 1_000_001, "every_ms": 1000 }), "batch"),
        (json!({ "batch": -1, "every_ms": 1000 }), "batch"),
        (json!({ "batch": 4_294_967_297_u64, "every_ms": 1000 }), "batch"),
        (json!({ "batch": 1, "every_ms": 9 }), "every_ms"),
        (json!({ "batch": 1, "every_ms": u64::MAX }), "every_ms"),
        (json!({ "batch": 1, "every_ms": 1.5 }), "every_ms"),
        (json!({ "batch": 1, "every_ms": "1000" }), "every_ms"),
        (json!({ "batch": 1, "every_ms": 1000, "max_active": 0 }), "max_active"),
        (json!({ "batch": 1, "every_ms": 1000, "pass_ttl_ms": 99 }), "pass_ttl_ms"),
        (json!({ "batch": 1, "every_ms": 1000, "grace_ms": 299 }), "grace_ms"),
        (json!({ "batch": 1, "every_ms": 1000, "grace_ms": "null" }), "grace_ms"),
        (json!({ "batch": 1, "every_ms": 1000, "opens_at": "soon" }), "opens_at"),
        (json!({ "batch": 1, "every_ms": 1000, "opens_at": "9999-01-01T00:00:00Z" }), "opens_at"),
        (json!({ "batch": 1, "every_ms": 1000, "prequeue": true }), "opens_at"),
        (json!({ "batch": 1, "every_ms": 1000, "prequeue": 1 }), "prequeue"),
        (json!({ "batch": 1, "every_ms": 1000, "colour": "red" }), "colour"),
    ];
    for (body, field) in cases {
        client.put("/v1/lines/tour", body.clone()).await.expect_invalid(field);
    }
    client.get("/v1/lines/tour").await.expect_problem(404, "unknown-line");
}

#[tokio::test]
async fn an_unknown_line_is_404_and_is_not_made_by_asking() {
    let client = Client::admin();
    for what in ["pause", "resume", "close"] {
        client.act(&format!("/v1/lines/nope/{what}")).await.expect_problem(404, "unknown-line");
    }
    client.get("/v1/lines/nope/audit").await.expect_problem(404, "unknown-line");
    admit(&client, "nope", "k", json!(1)).await.expect_problem(404, "unknown-line");
    client.post("/v1/lines/nope/tickets", json!({ "user": "a" })).await.expect_problem(404, "unknown-line");
    client.get("/v1/lines/nope").await.expect_problem(404, "unknown-line");
}

#[tokio::test]
async fn a_bad_id_is_refused_by_every_call() {
    let client = Client::admin();
    let long = "x".repeat(129);
    for id in ["a%20b", "%7Ba%7D", "%00", "%FF", "%2F", &long] {
        let path = format!("/v1/lines/{id}");
        client.put(&path, one_a_minute()).await.expect_invalid("id");
        client.get(&path).await.expect_invalid("id");
        client.delete(&path).await.expect_invalid("id");
        client.get(&format!("{path}/audit")).await.expect_invalid("id");
        client.post(&format!("{path}/tickets"), json!({ "user": "a" })).await.expect_invalid("id");
        for what in ["pause", "resume", "close"] {
            client.act(&format!("{path}/{what}")).await.expect_invalid("id");
        }
        admit(&client, id, "k", json!(1)).await.expect_invalid("id");
        client.get(&format!("{path}/tickets/0-0-00")).await.expect_invalid("id");
    }
}

#[tokio::test]
async fn the_opening_cannot_be_moved_after_it() {
    let client = Client::admin();
    let at = |opens_at: &str| json!({ "batch": 1, "every_ms": 60_000, "opens_at": opens_at });
    let created = client.put("/v1/lines/tour", at("2026-01-01T00:00:30Z")).await;
    assert_eq!((created.status.as_u16(), &created.body["state"]), (201, &json!("scheduled")));
    let moved = client.put("/v1/lines/tour", at(IN_A_MINUTE)).await;
    assert_eq!((moved.status.as_u16(), &moved.body["opens_at"]), (200, &json!(IN_A_MINUTE)));

    client.clock.advance(Duration::from_secs(60));
    let before = client.get("/v1/lines/tour").await.body;
    assert_eq!(before["state"], "open");
    client.put("/v1/lines/tour", at("2026-01-01T00:09:00Z")).await.expect_problem(409, "too-late");
    client.get("/v1/lines/tour").await.expect(200, &before);
}

#[tokio::test]
async fn a_paused_line_admits_nobody_and_a_closed_one_stays_closed() {
    let client = Client::admin();
    client.put("/v1/lines/tour", json!({ "batch": 5, "every_ms": 10 })).await;
    let paused = client.act("/v1/lines/tour/pause").await;
    assert_eq!((paused.status.as_u16(), &paused.body["state"]), (200, &json!("paused")));
    let ticket = enter(&client, "tour", "alice").await;
    for _ in 0..20 {
        client.clock.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!is_admitted(&client, &ticket).await);

    let resumed = client.act("/v1/lines/tour/resume").await;
    assert_eq!((resumed.status.as_u16(), &resumed.body["state"]), (200, &json!("open")));
    assert!(is_admitted_soon(&client, &ticket).await);
    let line = client.get("/v1/lines/tour").await.body;
    assert_eq!((&line["arrived"], &line["admitted"], &line["active"]), (&json!(1), &json!(1), &json!(1)));
    assert!(line["recent_waits"]["p50_ms"].is_u64() && line["recent_waits"]["p99_ms"].is_u64(), "{line}");
    assert!(line["pace_per_second"].is_f64(), "{line}");

    for what in ["close", "close", "resume", "pause"] {
        let answer = client.act(&format!("/v1/lines/tour/{what}")).await;
        assert_eq!((answer.status.as_u16(), &answer.body["state"]), (200, &json!("closed")), "{what}");
    }
}

#[tokio::test]
async fn only_an_admin_sets_a_line_up_and_only_an_app_asks_about_it() {
    let client = Client::admin_with_app_token();
    client.put("/v1/lines/tour", one_a_minute()).await;
    let (app, stranger) = (client.as_(Some(APP)), client.as_(None));
    for who in [&app, &stranger] {
        who.put("/v1/lines/tour", one_a_minute()).await.expect_problem(401, "unauthorized");
        who.delete("/v1/lines/tour").await.expect_problem(401, "unauthorized");
        admit(who, "tour", "k", json!(1)).await.expect_problem(401, "unauthorized");
        for what in ["pause", "resume", "close"] {
            who.act(&format!("/v1/lines/tour/{what}")).await.expect_problem(401, "unauthorized");
        }
    }
    for path in ["/v1/lines/tour", "/v1/lines/tour/audit"] {
        stranger.get(path).await.expect_problem(401, "unauthorized");
        assert_ne!(app.get(path).await.status, 401);
    }
    let alice = json!({ "user": "alice" });
    stranger.post("/v1/lines/tour/tickets", alice.clone()).await.expect_problem(401, "unauthorized");
    assert_eq!(app.post("/v1/lines/tour/tickets", alice).await.status, 201);
    assert_eq!(client.get("/v1/lines/tour").await.body["state"], "open");
}

#[tokio::test]
async fn people_can_be_admitted_beyond_the_rate_once_per_key() {
    let client = Client::admin();
    client.put("/v1/lines/tour", one_a_minute()).await;
    client.act("/v1/lines/tour/pause").await;
    let mut tickets = Vec::new();
    for user in 0..5 {
        tickets.push(enter(&client, "tour", &format!("user-{user}")).await);
    }
    let noted = json!({ "line": "tour", "count": 2, "noted": 2 });
    let replayed = json!({ "line": "tour", "count": 2, "replayed": true });
    admit(&client, "tour", "key-1", json!(2)).await.expect(201, &noted);
    admit(&client, "tour", "key-1", json!(2)).await.expect(200, &replayed);
    admit(&client, "tour", "key-1", json!(3)).await.expect_problem(422, "idempotency-key-reused");
    assert!(is_admitted_soon(&client, &tickets[1]).await);
    assert!(!is_admitted(&client, &tickets[2]).await);

    // The second and the third time have noted nobody: three are left. More than wait are not noted for those who come later.
    let more = json!({ "line": "tour", "count": 9, "noted": 3 });
    admit(&client, "tour", "key-2", json!(9)).await.expect(201, &more);
    assert!(is_admitted_soon(&client, &tickets[4]).await);

    client.act("/v1/lines/tour/close").await;
    admit(&client, "tour", "key-1", json!(2)).await.expect(200, &replayed);
    admit(&client, "tour", "key-3", json!(2)).await.expect_problem(403, "closed");

    client.put("/v1/lines/other", one_a_minute()).await;
    let elsewhere = admit(&client, "other", "key-1", json!(1)).await;
    assert_eq!(elsewhere.status, 201, "a key belongs to its line");
}

#[tokio::test]
async fn admitting_needs_a_key_and_an_open_line() {
    let client = Client::admin();
    client.put("/v1/lines/tour", json!({ "batch": 1, "every_ms": 1000, "opens_at": IN_A_MINUTE })).await;
    let early = admit(&client, "tour", "key", json!(1)).await.expect_problem(403, "not-open");
    assert_eq!(early.body["opens_at"], IN_A_MINUTE);
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(admit(&client, "tour", "key", json!(1)).await.status, 201, "a denial uses no key up");

    let without = client.post("/v1/lines/tour/admit", json!({ "count": 1 })).await;
    without.expect_invalid("Idempotency-Key");
    for key in ["", "a b", &"x".repeat(256)] {
        admit(&client, "tour", key, json!(1)).await.expect_invalid("Idempotency-Key");
    }
    for count in [json!(0), json!(1_000_001), json!(-1), json!("1"), json!(null)] {
        admit(&client, "tour", "key", count).await.expect_invalid("count");
    }
}

#[tokio::test]
async fn only_a_closed_line_is_forgotten_and_that_as_often_as_one_likes() {
    let client = Client::admin();
    client.put("/v1/lines/tour", one_a_minute()).await;
    enter(&client, "tour", "alice").await;
    client.delete("/v1/lines/tour").await.expect_problem(409, "not-closed");
    assert_eq!(client.get("/v1/lines/tour").await.status, 200);
    client.act("/v1/lines/tour/close").await;
    for _ in 0..2 {
        client.delete("/v1/lines/tour").await.expect(204, &Value::Null);
    }
    client.get("/v1/lines/tour").await.expect_problem(404, "unknown-line");
    assert_eq!(client.put("/v1/lines/tour", one_a_minute()).await.status, 201);
}

#[tokio::test]
async fn the_order_of_those_who_came_early_can_be_verified() {
    let client = Client::admin();
    let terms =
        json!({ "batch": 9, "every_ms": 1000, "opens_at": IN_A_MINUTE, "prequeue": true, "grace_ms": null });
    let created = client.put("/v1/lines/tour", terms.clone()).await;
    assert_eq!((created.status.as_u16(), &created.body["state"]), (201, &json!("early")));
    let published = Hash256::parse(created.body["commitment"].as_str().unwrap()).unwrap();
    let users = ["alice", "bob", "carol", "dave"];
    for user in users {
        let told = client.post("/v1/lines/tour/tickets", json!({ "user": user })).await;
        assert_eq!((told.status.as_u16(), &told.body["state"]), (201, &json!("early")));
        assert!(told.body.get("position").is_none(), "nobody knows yet: {}", told.body);
    }
    client.get("/v1/lines/tour/audit").await.expect_problem(409, "not-drawn");
    let secrets = client.get("/v1/lines/tour").await.body.to_string();
    let without = json!({ "batch": 9, "every_ms": 1000, "opens_at": IN_A_MINUTE, "grace_ms": null });
    client.put("/v1/lines/tour", without).await.expect_problem(409, "too-late");

    client.clock.advance(Duration::from_secs(60));
    let drawn = async || client.get("/v1/lines/tour/audit").await.status == 200;
    assert!(eventually_async(SOON, drawn).await);
    let audit = client.get("/v1/lines/tour/audit").await.body;
    assert!(!secrets.contains(audit["secret"].as_str().unwrap()), "the secret was told before: {secrets}");
    let hash = |field: &str| Hash256::parse(audit[field].as_str().unwrap()).unwrap();
    let arrivals = audit["arrivals"].as_array().unwrap().iter();
    let arrivals = arrivals.map(|leaf| Hash256::parse(leaf.as_str().unwrap()).unwrap()).collect();
    let line = Name::new("line", audit["line"].as_str().unwrap()).unwrap();
    let audit =
        Audit::new(line, hash("commitment"), hash("secret"), hash("arrivals_hash"), hash("seed"), arrivals);
    assert_eq!(audit.verify(Some(&published)).unwrap().len(), 4);
    for (number, user) in users.into_iter().enumerate() {
        assert_eq!(audit.find(&Name::new("user", user).unwrap()).unwrap().0, number as u64);
    }
}

#[test]
fn the_contract_describes_every_call_once() {
    let contract = serde_json::to_value(lockgate_server::openapi()).unwrap();
    let paths = contract["paths"].as_object().unwrap();
    let operations = || paths.values().flat_map(|path| path.as_object().unwrap().values());
    let mut ids: Vec<_> = operations().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "two calls have one name: {ids:?}");

    for (path, method) in [
        ("/v1/lines/{id}", "put"),
        ("/v1/lines/{id}", "get"),
        ("/v1/lines/{id}", "delete"),
        ("/v1/lines/{id}/pause", "post"),
        ("/v1/lines/{id}/resume", "post"),
        ("/v1/lines/{id}/close", "post"),
        ("/v1/lines/{id}/admit", "post"),
        ("/v1/lines/{id}/audit", "get"),
        ("/v1/lines/{id}/tickets", "post"),
        ("/v1/lines/{id}/tickets/{ticket}", "get"),
        ("/v1/lines/{id}/tickets/{ticket}", "delete"),
        ("/v1/lines/{id}/tickets/{ticket}/finish", "post"),
        ("/v1/lines/{id}/tickets/{ticket}/renew", "post"),
        ("/v1/lines/{id}/tickets/{ticket}/events", "get"),
        ("/.well-known/jwks.json", "get"),
    ] {
        let operation = &paths[path][method];
        let named = |place: &str| {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            parameters.iter().filter(|parameter| parameter["in"] == place).count()
        };
        assert_eq!(named("path"), path.matches('{').count(), "{method} {path}: {operation}");
        assert_eq!(named("header"), usize::from(path.ends_with("/admit")), "{method} {path}");
    }
}
