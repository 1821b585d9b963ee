//! `/v1/deals` and their purchases: the calls and all their answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client};

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

/// A service with the deal `phones`.
async fn shop(stock: u64, per_user: u64) -> Client {
    let client = Client::admin();
    put(&client, json!({ "stock": stock, "per_user": per_user })).await;
    client
}

async fn put(client: &Client, terms: Value) -> Answer {
    client.put("/v1/deals/phones", terms).await
}

async fn buy(client: &Client, key: &str, user: &str, quantity: u64) -> Answer {
    let wish = json!({ "user": user, "quantity": quantity });
    client.keyed(key).post("/v1/deals/phones/purchases", wish).await
}

async fn hold(client: &Client, key: &str, user: &str, quantity: u64) -> Answer {
    let wish = json!({ "user": user, "quantity": quantity, "ttl_ms": 60_000 });
    client.keyed(key).post("/v1/deals/phones/holds", wish).await
}

/// stock, sold, held, remaining, state
async fn counts(client: &Client) -> Value {
    let body = client.get("/v1/deals/phones").await.body;
    json!([body["stock"], body["sold"], body["held"], body["remaining"], body["state"]])
}

#[tokio::test]
async fn putting_creates_then_replaces_every_field() {
    let client = Client::admin();
    let all = json!({
        "stock": 9, "per_user": 2, "opens_at": "2026-01-01T09:00:30+09:00", "closes_at": IN_A_MINUTE, "line": "tour",
    });
    let created = json!({
        "id": "phones", "stock": 9, "sold": 0, "held": 0, "remaining": 9, "state": "scheduled", "per_user": 2,
        "opens_at": "2026-01-01T00:00:30Z", "closes_at": IN_A_MINUTE, "line": "tour",
    });
    put(&client, all).await.expect(201, &created);
    client.get("/v1/deals/phones").await.expect(200, &created);

    let replaced = json!({
        "id": "phones", "stock": 5, "sold": 0, "held": 0, "remaining": 5, "state": "open", "per_user": 3,
    });
    put(&client, json!({ "stock": 5, "per_user": 3 })).await.expect(200, &replaced);
    client.get("/v1/deals/phones").await.expect(200, &replaced);
}

#[tokio::test]
async fn buying_says_what_was_bought_and_what_is_left() {
    let client = shop(9, 5).await;
    let first = json!({
        "deal": "phones", "user": "ann", "quantity": 2, "seq": 1, "purchased": 2, "remaining": 7,
    });
    buy(&client, "a", "ann", 2).await.expect(201, &first);
    let second = json!({
        "deal": "phones", "user": "ann", "quantity": 3, "seq": 2, "purchased": 5, "remaining": 4,
    });
    buy(&client, "b", "ann", 3).await.expect(201, &second);
    let other = json!({
        "deal": "phones", "user": "bob", "quantity": 1, "seq": 3, "purchased": 1, "remaining": 3,
    });
    buy(&client, "c", "bob", 1).await.expect(201, &other);
    assert_eq!(counts(&client).await, json!([9, 6, 0, 3, "open"]));
}

#[tokio::test]
async fn remaining_is_the_total_less_what_is_sold_and_held() {
    let client = shop(10, 10).await;
    buy(&client, "a", "ann", 3).await;
    let held = hold(&client, "b", "bob", 4).await;
    assert_eq!((held.status.as_u16(), &held.body["remaining"]), (201, &json!(3)));
    assert_eq!(counts(&client).await, json!([10, 3, 4, 3, "open"]));
    put(&client, json!({ "stock": 20, "per_user": 10 })).await;
    assert_eq!(counts(&client).await, json!([20, 3, 4, 13, "open"]), "the stock is a total, not an addition");
    put(&client, json!({ "stock": 7, "per_user": 10 })).await;
    assert_eq!(counts(&client).await, json!([7, 3, 4, 0, "sold-out"]));
}

#[tokio::test]
async fn a_stock_below_what_is_sold_and_held_is_refused_and_changes_nothing() {
    let client = shop(10, 10).await;
    buy(&client, "a", "ann", 3).await;
    hold(&client, "b", "bob", 4).await;
    let before = client.get("/v1/deals/phones").await.body;
    let less = json!({ "stock": 6, "per_user": 1, "closes_at": IN_A_MINUTE, "line": "tour" });
    let refused = put(&client, less).await.expect_problem(409, "below-issued");
    assert_eq!(refused.body["issued"], 7);
    client.get("/v1/deals/phones").await.expect(200, &before);
}

