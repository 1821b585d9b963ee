//! `/healthz` and `/readyz`, and what callers see when the store does not answer.

use std::sync::Arc;

use lockgate::clock::Clock;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};
use serde_json::json;

use crate::client::Client;

fn breakable() -> (Arc<BreakableStore>, Client) {
    let clock = Clock::fake();
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(clock.clone()))));
    (Arc::clone(&store), Client::on(store, clock, None))
}

#[tokio::test]
async fn alive_and_ready_without_any_token() {
    let stranger = Client::admin_with_app_token().as_(None);
    stranger.get("/healthz").await.expect(200, &json!({ "status": "ok" }));
    let ready = stranger.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.body["status"]), (200, &json!("ready")));
    assert_eq!(ready.body["store"]["description"], "memory");
}

#[tokio::test]
async fn a_store_that_is_away_makes_the_server_not_ready_but_keeps_it_alive() {
    let (store, client) = breakable();
    store.break_all(Break::Refuse);
    assert_eq!(client.get("/healthz").await.status, 200);
    let answer = client.get("/readyz").await.expect_problem(503, "unavailable");
    assert_eq!(answer.body["reasons"], json!(["the store does not answer"]));
    store.heal();
    assert_eq!(client.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_call_that_did_not_happen_and_one_that_may_have_are_told_apart() {
    let (store, client) = breakable();
    client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;

    store.break_all(Break::Refuse);
    let refused = client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await;
    assert_eq!(refused.expect_problem(503, "unavailable").headers["retry-after"], "1");
    store.break_all(Break::Reject);
    let rejected = client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await;
    let rejected = rejected.expect_problem(500, "store-refused");
    assert!(!rejected.body.to_string().contains("broken on purpose"), "{}", rejected.body);
    store.break_all(Break::LoseAnswer);
    let unknown = client.post("/v1/coupons/w/issues", json!({ "user": "b" })).await;
    assert_eq!(unknown.expect_problem(503, "unknown-outcome").headers["retry-after"], "1");

    store.heal();
    assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": "a" })).await.status, 201);
    assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": "b" })).await.status, 200);
}
