//! `/v1/overview`: all at once, for the dashboard.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};
use lockgate_server::{Service, Tokens, app};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::client::Client;

#[tokio::test]
async fn everything_is_told_at_once() {
    let client = Client::admin();
    client.put("/v1/coupons/c", json!({ "quantity": 1 })).await;
    client.put("/v1/deals/d", json!({ "stock": 5, "per_user": 2 })).await;
    client.put("/v1/skus/s", json!({ "stock": 7, "group": "g" })).await;
    client.put("/v1/lines/l", json!({ "batch": 1, "every_ms": 1000 })).await;
    client.post("/v1/locks/k", json!({ "owner": "me", "wait_ms": 0, "lease_ms": 60_000 })).await;
    for user in ["a", "b", "c"] {
        client.post("/v1/coupons/c/issues", json!({ "user": user })).await;
    }
    let seen = client.get("/v1/overview").await;
    assert_eq!(seen.status, 200);
    for (kind, id) in [("coupons", "c"), ("deals", "d"), ("skus", "s"), ("lines", "l")] {
        let (all, one) = (
            &seen.body[kind],
            client.get(&format!("/v1/{kind}/{id}{}", if id == "s" { "?group=g" } else { "" })).await.body,
        );
        assert_eq!(all, &json!([one]), "{kind}");
    }
    assert_eq!((&seen.body["locks"][0]["key"], &seen.body["locks"][0]["owner"]), (&json!("k"), &json!("me")));
    assert_eq!(
        (&seen.body["locks"][0]["held"], &seen.body["locks"][0]["waiting"]),
        (&json!(true), &json!(0))
    );
    let refused = json!([{ "what": "coupon", "id": "c", "code": "sold-out", "count": 2 }]);
    assert_eq!(seen.body["rejections"], refused);
    assert_eq!(seen.body["more"], json!({ "coupons": 0, "deals": 0, "skus": 0, "lines": 0 }));
    assert!(!seen.body.to_string().contains("token"), "{}", seen.body);
}

#[tokio::test]
async fn what_is_not_told_is_counted() {
    let client = Client::admin();
    for id in 0..103 {
        client.put(&format!("/v1/coupons/c{id}"), json!({ "quantity": 1 })).await;
    }
    let seen = client.get("/v1/overview").await.body;
    assert_eq!((seen["coupons"].as_array().unwrap().len(), &seen["more"]["coupons"]), (100, &json!(3)));
}

