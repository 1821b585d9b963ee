//! Two servers on one Redis: what one has done the other knows, and to whom one answers makes no difference.
//!
//! The Redis is started once; each test has names of its own.

use std::sync::OnceLock;
use std::time::Duration;

use lockgate::config::Config;
use lockgate::testing::services::{Persistence, Redis};
use serde_json::{Value, json};

use crate::client::{Answer, Client};

static REDIS: OnceLock<Redis> = OnceLock::new();

async fn two_servers() -> (Client, Client) {
    let url = REDIS.get_or_init(|| Redis::start(Persistence::Off).unwrap()).url();
    let config = Config::default();
    (Client::on_redis(&url, &config).await, Client::on_redis(&url, &config).await)
}

async fn take(server: &Client, key: &str, owner: &str, wait_ms: u64) -> Answer {
    let wish = json!({ "owner": owner, "wait_ms": wait_ms, "lease_ms": 60_000 });
    server.post(&format!("/v1/locks/{key}"), wish).await
}

async fn release(server: &Client, key: &str, token: &Value) -> Answer {
    server.with("Lockgate-Token", token.as_str().unwrap()).delete(&format!("/v1/locks/{key}")).await
}

async fn until_waiting(server: &Client, key: &str, number: u64) {
    let looking = async {
        while server.get(&format!("/v1/locks/{key}")).await.body["waiting"] != number {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purchase_under_one_key_through_both_servers_is_one_purchase() {
    let (one, other) = two_servers().await;
    assert_eq!(one.put("/v1/deals/twice", json!({ "stock": 100, "per_user": 100 })).await.status, 201);
    assert_eq!(other.put("/v1/deals/twice", json!({ "stock": 100, "per_user": 50 })).await.status, 200);
    let asking = (0..50).map(|number| {
        let server = if number % 2 == 0 { one.clone() } else { other.clone() };
        let wish = json!({ "user": "ann", "quantity": 2 });
        tokio::spawn(async move { server.keyed("a").post("/v1/deals/twice/purchases", wish).await })
    });
    let (mut statuses, mut bodies) = (Vec::new(), Vec::new());
    for answer in asking.collect::<Vec<_>>() {
        let mut answer = answer.await.unwrap();
        answer.body.as_object_mut().unwrap().remove("replayed");
        statuses.push(answer.status.as_u16());
        bodies.push(answer.body);
    }
    statuses.sort_unstable();
    bodies.dedup();
    assert_eq!((statuses[0], statuses[48], statuses[49]), (200, 200, 201));
    let bought =
        json!({ "deal": "twice", "user": "ann", "quantity": 2, "seq": 1, "purchased": 2, "remaining": 98 });
    assert_eq!(bodies, [bought]);
    let wish = json!({ "user": "ann", "quantity": 3 });
    let reused = other.keyed("a").post("/v1/deals/twice/purchases", wish).await;
    reused.expect_problem(422, "idempotency-key-reused");
    let too_many = json!({ "user": "ann", "quantity": 49 });
    let refused = one.keyed("b").post("/v1/deals/twice/purchases", too_many).await;
    refused.expect_problem(409, "limit-exceeded");
    other.post("/v1/deals/twice/close", json!({})).await;
    let replay = json!({ "user": "ann", "quantity": 2 });
    assert_eq!(one.keyed("a").post("/v1/deals/twice/purchases", replay.clone()).await.status, 200);
    one.keyed("c").post("/v1/deals/twice/purchases", replay).await.expect_problem(403, "closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coupon_is_issued_once_whichever_server_is_asked() {
    let (one, other) = two_servers().await;
    one.put("/v1/coupons/both", json!({ "quantity": 1 })).await;
    let wish = json!({ "user": "ann" });
    assert_eq!(one.post("/v1/coupons/both/issues", wish.clone()).await.status, 201);
    let again = other.post("/v1/coupons/both/issues", wish).await;
    assert_eq!((again.status.as_u16(), &again.body["seq"]), (200, &json!(1)));
    let late = other.post("/v1/coupons/both/issues", json!({ "user": "bob" })).await;
    late.expect_problem(409, "sold-out");
    assert_eq!(other.get("/v1/coupons/both/issues/ann").await.body["seq"], 1);
    one.put("/v1/coupons/both", json!({ "quantity": 0 })).await.expect_problem(409, "below-issued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_of_one_server_is_the_same_owners_at_the_other() {
    let (one, other) = two_servers().await;
    let taken = take(&one, "door", "ann", 0).await;
    assert_eq!(taken.status, 200);
    let (token, fence) = (&taken.body["token"], &taken.body["fence"]);
    let again = take(&other, "door", "ann", 0).await;
    let expected = json!({ "token": token, "fence": fence, "lease_ms": 60_000, "replayed": true });
    again.expect(200, &expected);
    let refused = take(&other, "door", "bob", 0).await.expect_problem(423, "locked");
    assert!((1..=60_000).contains(&refused.body["retry_after_ms"].as_u64().unwrap()), "{}", refused.body);

    let renewal = json!({ "token": token, "lease_ms": 86_400_000 });
    other.post("/v1/locks/door/renew", renewal).await.expect(200, &json!({ "lease_ms": 86_400_000 }));
    assert!(one.get("/v1/locks/door").await.body["lease_left_ms"].as_u64().unwrap() > 60_000);
    assert_eq!(release(&other, "door", token).await.status, 204);
    let next = take(&one, "door", "bob", 0).await;
    assert_eq!(next.status, 200);
    assert!(next.body["fence"].as_u64() > fence.as_u64());
    let stale = json!({ "token": token, "lease_ms": 60_000 });
    one.post("/v1/locks/door/renew", stale).await.expect_problem(409, "not-held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_one_server_is_given_the_lock_that_is_released_at_the_other() {
    let (one, other) = two_servers().await;
    let mut holder = take(&one, "gate", "ann", 0).await;
    let mut queue = Vec::new();
    for (place, owner) in ["bob", "carl", "dora"].into_iter().enumerate() {
        let server = if place % 2 == 0 { other.clone() } else { one.clone() };
        queue.push(tokio::spawn(async move { take(&server, "gate", owner, 30_000).await }));
        until_waiting(&one, "gate", place as u64 + 1).await;
    }
    for next in queue {
        assert!(!next.is_finished(), "first come, first served");
        assert_eq!(release(&one, "gate", &holder.body["token"]).await.status, 204);
        let given = next.await.unwrap();
        assert_eq!(given.status, 200, "{}", given.body);
        assert!(given.body["fence"].as_u64() > holder.body["fence"].as_u64());
        assert_eq!(other.get("/v1/locks/gate").await.body["fence"], given.body["fence"]);
        holder = given;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_placed_at_one_server_is_settled_at_the_other() {
    let (one, other) = two_servers().await;
    one.put("/v1/deals/held", json!({ "stock": 10, "per_user": 5 })).await;
    let place = async |server: &Client, key: &str| {
        let wish = json!({ "user": "ann", "quantity": 2, "ttl_ms": 60_000 });
        let placed = server.keyed(key).post("/v1/deals/held/holds", wish).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
        placed.body["hold"].as_str().unwrap().to_owned()
    };
    let settle = async |server: &Client, hold: &str, how: &str| {
        server.post(&format!("/v1/holds/{hold}/{how}"), json!({ "user": "ann" })).await
    };
    let (kept, dropped) = (place(&one, "a").await, place(&one, "b").await);
    assert_eq!(place(&other, "a").await, kept, "the same key, the same hold");
    let confirmed = json!({ "hold": kept, "state": "confirmed", "seq": 1 });
    settle(&other, &kept, "confirm").await.expect(200, &confirmed);
    settle(&one, &kept, "confirm").await.expect(200, &confirmed);
    settle(&one, &kept, "cancel").await.expect_problem(409, "hold-resolved");
    assert_eq!(settle(&other, &dropped, "cancel").await.status, 200);
    settle(&one, &dropped, "confirm").await.expect_problem(409, "hold-resolved");
    let bobs = other.post(&format!("/v1/holds/{kept}/confirm"), json!({ "user": "bob" })).await;
    bobs.expect_problem(404, "unknown-hold");
    let now = one.get("/v1/deals/held").await.body;
    assert_eq!(json!([now["sold"], now["held"], now["remaining"]]), json!([2, 0, 8]));

    // By Redis's own clock.
    let brief = json!({ "user": "bob", "ttl_ms": 1 });
    let placed = one.keyed("c").post("/v1/deals/held/holds", brief).await;
    let path = format!("/v1/holds/{}", placed.body["hold"].as_str().unwrap());
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(other.get(&path).await.body["state"], "expired");
    let late = other.post(&format!("{path}/confirm"), json!({ "user": "bob" })).await;
    late.expect_problem(410, "hold-expired");
    assert_eq!(other.post(&format!("{path}/cancel"), json!({ "user": "bob" })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_of_one_server_is_known_to_the_other() {
    let (one, other) = two_servers().await;
    for sku in ["cup", "tee"] {
        one.put(&format!("/v1/skus/{sku}"), json!({ "stock": 3 })).await;
    }
    let wish = |cups: u64| json!({ "user": "ann", "items": [{ "sku": "tee", "quantity": 1 }, { "sku": "cup", "quantity": cups }] });
    let mut placed = one.keyed("a").post("/v1/orders", wish(2)).await;
    assert_eq!(placed.status, 201);
    let path = format!("/v1/orders/{}", placed.body["order"].as_str().unwrap());
    other.get(&path).await.expect(200, &placed.body);
    placed.body["replayed"] = json!(true);
    other.keyed("a").post("/v1/orders", wish(2)).await.expect(200, &placed.body);
    other.keyed("a").post("/v1/orders", wish(1)).await.expect_problem(422, "idempotency-key-reused");
    let refused = other.keyed("b").post("/v1/orders", wish(2)).await;
    let short = json!([{ "sku": "cup", "requested": 2, "available": 1 }]);
    assert_eq!(refused.expect_problem(409, "insufficient-stock").body["short"], short);
    assert_eq!(one.get("/v1/skus/tee").await.body["remaining"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_another_redis_than_before_nothing_is_given_until_it_is_known_what_is_missing() {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    // Longer than the test.
    let mut config = Config::default();
    config.recovery_grace = Duration::from_secs(3600);
    let server = Client::on_redis(&redis.url(), &config).await;
    server.put("/v1/coupons/c", json!({ "quantity": 5 })).await;
    server.put("/v1/deals/d", json!({ "stock": 5, "per_user": 5 })).await;
    server.put("/v1/skus/s", json!({ "stock": 5 })).await;
    let wish = json!({ "user": "ann", "quantity": 1, "ttl_ms": 60_000 });
    let held = server.keyed("a").post("/v1/deals/d/holds", wish.clone()).await;
    assert_eq!(held.status, 201, "{}", held.body);
    redis.restart().unwrap();

    let hold = held.body["hold"].as_str().unwrap();
    let (ann, one) = (json!({ "user": "ann" }), json!({ "user": "ann", "quantity": 1 }));
    let order = json!({ "user": "ann", "items": [{ "sku": "s", "quantity": 1 }] });
    for (path, body) in [
        ("/v1/coupons/c/issues", &ann),
        ("/v1/coupons/c/holds", &wish),
        ("/v1/deals/d/purchases", &one),
        ("/v1/deals/d/holds", &wish),
        (&format!("/v1/holds/{hold}/confirm"), &ann),
        (&format!("/v1/holds/{hold}/cancel"), &ann),
        ("/v1/orders", &order),
        ("/v1/deals/d/pause", &json!({})),
    ] {
        let refused = answer_of_the_new_one(&server.keyed("b"), path, body).await;
        let refused = refused.expect_problem(503, "recovering");
        assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0, "{path}");
    }
    server.put("/v1/deals/d", json!({ "stock": 9, "per_user": 5 })).await.expect_problem(503, "recovering");
    for path in ["/v1/coupons/c", "/v1/deals/d", "/v1/skus/s"] {
        let stands = server.get(path).await;
        assert_eq!((stands.status.as_u16(), &stands.body["state"]), (200, &json!("recovering")), "{path}");
    }
}

/// Connections to the old one end first.
async fn answer_of_the_new_one(server: &Client, path: &str, body: &Value) -> Answer {
    let asking = async {
        loop {
            let answer = server.post(path, body.clone()).await;
            if answer.body["code"] != "unavailable" && answer.body["code"] != "unknown-outcome" {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap()
}
