//! `/v1/coupons`: the calls and all their answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

#[tokio::test]
async fn putting_creates_then_replaces() {
    let client = Client::admin();
    let created = json!({
        "id": "welcome", "quantity": 2, "issued": 0, "held": 0, "remaining": 2, "state": "open", "closes_at": IN_A_MINUTE,
    });
    let body = json!({ "quantity": 2, "closes_at": IN_A_MINUTE });
    client.put("/v1/coupons/welcome", body).await.expect(201, &created);
    client.get("/v1/coupons/welcome").await.expect(200, &created);

    let replaced =
        json!({ "id": "welcome", "quantity": 5, "issued": 0, "held": 0, "remaining": 5, "state": "open" });
    client.put("/v1/coupons/welcome", json!({ "quantity": 5 })).await.expect(200, &replaced);
    client.get("/v1/coupons/welcome").await.expect(200, &replaced);
}

#[tokio::test]
async fn issuing_says_which_number_and_how_many_are_left() {
    let client = Client::admin();
    client.put("/v1/coupons/welcome", json!({ "quantity": 1 })).await;
    let issued = json!({ "coupon": "welcome", "user": "alice", "seq": 1, "remaining": 0 });
    client.post("/v1/coupons/welcome/issues", json!({ "user": "alice" })).await.expect(201, &issued);
    let replayed = json!({ "coupon": "welcome", "user": "alice", "seq": 1, "replayed": true });
    client.post("/v1/coupons/welcome/issues", json!({ "user": "alice" })).await.expect(200, &replayed);
    client.post("/v1/coupons/welcome/issues", json!({ "user": "bob" })).await.expect_problem(409, "sold-out");
    assert_eq!(client.get("/v1/coupons/welcome").await.body["state"], "sold-out");
}

#[tokio::test]
async fn an_unknown_coupon_is_404_and_is_not_made_by_asking() {
    let client = Client::admin();
    client
        .post("/v1/coupons/nope/issues", json!({ "user": "alice" }))
        .await
        .expect_problem(404, "unknown-coupon");
    client.get("/v1/coupons/nope").await.expect_problem(404, "unknown-coupon");
}

#[tokio::test]
async fn before_and_after_its_window_a_coupon_cannot_be_had_but_a_replay_can() {
    let client = Client::admin();
    let window = json!({ "quantity": 9, "opens_at": IN_A_MINUTE, "closes_at": "2026-01-01T09:02:00+09:00" });
    client.put("/v1/coupons/w", window).await;
    let early =
        client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.expect_problem(403, "not-open");
    assert_eq!(early.body["opens_at"], IN_A_MINUTE);

    client.clock.advance(Duration::from_secs(60));
    assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.status, 201);

    client.clock.advance(Duration::from_secs(60));
    client.post("/v1/coupons/w/issues", json!({ "user": "b" })).await.expect_problem(403, "closed");
    assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.status, 200);
    assert_eq!(client.get("/v1/coupons/w").await.body["state"], "closed");
}

#[tokio::test]
async fn a_quantity_below_what_is_issued_is_refused_and_changes_nothing() {
    let client = Client::admin();
    client.put("/v1/coupons/w", json!({ "quantity": 2 })).await;
    for user in ["a", "b"] {
        client.post("/v1/coupons/w/issues", json!({ "user": user })).await;
    }
    let before = client.get("/v1/coupons/w").await.body;
    let refused =
        client.put("/v1/coupons/w", json!({ "quantity": 1 })).await.expect_problem(409, "below-issued");
    assert_eq!(refused.body["issued"], 2);
    client.get("/v1/coupons/w").await.expect(200, &before);
}

#[tokio::test]
async fn a_coupon_may_demand_the_pass_of_a_line() {
    let client = Client::admin();
    let created = json!({
        "id": "w", "quantity": 2, "issued": 0, "held": 0, "remaining": 2, "state": "open", "line": "tour",
    });
    client.put("/v1/coupons/w", json!({ "quantity": 2, "line": "tour" })).await.expect(201, &created);
    client.get("/v1/coupons/w").await.expect(200, &created);
    client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.expect_problem(403, "pass-required");
    client
        .put("/v1/coupons/w", json!({ "quantity": 2, "line": "no id" }))
        .await
        .expect_problem(400, "invalid");

    client.put("/v1/coupons/w", json!({ "quantity": 2 })).await;
    assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.status, 201);
}

