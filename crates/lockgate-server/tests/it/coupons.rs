//! `/v1/coupons`: the calls and all their answers.

use std::time::Duration;

use serde_json::json;

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
