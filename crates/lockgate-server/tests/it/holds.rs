//! Holds of deals and coupons: put aside, then confirmed, cancelled or over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client};

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A service with the deal `phones` (10, 5 each) and the coupon `welcome` (2).
async fn shop() -> Client {
    let client = Client::admin();
    client.put("/v1/deals/phones", json!({ "stock": 10, "per_user": 5 })).await;
    client.put("/v1/coupons/welcome", json!({ "quantity": 2 })).await;
    client
}

async fn place(client: &Client, of: &str, key: &str, wish: Value) -> Answer {
    client.keyed(key).post(&format!("/v1/{of}/holds"), wish).await
}

/// The id of a hold of so many phones for ann, for a minute.
async fn held(client: &Client, quantity: u64) -> String {
    let wish = json!({ "user": "ann", "quantity": quantity, "ttl_ms": 60_000 });
    let answer = place(client, "deals/phones", "key", wish).await;
    answer.body["hold"].as_str().unwrap().to_owned()
}

async fn settle(client: &Client, hold: &str, how: &str, user: &str) -> Answer {
    client.post(&format!("/v1/holds/{hold}/{how}"), json!({ "user": user })).await
}

async fn state(client: &Client, hold: &str) -> Value {
    client.get(&format!("/v1/holds/{hold}")).await.body["state"].clone()
}

/// sold, held, remaining
async fn counts(client: &Client) -> Value {
    let body = client.get("/v1/deals/phones").await.body;
    json!([body["sold"], body["held"], body["remaining"]])
}

#[tokio::test]
async fn a_hold_of_a_deal_says_how_many_and_until_when() {
    let client = shop().await;
    let wish = json!({ "user": "ann", "quantity": 3, "ttl_ms": 60_000 });
    let mut placed = place(&client, "deals/phones", "a", wish).await;
    assert_eq!(placed.status, 201);
    let hold = placed.body["hold"].as_str().unwrap().to_owned();
    let expected = json!({
        "hold": hold, "user": "ann", "quantity": 3, "state": "held", "expires_at": IN_A_MINUTE, "remaining": 7,
    });
    assert_eq!(placed.body, expected);
    placed.body.as_object_mut().unwrap().remove("remaining");
    client.get(&format!("/v1/holds/{hold}")).await.expect(200, &placed.body);
    assert_eq!(counts(&client).await, json!([0, 3, 7]));
}

#[tokio::test]
async fn a_hold_is_of_one_unless_more_are_asked_for() {
    let client = shop().await;
    let one = place(&client, "deals/phones", "a", json!({ "user": "ann", "ttl_ms": 1 })).await;
    assert_eq!((one.status.as_u16(), &one.body["quantity"]), (201, &json!(1)));
    let one = place(&client, "coupons/welcome", "a", json!({ "user": "ann", "ttl_ms": 1 })).await;
    assert_eq!((one.status.as_u16(), &one.body["quantity"]), (201, &json!(1)));
    let said = json!({ "user": "bob", "quantity": 1, "ttl_ms": 86_400_000 });
    assert_eq!(place(&client, "coupons/welcome", "b", said).await.status, 201);
}

#[tokio::test]
async fn a_confirmed_hold_is_a_grant_and_stays_one() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    let confirmed = json!({ "hold": hold, "state": "confirmed", "seq": 1 });
    settle(&client, &hold, "confirm", "ann").await.expect(200, &confirmed);
    assert_eq!(counts(&client).await, json!([3, 0, 7]));
    settle(&client, &hold, "confirm", "ann").await.expect(200, &confirmed);
    settle(&client, &hold, "cancel", "ann").await.expect_problem(409, "hold-resolved");
    client.clock.advance(Duration::from_secs(120));
    settle(&client, &hold, "confirm", "ann").await.expect(200, &confirmed);
    settle(&client, &hold, "cancel", "ann").await.expect_problem(409, "hold-resolved");
    assert_eq!(counts(&client).await, json!([3, 0, 7]));
    let now = client.get(&format!("/v1/holds/{hold}")).await.body;
    assert_eq!((&now["state"], &now["seq"]), (&json!("confirmed"), &json!(1)));
}