#[tokio::test]
async fn putting_replaces_every_field_and_the_quantity_is_a_total() {
    let client = Client::admin();
    let all = json!({
        "quantity": 5, "opens_at": "2026-01-01T00:00:00Z", "closes_at": IN_A_MINUTE, "line": "tour",
    });
    client.put("/v1/coupons/w", all).await;
    client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await;
    let wish = json!({ "user": "b", "ttl_ms": 60_000 });
    assert_eq!(client.keyed("k").post("/v1/coupons/w/holds", wish).await.status, 201);
    let stands = |quantity: u64, remaining: u64, state: &str| json!({ "id": "w", "quantity": quantity, "issued": 1, "held": 1, "remaining": remaining, "state": state });
    client.get("/v1/coupons/w").await.expect(200, &stands(5, 3, "open"));
    client.put("/v1/coupons/w", json!({ "quantity": 8 })).await.expect(200, &stands(8, 6, "open"));
    client.put("/v1/coupons/w", json!({ "quantity": 2 })).await.expect(200, &stands(2, 0, "sold-out"));
    let less = json!({ "quantity": 1, "closes_at": IN_A_MINUTE });
    let refused = client.put("/v1/coupons/w", less).await.expect_problem(409, "below-issued");
    assert_eq!(refused.body["issued"], 2, "what is held counts");
    client.get("/v1/coupons/w").await.expect(200, &stands(2, 0, "sold-out"));
}

#[tokio::test]
async fn a_coupon_can_be_paused_and_resumed_and_closed_for_good() {
    let client = Client::admin();
    let issue = async |user: &str| client.post("/v1/coupons/w/issues", json!({ "user": user })).await;
    for switch in ["pause", "resume", "close"] {
        let path = format!("/v1/coupons/w/{switch}");
        client.post(&path, json!({})).await.expect_problem(404, "unknown-coupon");
    }
    client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    let switched = async |switch: &str, state: &str| {
        // A switch that stands so already stays so.
        for _ in 0..2 {
            let now = client.post(&format!("/v1/coupons/w/{switch}"), json!({})).await;
            assert_eq!((now.status.as_u16(), &now.body["state"]), (200, &json!(state)));
            client.get("/v1/coupons/w").await.expect(200, &now.body);
        }
    };
    assert_eq!(issue("a").await.status, 201);
    switched("pause", "paused").await;
    issue("b").await.expect_problem(403, "paused");
    assert_eq!(issue("a").await.status, 200, "who has one is told so");
    switched("resume", "open").await;
    assert_eq!(issue("b").await.status, 201);
    switched("close", "closed").await;
    issue("c").await.expect_problem(403, "closed");
    assert_eq!(issue("a").await.status, 200);
    for switch in ["pause", "resume"] {
        let refused = client.post(&format!("/v1/coupons/w/{switch}"), json!({})).await;
        refused.expect_problem(409, "closed-for-good");
    }
    // Other terms do not open it again.
    client.put("/v1/coupons/w", json!({ "quantity": 9 })).await;
    issue("c").await.expect_problem(403, "closed");
}

#[tokio::test]
async fn whether_a_user_has_one_can_be_asked_at_any_time() {
    let client = Client::admin();
    client.get("/v1/coupons/w/issues/a").await.expect_problem(404, "unknown-coupon");
    client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    client.get("/v1/coupons/w/issues/a").await.expect_problem(404, "not-issued");
    for user in ["b", "a"] {
        client.post("/v1/coupons/w/issues", json!({ "user": user })).await;
    }
    let has = json!({ "coupon": "w", "user": "a", "seq": 2 });
    client.get("/v1/coupons/w/issues/a").await.expect(200, &has);
    client.post("/v1/coupons/w/close", json!({})).await;
    client.get("/v1/coupons/w/issues/a").await.expect(200, &has);
    client.get("/v1/coupons/w/issues/c").await.expect_problem(404, "not-issued");
    assert_eq!(client.get("/v1/coupons/w").await.body["issued"], 2);
}