#[tokio::test]
async fn a_stock_of_nothing_is_sold_out_from_the_beginning() {
    let client = shop(0, 1).await;
    assert_eq!(counts(&client).await, json!([0, 0, 0, 0, "sold-out"]));
    buy(&client, "a", "ann", 1).await.expect_problem(409, "sold-out");
}

#[tokio::test]
async fn an_unknown_deal_is_404_everywhere_and_is_not_made_by_asking() {
    let client = Client::admin();
    buy(&client, "a", "ann", 1).await.expect_problem(404, "unknown-deal");
    hold(&client, "b", "ann", 1).await.expect_problem(404, "unknown-deal");
    for switch in ["pause", "resume", "close"] {
        let path = format!("/v1/deals/phones/{switch}");
        client.post(&path, json!({})).await.expect_problem(404, "unknown-deal");
    }
    client.get("/v1/deals/phones").await.expect_problem(404, "unknown-deal");
    // A coupon of that name is no deal.
    client.put("/v1/coupons/phones", json!({ "quantity": 1 })).await;
    client.get("/v1/deals/phones").await.expect_problem(404, "unknown-deal");
}

#[tokio::test]
async fn the_same_request_under_the_same_key_buys_once_and_is_answered_the_same() {
    let client = shop(9, 9).await;
    let mut bought = buy(&client, "a", "ann", 2).await.body;
    buy(&client, "b", "bob", 3).await;
    bought["replayed"] = json!(true);
    for _ in 0..2 {
        buy(&client, "a", "ann", 2).await.expect(200, &bought);
    }
    assert_eq!(counts(&client).await, json!([9, 5, 0, 4, "open"]));
}

#[tokio::test]
async fn a_replay_is_answered_whatever_has_become_of_the_deal() {
    let client = shop(2, 2).await;
    assert_eq!(buy(&client, "a", "ann", 2).await.status, 201);
    let replay = async || buy(&client, "a", "ann", 2).await.status.as_u16();
    buy(&client, "b", "bob", 1).await.expect_problem(409, "sold-out");
    assert_eq!(replay().await, 200);
    client.post("/v1/deals/phones/pause", json!({})).await;
    buy(&client, "b", "bob", 1).await.expect_problem(403, "paused");
    assert_eq!(replay().await, 200);
    put(&client, json!({ "stock": 9, "per_user": 1, "line": "tour" })).await;
    client.post("/v1/deals/phones/resume", json!({})).await;
    buy(&client, "b", "bob", 1).await.expect_problem(403, "pass-required");
    assert_eq!(replay().await, 200);
    client.post("/v1/deals/phones/close", json!({})).await;
    buy(&client, "b", "bob", 1).await.expect_problem(403, "closed");
    assert_eq!(replay().await, 200);
}

#[tokio::test]
async fn a_key_cannot_be_used_again_for_something_else() {
    let client = shop(9, 9).await;
    buy(&client, "a", "ann", 2).await;
    for (user, quantity) in [("ann", 1), ("ann", 3), ("bob", 2)] {
        buy(&client, "a", user, quantity).await.expect_problem(422, "idempotency-key-reused");
    }
    assert_eq!(counts(&client).await, json!([9, 2, 0, 7, "open"]));
    // It is a key of this deal's purchases: elsewhere it is another.
    assert_eq!(hold(&client, "a", "ann", 1).await.status, 201);
    client.put("/v1/deals/other", json!({ "stock": 1, "per_user": 1 })).await;
    let wish = json!({ "user": "ann", "quantity": 1 });
    assert_eq!(client.keyed("a").post("/v1/deals/other/purchases", wish).await.status, 201);
}

#[tokio::test]
async fn a_refusal_is_not_remembered_under_its_key() {
    let client = shop(1, 5).await;
    buy(&client, "a", "ann", 2).await.expect_problem(409, "sold-out");
    put(&client, json!({ "stock": 2, "per_user": 5 })).await;
    assert_eq!(buy(&client, "a", "ann", 2).await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_duplicates_at_once_are_one_purchase_and_get_the_same_answer() {
    let client = shop(100, 100).await;
    let asking = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { buy(&client, "a", "ann", 2).await })
    });
    let mut statuses = Vec::new();
    for answer in asking.collect::<Vec<_>>() {
        let mut answer = answer.await.unwrap();
        statuses.push(answer.status.as_u16());
        let replayed = answer.body.as_object_mut().unwrap().remove("replayed");
        assert_eq!(replayed.is_some(), answer.status == 200);
        let bought = json!({
            "deal": "phones", "user": "ann", "quantity": 2, "seq": 1, "purchased": 2, "remaining": 98,
        });
        assert_eq!(answer.body, bought);
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[48], statuses[49]), (200, 200, 201));
    assert_eq!(counts(&client).await, json!([100, 2, 0, 98, "open"]));
}