#[tokio::test]
async fn a_cancelled_hold_is_back_on_the_shelf_and_stays_there() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    let cancelled = json!({ "hold": hold, "state": "cancelled" });
    settle(&client, &hold, "cancel", "ann").await.expect(200, &cancelled);
    assert_eq!(counts(&client).await, json!([0, 0, 10]));
    settle(&client, &hold, "cancel", "ann").await.expect(200, &cancelled);
    settle(&client, &hold, "confirm", "ann").await.expect_problem(409, "hold-resolved");
    client.clock.advance(Duration::from_secs(120));
    settle(&client, &hold, "cancel", "ann").await.expect(200, &cancelled);
    settle(&client, &hold, "confirm", "ann").await.expect_problem(409, "hold-resolved");
    assert_eq!(state(&client, &hold).await, "cancelled");
    assert_eq!(counts(&client).await, json!([0, 0, 10]));
}

#[tokio::test]
async fn a_hold_that_nobody_settles_is_over_at_its_time_and_not_before() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    client.clock.advance(Duration::from_millis(59_999));
    assert_eq!((state(&client, &hold).await, counts(&client).await), (json!("held"), json!([0, 3, 7])));
    client.clock.advance(Duration::from_millis(1));
    assert_eq!((state(&client, &hold).await, counts(&client).await), (json!("expired"), json!([0, 0, 10])));
    for _ in 0..2 {
        settle(&client, &hold, "confirm", "ann").await.expect_problem(410, "hold-expired");
        let over = json!({ "hold": hold, "state": "expired" });
        settle(&client, &hold, "cancel", "ann").await.expect(200, &over);
    }
    assert_eq!(counts(&client).await, json!([0, 0, 10]));
}

#[tokio::test]
async fn what_was_held_can_be_had_again_when_the_hold_is_over() {
    let client = shop().await;
    for (key, user) in [("a", "ann"), ("b", "bob")] {
        let wish = json!({ "user": user, "ttl_ms": 60_000 });
        assert_eq!(place(&client, "coupons/welcome", key, wish).await.status, 201);
    }
    let carl = json!({ "user": "carl", "ttl_ms": 60_000 });
    place(&client, "coupons/welcome", "c", carl.clone()).await.expect_problem(409, "sold-out");
    let issue = json!({ "user": "carl" });
    client.post("/v1/coupons/welcome/issues", issue.clone()).await.expect_problem(409, "sold-out");
    assert_eq!(client.get("/v1/coupons/welcome").await.body["state"], "sold-out");
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(client.get("/v1/coupons/welcome").await.body["state"], "open");
    assert_eq!(client.post("/v1/coupons/welcome/issues", issue).await.status, 201);
}

#[tokio::test]
async fn nobody_settles_the_hold_of_another() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    for how in ["confirm", "cancel"] {
        settle(&client, &hold, how, "bob").await.expect_problem(404, "unknown-hold");
    }
    assert_eq!((state(&client, &hold).await, counts(&client).await), (json!("held"), json!([0, 3, 7])));
    settle(&client, &hold, "confirm", "ann").await;
    settle(&client, &hold, "confirm", "bob").await.expect_problem(404, "unknown-hold");
}

#[tokio::test]
async fn a_hold_that_was_never_placed_is_unknown() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    let digits = hold.rsplit(':').next().unwrap();
    let last = if hold.ends_with('0') { "1" } else { "0" };
    for unknown in [
        "x",
        "deal",
        "deal:phones",
        "deal:phones:",
        digits,
        &format!("deal:phones:{}", "0".repeat(32)),
        &format!("deal:other:{digits}"),
        &format!("coupon:phones:{digits}"),
        &format!("deal:phones:{}{last}", &digits[..31]),
        &format!("deal:phones:{digits}{digits}"),
        "%00",
        "%20",
        "%C3%BC",
        "a%2Fb",
        &"x".repeat(4096),
    ] {
        client.get(&format!("/v1/holds/{unknown}")).await.expect_problem(404, "unknown-hold");
        for how in ["confirm", "cancel"] {
            settle(&client, unknown, how, "ann").await.expect_problem(404, "unknown-hold");
        }
    }
    assert_eq!(state(&client, &hold).await, "held");
}