#[tokio::test]
async fn of_several_reasons_the_first_is_told() {
    let client = Client::admin();
    let issue = async |client: &Client| client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await;
    issue(&client).await.expect_problem(404, "unknown-coupon");
    client.put("/v1/coupons/w", json!({ "quantity": 0, "opens_at": IN_A_MINUTE, "line": "tour" })).await;
    client.post("/v1/coupons/w/pause", json!({})).await;
    issue(&client).await.expect_problem(403, "paused");
    client.post("/v1/coupons/w/resume", json!({})).await;
    issue(&client).await.expect_problem(403, "not-open");
    client.clock.advance(Duration::from_secs(60));
    issue(&client).await.expect_problem(403, "pass-required");
    let admitted = client.showing("a", "tour", 1);
    issue(&admitted).await.expect_problem(409, "sold-out");
    client.put("/v1/coupons/w", json!({ "quantity": 2, "line": "tour" })).await;
    assert_eq!(issue(&admitted).await.status, 201);
    // Without a pass, and closed: a replay goes before both.
    client.post("/v1/coupons/w/close", json!({})).await;
    assert_eq!(issue(&client).await.status, 200);
}

#[tokio::test]
async fn a_coupon_that_demands_a_pass_looks_at_it_closely() {
    let client = Client::admin();
    client.put("/v1/coupons/w", json!({ "quantity": 5, "line": "tour" })).await;
    let issue = async |client: &Client, user: &str| {
        client.post("/v1/coupons/w/issues", json!({ "user": user })).await
    };
    let foreign = Client::admin().showing("a", "tour", 1).header("Lockgate-Pass");
    for (wrong, why) in [
        (client.with("Lockgate-Pass", "nonsense"), "no pass"),
        (client.with("Lockgate-Pass", foreign), "signed by another"),
        (client.showing("b", "tour", 1), "another user's"),
        (client.showing("a", "other", 1), "of another line"),
    ] {
        let refused = issue(&wrong, "a").await;
        assert_eq!((refused.status.as_u16(), &refused.body["code"]), (403, &json!("pass-invalid")), "{why}");
    }
    let old = client.showing("a", "tour", 1);
    client.clock.advance(Duration::from_secs(61));
    issue(&old, "a").await.expect_problem(403, "pass-expired");

    // A hold uses the pass up as well; to confirm it none is needed.
    let good = client.showing("a", "tour", 2);
    let wish = json!({ "user": "a", "ttl_ms": 60_000 });
    let held = good.keyed("k").post("/v1/coupons/w/holds", wish).await.body["hold"].clone();
    let cancel = format!("/v1/holds/{}/cancel", held.as_str().unwrap());
    assert_eq!(client.post(&cancel, json!({ "user": "a" })).await.status, 200);
    issue(&good, "a").await.expect_problem(403, "pass-used");
    assert_eq!(issue(&client.showing("a", "tour", 3), "a").await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_gets_as_many_as_there_are_each_one_once() {
    let client = Client::admin();
    client.put("/v1/coupons/w", json!({ "quantity": 20 })).await;
    let asking = (0..150).map(|number| {
        let client = client.clone();
        let wish = json!({ "user": format!("user-{}", number % 50) });
        tokio::spawn(async move { client.post("/v1/coupons/w/issues", wish).await })
    });
    let (mut given, mut others) = (Vec::new(), Vec::new());
    for answer in asking.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        match answer.status.as_u16() {
            201 => given.push(answer.body["seq"].as_u64().unwrap()),
            status => others.push(status),
        }
    }
    given.sort_unstable();
    assert_eq!(given, (1..=20).collect::<Vec<_>>());
    assert!(others.iter().all(|status| [200, 409].contains(status)), "{others:?}");
    let stands: Value = client.get("/v1/coupons/w").await.body;
    assert_eq!((&stands["issued"], &stands["remaining"]), (&json!(20), &json!(0)));
}