#[tokio::test]
async fn nobody_gets_more_than_one_user_may_have() {
    let client = shop(9, 3).await;
    buy(&client, "a", "ann", 4).await.expect_problem(409, "limit-exceeded");
    buy(&client, "b", "ann", 2).await;
    let refused = buy(&client, "c", "ann", 2).await.expect_problem(409, "limit-exceeded");
    assert_eq!((&refused.body["taken"], &refused.body["per_user"]), (&json!(2), &json!(3)));
    // What is held for somebody counts.
    assert_eq!(hold(&client, "d", "ann", 1).await.status, 201);
    buy(&client, "e", "ann", 1).await.expect_problem(409, "limit-exceeded");
    hold(&client, "f", "ann", 1).await.expect_problem(409, "limit-exceeded");
    assert_eq!(buy(&client, "g", "bob", 3).await.status, 201);
    assert_eq!(counts(&client).await, json!([9, 5, 1, 3, "open"]));
}

#[tokio::test]
async fn who_asks_for_more_than_is_left_gets_nothing() {
    let client = shop(3, 9).await;
    let refused = buy(&client, "a", "ann", 4).await.expect_problem(409, "sold-out");
    assert_eq!(refused.body["remaining"], 3);
    assert_eq!(counts(&client).await, json!([3, 0, 0, 3, "open"]));
    assert_eq!(buy(&client, "b", "ann", 3).await.status, 201);
    buy(&client, "c", "ann", 1).await.expect_problem(409, "sold-out");
    assert_eq!(counts(&client).await, json!([3, 3, 0, 0, "sold-out"]));
}

#[tokio::test]
async fn of_several_reasons_the_first_is_told() {
    let client = Client::admin();
    // Unknown goes before everything; then state, pass, limit and stock, all of which forbid it.
    buy(&client, "a", "ann", 5).await.expect_problem(404, "unknown-deal");
    let terms = json!({ "stock": 3, "per_user": 2, "opens_at": IN_A_MINUTE, "line": "tour" });
    put(&client, terms).await;
    client.post("/v1/deals/phones/pause", json!({})).await;
    buy(&client, "a", "ann", 5).await.expect_problem(403, "paused");
    client.post("/v1/deals/phones/resume", json!({})).await;
    buy(&client, "a", "ann", 5).await.expect_problem(403, "not-open");
    client.clock.advance(Duration::from_secs(60));
    buy(&client, "a", "ann", 5).await.expect_problem(403, "pass-required");
    let admitted = client.showing("ann", "tour", 1);
    buy(&admitted, "a", "ann", 5).await.expect_problem(409, "limit-exceeded");
    put(&client, json!({ "stock": 3, "per_user": 5, "line": "tour" })).await;
    buy(&admitted, "a", "ann", 5).await.expect_problem(409, "sold-out");
    assert_eq!(buy(&admitted, "a", "ann", 3).await.status, 201);
    // The pass is used now, and a replay needs none; but it goes before a wrong use of the key.
    assert_eq!(buy(&client, "a", "ann", 3).await.status, 200);
    buy(&client, "a", "ann", 2).await.expect_problem(422, "idempotency-key-reused");
}

#[tokio::test]
async fn outside_its_window_nothing_is_sold() {
    let client = Client::admin();
    let window =
        json!({ "stock": 9, "per_user": 9, "opens_at": IN_A_MINUTE, "closes_at": "2026-01-01T00:02:00Z" });
    put(&client, window).await;
    assert_eq!(counts(&client).await[4], "scheduled");
    for early in [buy(&client, "a", "ann", 1).await, hold(&client, "b", "ann", 1).await] {
        assert_eq!(early.expect_problem(403, "not-open").body["opens_at"], IN_A_MINUTE);
    }
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(counts(&client).await[4], "open");
    assert_eq!(buy(&client, "a", "ann", 1).await.status, 201);
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(counts(&client).await[4], "closed");
    buy(&client, "c", "ann", 1).await.expect_problem(403, "closed");
    hold(&client, "d", "ann", 1).await.expect_problem(403, "closed");
    assert_eq!(buy(&client, "a", "ann", 1).await.status, 200);
}