#[tokio::test]
async fn the_same_hold_under_the_same_key_is_one_hold() {
    let client = shop().await;
    for (of, wish) in [
        ("deals/phones", json!({ "user": "ann", "quantity": 3, "ttl_ms": 60_000 })),
        ("coupons/welcome", json!({ "user": "ann", "ttl_ms": 60_000 })),
    ] {
        let first = place(&client, of, "a", wish.clone()).await;
        client.clock.advance(Duration::from_secs(1));
        place(&client, of, "a", wish.clone()).await.expect(201, &first.body);
        // Even when nobody else gets one any more.
        client.post(&format!("/v1/{of}/close"), json!({})).await;
        place(&client, of, "a", wish.clone()).await.expect(201, &first.body);
        place(&client, of, "b", wish).await.expect_problem(403, "closed");
        assert_eq!(client.get(&format!("/v1/{of}")).await.body["held"], first.body["quantity"]);
    }
}

#[tokio::test]
async fn a_key_cannot_be_used_again_for_another_hold() {
    let client = shop().await;
    held(&client, 3).await;
    for (user, quantity) in [("ann", 2), ("bob", 3)] {
        let wish = json!({ "user": user, "quantity": quantity, "ttl_ms": 60_000 });
        let refused = place(&client, "deals/phones", "key", wish).await;
        refused.expect_problem(422, "idempotency-key-reused");
    }
    assert_eq!(counts(&client).await, json!([0, 3, 7]));
    let elsewhere = json!({ "user": "bob", "ttl_ms": 60_000 });
    assert_eq!(place(&client, "coupons/welcome", "key", elsewhere).await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_duplicates_at_once_are_one_hold() {
    let client = shop().await;
    let asking = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { held(&client, 2).await })
    });
    let mut holds = Vec::new();
    for hold in asking.collect::<Vec<_>>() {
        holds.push(hold.await.unwrap());
    }
    holds.dedup();
    assert_eq!((holds.len(), counts(&client).await), (1, json!([0, 2, 8])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn confirming_and_cancelling_at_once_ends_one_way() {
    let client = shop().await;
    let hold = held(&client, 2).await;
    let asking = (0..40).map(|place| {
        let (client, hold) = (client.clone(), hold.clone());
        let how = if place % 2 == 0 { "confirm" } else { "cancel" };
        tokio::spawn(async move { (how, settle(&client, &hold, how, "ann").await.status.as_u16()) })
    });
    let mut answers = Vec::new();
    for answer in asking.collect::<Vec<_>>() {
        answers.push(answer.await.unwrap());
    }
    answers.sort_unstable();
    answers.dedup();
    if state(&client, &hold).await == "confirmed" {
        assert_eq!(answers, [("cancel", 409), ("confirm", 200)]);
        assert_eq!(counts(&client).await, json!([2, 0, 8]));
    } else {
        assert_eq!(answers, [("cancel", 200), ("confirm", 409)]);
        assert_eq!(counts(&client).await, json!([0, 0, 10]));
    }
}

#[tokio::test]
async fn a_hold_is_denied_as_a_purchase_is() {
    let client = shop().await;
    let wish = |quantity: u64| json!({ "user": "ann", "quantity": quantity, "ttl_ms": 60_000 });
    let hold = async |wish: Value| place(&client, "deals/phones", "a", wish).await;
    let refused = hold(wish(6)).await.expect_problem(409, "limit-exceeded");
    assert_eq!((&refused.body["taken"], &refused.body["per_user"]), (&json!(0), &json!(5)));
    client.put("/v1/deals/phones", json!({ "stock": 10, "per_user": 50 })).await;
    assert_eq!(hold(wish(11)).await.expect_problem(409, "sold-out").body["remaining"], 10);
    client.post("/v1/deals/phones/pause", json!({})).await;
    hold(wish(1)).await.expect_problem(403, "paused");
    client.post("/v1/deals/phones/resume", json!({})).await;
    assert_eq!(hold(wish(10)).await.status, 201);

    let of_coupon = async |key: &str, user: &str| {
        place(&client, "coupons/welcome", key, json!({ "user": user, "ttl_ms": 60_000 })).await
    };
    place(&client, "coupons/nope", "a", json!({ "user": "ann", "ttl_ms": 1 }))
        .await
        .expect_problem(404, "unknown-coupon");
    client.post("/v1/coupons/welcome/pause", json!({})).await;
    of_coupon("a", "ann").await.expect_problem(403, "paused");
    client.post("/v1/coupons/welcome/resume", json!({})).await;
    assert_eq!(of_coupon("a", "ann").await.status, 201);
    of_coupon("b", "ann").await.expect_problem(409, "limit-exceeded");
}

#[tokio::test]
async fn of_a_coupon_one_user_holds_or_has_one_at_most() {
    let client = shop().await;
    let wish = json!({ "user": "ann", "ttl_ms": 60_000 });
    let placed = place(&client, "coupons/welcome", "a", wish.clone()).await;
    let hold = placed.body["hold"].as_str().unwrap();
    let issue = async || client.post("/v1/coupons/welcome/issues", json!({ "user": "ann" })).await;
    assert_eq!(issue().await.expect_problem(409, "held").body["hold"], hold);
    settle(&client, hold, "confirm", "ann").await;
    assert_eq!((issue().await.status.as_u16(), &issue().await.body["seq"]), (200, &json!(1)));
    assert_eq!(client.get("/v1/coupons/welcome/issues/ann").await.body["seq"], 1);
    let refused = place(&client, "coupons/welcome", "b", wish).await;
    assert_eq!(refused.expect_problem(409, "already-issued").body["seq"], 1);
}

#[tokio::test]
async fn a_hold_can_be_settled_after_its_campaign_was_closed() {
    let client = shop().await;
    let (one, two) = (held(&client, 3).await, {
        let wish = json!({ "user": "bob", "quantity": 2, "ttl_ms": 60_000 });
        place(&client, "deals/phones", "b", wish).await.body["hold"].as_str().unwrap().to_owned()
    });
    client.post("/v1/deals/phones/close", json!({})).await;
    assert_eq!(settle(&client, &one, "confirm", "ann").await.status, 200);
    assert_eq!(settle(&client, &two, "cancel", "bob").await.status, 200);
    assert_eq!(counts(&client).await, json!([3, 0, 7]));
}

#[tokio::test]
async fn a_settled_hold_is_known_for_a_day() {
    let client = shop().await;
    let hold = held(&client, 3).await;
    settle(&client, &hold, "confirm", "ann").await;
    client.clock.advance(DAY - Duration::from_millis(1));
    assert_eq!(settle(&client, &hold, "confirm", "ann").await.status, 200);
    client.clock.advance(Duration::from_millis(1));
    settle(&client, &hold, "confirm", "ann").await.expect_problem(404, "unknown-hold");
    client.get(&format!("/v1/holds/{hold}")).await.expect_problem(404, "unknown-hold");
    assert_eq!(counts(&client).await, json!([3, 0, 7]), "what it has become stays");
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    let client = shop().await;
    for ttl_ms in [json!(0), json!(-1), json!(1.5), json!(86_400_001), json!(u64::MAX), json!("60000")] {
        for of in ["deals/phones", "coupons/welcome"] {
            let wish = json!({ "user": "ann", "ttl_ms": ttl_ms });
            place(&client, of, "a", wish).await.expect_invalid("ttl_ms");
        }
    }
    for quantity in [json!(0), json!(-1), json!(1.5), json!(9_007_199_254_740_992_u64)] {
        let wish = json!({ "user": "ann", "quantity": quantity, "ttl_ms": 1 });
        place(&client, "deals/phones", "a", wish.clone()).await.expect_invalid("quantity");
        place(&client, "coupons/welcome", "a", wish).await.expect_invalid("quantity");
    }
    let two = json!({ "user": "ann", "quantity": 2, "ttl_ms": 1 });
    place(&client, "coupons/welcome", "a", two).await.expect_invalid("quantity");
    assert_eq!(counts(&client).await, json!([0, 0, 10]));
}