#[tokio::test]
async fn admin_calls_are_written_down_however_they_end_and_others_are_not() {
    let client = Client::admin();
    client.put("/v1/coupons/c", json!({ "quantity": 1 })).await;
    client.as_(Some("Bearer wrong")).post("/v1/coupons/c/pause", json!({})).await;
    client.post("/v1/coupons/c/issues", json!({ "user": "a" })).await;
    client.get("/v1/coupons/c").await;
    let actions = client.get("/v1/overview").await.body["actions"].take();
    let told = |action: &Value| json!([action["action"], action["target"], action["outcome"]]);
    let told: Vec<_> = actions.as_array().unwrap().iter().map(told).collect();
    let expected = [
        json!(["pause-coupon", "/v1/coupons/c/pause", "unauthorized"]),
        json!(["put-coupon", "/v1/coupons/c", "done"]),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn whoever_has_no_token_cannot_crowd_out_what_admins_did() {
    let client = Client::admin();
    client.put("/v1/coupons/c", json!({ "quantity": 1 })).await;
    for _ in 0..500 {
        client.as_(None).post("/v1/locks/k/break", json!({})).await;
    }
    let actions = client.get("/v1/overview").await.body["actions"].take();
    let actions = actions.as_array().unwrap();
    assert_eq!((actions.len(), &actions.last().unwrap()["action"]), (61, &json!("put-coupon")));
}

#[tokio::test]
async fn an_admin_call_that_is_refused_at_the_door_is_written_down_as_that() {
    let clock = Clock::fake();
    let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
    let mut service = Service::new(Gate::on(Arc::new(MemoryStore::new(clock.clone()))), tokens);
    service.edge.clock = clock.clone();
    service.edge.rate_per_address = Some("1/s".parse().unwrap());
    let client = Client::of(service, clock.clone());
    for expected in [201, 200, 429] {
        assert_eq!(client.put("/v1/coupons/c", json!({ "quantity": 1 })).await.status, expected);
    }
    clock.advance(Duration::from_secs(10));
    let actions = client.get("/v1/overview").await.body["actions"].take();
    let outcomes: Vec<_> = actions.as_array().unwrap().iter().map(|action| &action["outcome"]).collect();
    assert_eq!(outcomes, ["rate-limited", "done", "done"]);
}

/// A caller that closes the connection drops the call, wherever it is.
#[tokio::test]
async fn an_admin_call_is_written_down_although_its_caller_has_gone_away() {
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
    let service = Service::new(Gate::on(Arc::clone(&store) as Arc<dyn Store>), tokens);
    let client = Client::of(service, Clock::system());
    store.break_all(Break::Hang);
    let call = client.post("/v1/locks/k/break", json!({}));
    assert!(timeout(Duration::from_millis(50), call).await.is_err(), "it is under way");
    store.heal();
    let actions = client.get("/v1/overview").await.body["actions"].take();
    assert_eq!((&actions[0]["action"], &actions[0]["outcome"]), (&json!("break-lock"), &json!("gone")));
}

#[tokio::test]
async fn refusals_are_counted_of_whatever_can_be_refused_and_not_of_what_is_not_there() {
    let client = Client::admin();
    client.put("/v1/deals/d", json!({ "stock": 1, "per_user": 9 })).await;
    client.put("/v1/skus/s", json!({ "stock": 1 })).await;
    let wish = |quantity: u64| json!({ "user": "a", "quantity": quantity, "ttl_ms": 1000 });
    client.keyed("1").post("/v1/deals/d/holds", wish(2)).await;
    client.keyed("2").post("/v1/deals/d/purchases", json!({ "user": "a", "quantity": 3 })).await;
    let items = json!([{ "sku": "s", "quantity": 2 }]);
    client.keyed("3").post("/v1/orders", json!({ "user": "a", "items": items })).await;
    for path in ["/v1/coupons/nothing/issues", "/v1/coupons/invented/issues"] {
        assert_eq!(client.post(path, json!({ "user": "a" })).await.status, 404);
    }
    let refused = json!([
        { "what": "article", "id": "s", "code": "insufficient-stock", "count": 1 },
        { "what": "deal", "id": "d", "code": "sold-out", "count": 2 },
    ]);
    assert_eq!(client.get("/v1/overview").await.body["rejections"], refused);
}

/// Reads one event of a stream: its name and its data.
async fn event(body: &mut Body) -> (String, Value) {
    let frame = timeout(Duration::from_secs(10), body.frame()).await.unwrap().unwrap().unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    let line = |field: &str| {
        text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default().trim().to_owned()
    };
    (line("event:"), serde_json::from_str(&line("data:")).unwrap_or(Value::Null))
}

#[tokio::test]
async fn who_watches_is_told_once_a_second_and_all_together() {
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
    let service = Service::new(Gate::on(Arc::clone(&store) as Arc<dyn Store>), tokens);
    let closing = service.closing.clone();
    let router = app(service);
    let open = async || {
        let request = Request::builder().uri("/v1/overview/events").body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response.into_body()
    };
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(open().await);
    }
    for stream in &mut streams {
        let (name, data) = event(stream).await;
        assert_eq!((&*name, &data["coupons"]), ("overview", &json!([])));
    }
    let before = store.calls();
    for stream in &mut streams {
        assert_eq!(event(stream).await.0, "overview");
    }
    // Of one look: the store itself, three kinds of campaigns, the lines.
    let calls = store.calls() - before;
    assert!(calls <= 3 * 5, "{calls} calls for fifty who watch");

    store.break_all(Break::Refuse);
    while event(&mut streams[0]).await.0 != "away" {}
    store.heal();
    while event(&mut streams[0]).await.0 != "overview" {}

    closing.cancel();
    let ended = async { while streams[0].frame().await.is_some() {} };
    timeout(Duration::from_secs(5), ended).await.unwrap();
    drop(streams);
}

/// Time stands still here but for the tests' own waiting.
#[tokio::test(start_paused = true)]
async fn when_nobody_watches_nobody_looks() {
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(Clock::system()))));
    let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
    let router = app(Service::new(Gate::on(Arc::clone(&store) as Arc<dyn Store>), tokens));
    let request = || Request::builder().uri("/v1/overview/events").body(Body::empty()).unwrap();
    let mut stream = router.clone().oneshot(request()).await.unwrap().into_body();
    event(&mut stream).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let before = store.calls();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(store.calls(), before);
    // And somebody who comes later is told again.
    let mut stream = router.oneshot(request()).await.unwrap().into_body();
    assert_eq!(event(&mut stream).await.0, "overview");
}