#[tokio::test]
async fn a_deal_can_be_paused_and_resumed_and_closed_for_good() {
    let client = shop(9, 9).await;
    let switched = async |switch: &str, state: &str| {
        // A switch that stands so already stays so.
        for _ in 0..2 {
            let now = client.post(&format!("/v1/deals/phones/{switch}"), json!({})).await;
            assert_eq!((now.status.as_u16(), &now.body["state"]), (200, &json!(state)));
            client.get("/v1/deals/phones").await.expect(200, &now.body);
        }
    };
    switched("pause", "paused").await;
    buy(&client, "a", "ann", 1).await.expect_problem(403, "paused");
    hold(&client, "b", "ann", 1).await.expect_problem(403, "paused");
    switched("resume", "open").await;
    assert_eq!(buy(&client, "a", "ann", 1).await.status, 201);
    switched("close", "closed").await;
    buy(&client, "c", "ann", 1).await.expect_problem(403, "closed");
    for switch in ["pause", "resume"] {
        let refused = client.post(&format!("/v1/deals/phones/{switch}"), json!({})).await;
        refused.expect_problem(409, "closed-for-good");
    }
    assert_eq!(counts(&client).await, json!([9, 1, 0, 8, "closed"]));
}

#[tokio::test]
async fn a_deal_that_demands_a_pass_looks_at_it_closely() {
    let client = Client::admin();
    put(&client, json!({ "stock": 9, "per_user": 9, "line": "tour" })).await;
    buy(&client, "a", "ann", 1).await.expect_problem(403, "pass-required");
    hold(&client, "b", "ann", 1).await.expect_problem(403, "pass-required");
    let stranger = Client::admin();
    let foreign = stranger.showing("ann", "tour", 1);
    for (wrong, why) in [
        (client.with("Lockgate-Pass", "nonsense"), "no pass"),
        (client.with("Lockgate-Pass", ""), "nothing"),
        (client.with("Lockgate-Pass", "ü"), "not even text"),
        (client.with("Lockgate-Pass", foreign.header("Lockgate-Pass")), "signed by another"),
        (client.showing("bob", "tour", 1), "another user's"),
        (client.showing("ann", "other", 1), "of another line"),
    ] {
        let bought = buy(&wrong, "a", "ann", 1).await;
        assert_eq!((bought.status.as_u16(), &bought.body["code"]), (403, &json!("pass-invalid")), "{why}");
        hold(&wrong, "b", "ann", 1).await.expect_problem(403, "pass-invalid");
    }

    let old = client.showing("ann", "tour", 2);
    client.clock.advance(Duration::from_secs(61));
    buy(&old, "a", "ann", 1).await.expect_problem(403, "pass-expired");
    hold(&old, "b", "ann", 1).await.expect_problem(403, "pass-expired");

    let good = client.showing("ann", "tour", 3);
    // Only a grant uses a pass up.
    buy(&good, "a", "ann", 10).await.expect_problem(409, "limit-exceeded");
    assert_eq!(buy(&good, "a", "ann", 1).await.status, 201);
    buy(&good, "c", "ann", 1).await.expect_problem(403, "pass-used");
    hold(&good, "b", "ann", 1).await.expect_problem(403, "pass-used");
    assert_eq!(hold(&client.showing("ann", "tour", 4), "b", "ann", 1).await.status, 201);
    assert_eq!(counts(&client).await, json!([9, 1, 1, 7, "open"]));
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    let client = Client::admin();
    for (terms, field) in [
        (json!({ "stock": 9_007_199_254_740_992_u64, "per_user": 1 }), "stock"),
        (json!({ "stock": -1, "per_user": 1 }), "stock"),
        (json!({ "stock": 1.0, "per_user": 1 }), "stock"),
        (json!({ "stock": 1, "per_user": 0 }), "per_user"),
        (json!({ "stock": 1, "per_user": 9_007_199_254_740_992_u64 }), "per_user"),
        (json!({ "stock": 1, "per_user": -1 }), "per_user"),
        (json!({ "stock": 1, "per_user": 1, "line": "" }), "line"),
        (json!({ "stock": 1, "per_user": 1, "opens_at": "2026-01-01" }), "opens_at"),
    ] {
        put(&client, terms).await.expect_invalid(field);
    }
    client.get("/v1/deals/phones").await.expect_problem(404, "unknown-deal");

    let most = 9_007_199_254_740_991_u64;
    assert_eq!(put(&client, json!({ "stock": most, "per_user": most })).await.status, 201);
    for quantity in [json!(0), json!(-1), json!(0.5), json!(1e300), json!(most + 1), json!(u64::MAX)] {
        let wish = json!({ "user": "ann", "quantity": quantity });
        let refused = client.keyed("a").post("/v1/deals/phones/purchases", wish).await;
        refused.expect_invalid("quantity");
    }
    assert_eq!(buy(&client, "a", "ann", most).await.body["remaining"], 0);
}
