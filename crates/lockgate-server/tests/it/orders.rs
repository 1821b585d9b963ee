//! `/v1/skus` and `/v1/orders`: several articles, all or nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client};

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

/// A service with the articles `cup` (5) and `tee` (3).
async fn shop() -> Client {
    let client = Client::admin();
    client.put("/v1/skus/cup", json!({ "stock": 5 })).await;
    client.put("/v1/skus/tee", json!({ "stock": 3 })).await;
    client
}

async fn order(client: &Client, key: &str, user: &str, items: &[(&str, u64)]) -> Answer {
    let items = items.iter().map(|(sku, quantity)| json!({ "sku": sku, "quantity": quantity }));
    let wish = json!({ "user": user, "items": items.collect::<Value>() });
    client.keyed(key).post("/v1/orders", wish).await
}

/// What is sold and what remains of each.
async fn counts(client: &Client) -> Value {
    let (cup, tee) = (client.get("/v1/skus/cup").await.body, client.get("/v1/skus/tee").await.body);
    json!([[cup["sold"], cup["remaining"]], [tee["sold"], tee["remaining"]]])
}

#[tokio::test]
async fn putting_an_article_creates_then_replaces_every_field() {
    let client = Client::admin();
    let created = json!({
        "id": "cup", "stock": 5, "sold": 0, "held": 0, "remaining": 5, "state": "scheduled",
        "opens_at": IN_A_MINUTE, "closes_at": "2026-01-01T00:02:00Z",
    });
    let terms = json!({ "stock": 5, "opens_at": IN_A_MINUTE, "closes_at": "2026-01-01T00:02:00Z" });
    client.put("/v1/skus/cup", terms).await.expect(201, &created);
    client.get("/v1/skus/cup").await.expect(200, &created);
    let replaced = json!({
        "id": "cup", "stock": 7, "sold": 0, "held": 0, "remaining": 7, "state": "open",
    });
    client.put("/v1/skus/cup", json!({ "stock": 7 })).await.expect(200, &replaced);
    client.get("/v1/skus/cup").await.expect(200, &replaced);
    client.get("/v1/skus/nope").await.expect_problem(404, "unknown-sku");
}

#[tokio::test]
async fn the_stock_is_a_total_that_cannot_fall_below_what_is_sold() {
    let client = shop().await;
    order(&client, "a", "ann", &[("cup", 4)]).await;
    let before = client.get("/v1/skus/cup").await.body;
    let less = json!({ "stock": 3, "closes_at": IN_A_MINUTE });
    client.put("/v1/skus/cup", less).await.expect_problem(409, "below-issued");
    client.get("/v1/skus/cup").await.expect(200, &before);
    client.put("/v1/skus/cup", json!({ "stock": 4 })).await;
    let now = client.get("/v1/skus/cup").await.body;
    assert_eq!((&now["remaining"], &now["state"]), (&json!(0), &json!("sold-out")));
}

#[tokio::test]
async fn an_article_of_a_group_is_another_than_that_of_no_group() {
    let client = shop().await;
    client.put("/v1/skus/cup", json!({ "stock": 2, "group": "shop" })).await;
    let grouped = json!({
        "id": "cup", "group": "shop", "stock": 2, "sold": 0, "held": 0, "remaining": 2, "state": "open",
    });
    client.get("/v1/skus/cup?group=shop").await.expect(200, &grouped);
    client.get("/v1/skus/cup?group=other").await.expect_problem(404, "unknown-sku");
    let items = json!([{ "sku": "cup", "group": "shop", "quantity": 2 }, { "sku": "cup", "quantity": 1 }]);
    let placed = client.keyed("a").post("/v1/orders", json!({ "user": "ann", "items": items })).await;
    assert_eq!(placed.status, 201);
    let found = client.get(&format!("/v1/orders/{}", placed.body["order"].as_str().unwrap())).await;
    found.expect(200, &placed.body);
    assert_eq!(client.get("/v1/skus/cup?group=shop").await.body["remaining"], 0);
    assert_eq!(client.get("/v1/skus/cup").await.body["remaining"], 4);
}

#[tokio::test]
async fn an_order_takes_all_and_can_be_read_again() {
    let client = shop().await;
    let placed = order(&client, "a", "ann", &[("tee", 1), ("cup", 2)]).await;
    assert_eq!(placed.status, 201);
    let id = placed.body["order"].as_str().unwrap().to_owned();
    let expected = json!({
        "order": id, "user": "ann",
        "items": [{ "sku": "cup", "quantity": 2, "seq": 1 }, { "sku": "tee", "quantity": 1, "seq": 1 }],
    });
    assert_eq!(placed.body, expected);
    client.get(&format!("/v1/orders/{id}")).await.expect(200, &expected);
    assert_eq!(counts(&client).await, json!([[2, 3], [1, 2]]));
    let next = order(&client, "b", "bob", &[("cup", 1)]).await;
    assert_eq!(next.body["items"], json!([{ "sku": "cup", "quantity": 1, "seq": 2 }]));
}

#[tokio::test]
async fn what_is_mentioned_twice_is_added_up() {
    let client = shop().await;
    let placed = order(&client, "a", "ann", &[("cup", 1), ("tee", 1), ("cup", 3)]).await;
    assert_eq!((placed.status.as_u16(), &placed.body["items"][0]["quantity"]), (201, &json!(4)));
    assert_eq!(counts(&client).await, json!([[4, 1], [1, 2]]));
    let refused = order(&client, "b", "bob", &[("cup", 1), ("cup", 1)]).await;
    let short = json!([{ "sku": "cup", "requested": 2, "available": 1 }]);
    assert_eq!(refused.expect_problem(409, "insufficient-stock").body["short"], short);
}

#[tokio::test]
async fn an_order_that_cannot_be_filled_takes_nothing_and_names_all_that_is_short() {
    let client = shop().await;
    client.put("/v1/skus/pen", json!({ "stock": 9 })).await;
    let refused = order(&client, "a", "ann", &[("pen", 1), ("tee", 4), ("cup", 6)]).await;
    let short = json!([
        { "sku": "cup", "requested": 6, "available": 5 },
        { "sku": "tee", "requested": 4, "available": 3 },
    ]);
    assert_eq!(refused.expect_problem(409, "insufficient-stock").body["short"], short);
    let refused = order(&client, "b", "ann", &[("cup", 5), ("tee", 4)]).await;
    let short = json!([{ "sku": "tee", "requested": 4, "available": 3 }]);
    assert_eq!(refused.expect_problem(409, "insufficient-stock").body["short"], short);
    assert_eq!(counts(&client).await, json!([[0, 5], [0, 3]]));
    assert_eq!(client.get("/v1/skus/pen").await.body["sold"], 0);
    // A refusal is not remembered: the same key may succeed later.
    client.put("/v1/skus/tee", json!({ "stock": 4 })).await;
    assert_eq!(order(&client, "b", "ann", &[("cup", 5), ("tee", 4)]).await.status, 201);
}

#[tokio::test]
async fn an_unknown_article_is_named_and_goes_before_what_is_short() {
    let client = shop().await;
    let refused = order(&client, "a", "ann", &[("cup", 99), ("nope", 1)]).await;
    assert_eq!(refused.expect_problem(404, "unknown-sku").body["sku"], "nope");
    // A deal of that name is no article.
    client.put("/v1/deals/nope", json!({ "stock": 9, "per_user": 9 })).await;
    order(&client, "a", "ann", &[("cup", 1), ("nope", 1)]).await.expect_problem(404, "unknown-sku");
    assert_eq!(counts(&client).await, json!([[0, 5], [0, 3]]));
    client.get("/v1/skus/nope").await.expect_problem(404, "unknown-sku");
}

#[tokio::test]
async fn outside_its_window_an_article_cannot_be_ordered_but_a_replay_is_answered() {
    let client = shop().await;
    let window = json!({ "stock": 9, "opens_at": IN_A_MINUTE, "closes_at": "2026-01-01T00:02:00Z" });
    client.put("/v1/skus/pen", window).await;
    let both = &[("cup", 1), ("pen", 1)];
    let early = order(&client, "a", "ann", both).await.expect_problem(403, "not-open");
    assert_eq!((&early.body["sku"], &early.body["opens_at"]), (&json!("pen"), &json!(IN_A_MINUTE)));
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(order(&client, "a", "ann", both).await.status, 201);
    client.clock.advance(Duration::from_secs(60));
    assert_eq!(order(&client, "a", "ann", both).await.status, 200);
    let late = order(&client, "b", "ann", &[("pen", 99), ("tee", 99)]).await.expect_problem(403, "closed");
    assert_eq!(late.body["sku"], "pen");
    assert_eq!(counts(&client).await, json!([[1, 4], [0, 3]]));
}

#[tokio::test]
async fn the_same_order_under_the_same_key_is_one_order() {
    let client = shop().await;
    let items = &[("cup", 2), ("tee", 3)];
    let mut placed = order(&client, "a", "ann", items).await.body;
    placed["replayed"] = json!(true);
    for _ in 0..2 {
        order(&client, "a", "ann", items).await.expect(200, &placed);
    }
    // Said in another way it is the same order.
    order(&client, "a", "ann", &[("tee", 2), ("cup", 2), ("tee", 1)]).await.expect(200, &placed);
    for (user, items) in [
        ("bob", &[("cup", 2), ("tee", 3)][..]),
        ("ann", &[("cup", 2)]),
        ("ann", &[("cup", 1), ("tee", 3)]),
        ("ann", &[("cup", 2), ("tee", 3), ("nope", 1)]),
    ] {
        order(&client, "a", user, items).await.expect_problem(422, "idempotency-key-reused");
    }
    assert_eq!(counts(&client).await, json!([[2, 3], [3, 0]]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_duplicates_at_once_are_one_order_and_get_the_same_answer() {
    let client = shop().await;
    let asking = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { order(&client, "a", "ann", &[("cup", 1), ("tee", 1)]).await })
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
    assert_eq!((statuses[0], statuses[48], statuses[49], bodies.len()), (200, 200, 201, 1));
    assert_eq!(counts(&client).await, json!([[1, 4], [1, 2]]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_articles_in_two_orders_cannot_deadlock_or_be_oversold() {
    let client = shop().await;
    let asking = (0..40_u64).map(|place| {
        let client = client.clone();
        let items = if place % 2 == 0 { [("cup", 1), ("tee", 1)] } else { [("tee", 1), ("cup", 1)] };
        tokio::spawn(async move { order(&client, &format!("key-{place}"), "ann", &items).await.status })
    });
    let mut placed = 0;
    for answer in asking.collect::<Vec<_>>() {
        placed += u32::from(answer.await.unwrap() == 201);
    }
    assert_eq!((placed, counts(&client).await), (3, json!([[3, 2], [3, 0]])));
}

#[tokio::test]
async fn an_order_that_was_never_placed_is_unknown() {
    let client = shop().await;
    let placed = order(&client, "a", "ann", &[("cup", 1)]).await.body;
    let id = placed["order"].as_str().unwrap();
    for unknown in [
        "x",
        "cup:",
        &id[4..],
        &format!("cup:{}", "0".repeat(32)),
        &format!("{id}0"),
        "%00",
        "%20",
        "%C3%BC",
        "a%2Fb",
        &"x".repeat(4096),
    ] {
        client.get(&format!("/v1/orders/{unknown}")).await.expect_problem(404, "unknown-order");
    }
    assert_eq!(client.get(&format!("/v1/orders/{id}")).await.status, 200);
}

#[tokio::test]
async fn a_bad_item_is_named() {
    let client = shop().await;
    let (long, many) = ("x".repeat(129), (0..1001).map(|n| json!({ "sku": format!("s{n}"), "quantity": 1 })));
    let good = json!({ "sku": "cup", "quantity": 1 });
    for (items, field) in [
        (json!([]), "items"),
        (json!(many.collect::<Value>()), "items"),
        (json!(null), "items"),
        (json!("cup"), "items"),
        (json!([good, {}]), "items[1].sku"),
        (json!([good, { "sku": "tee" }]), "items[1].quantity"),
        (json!([good, { "sku": "", "quantity": 1 }]), "items[1].sku"),
        (json!([good, { "sku": "a b", "quantity": 1 }]), "items[1].sku"),
        (json!([good, { "sku": long, "quantity": 1 }]), "items[1].sku"),
        (json!([good, { "sku": 5, "quantity": 1 }]), "items[1].sku"),
        (json!([good, { "sku": "tee", "group": "a b", "quantity": 1 }]), "items[1].group"),
        (json!([good, { "sku": "tee", "group": "", "quantity": 1 }]), "items[1].group"),
        (json!([good, { "sku": "tee", "quantity": 0 }]), "items[1].quantity"),
        (json!([good, { "sku": "tee", "quantity": -1 }]), "items[1].quantity"),
        (json!([good, { "sku": "tee", "quantity": 1.5 }]), "items[1].quantity"),
        (json!([good, { "sku": "tee", "quantity": 9_007_199_254_740_992_u64 }]), "items[1].quantity"),
        (json!([good, { "sku": "tee", "quantity": 1, "colour": "red" }]), "items[1].colour"),
    ] {
        let wish = json!({ "user": "ann", "items": items });
        client.keyed("a").post("/v1/orders", wish).await.expect_invalid(field);
    }
    let most = 9_007_199_254_740_991_u64;
    let sum = order(&client, "a", "ann", &[("cup", most), ("cup", 1)]).await.expect_problem(400, "invalid");
    assert!(sum.body["errors"][0]["field"].is_string());
    assert_eq!(counts(&client).await, json!([[0, 5], [0, 3]]));
}

#[tokio::test]
async fn a_bad_article_is_refused() {
    let client = Client::admin();
    for (terms, field) in [
        (json!({ "stock": -1 }), "stock"),
        (json!({ "stock": 0.5 }), "stock"),
        (json!({ "stock": 9_007_199_254_740_992_u64 }), "stock"),
        (json!({ "stock": 1, "group": "a b" }), "group"),
        (json!({ "stock": 1, "group": "" }), "group"),
        (json!({ "stock": 1, "group": "x".repeat(129) }), "group"),
        (json!({ "stock": 1, "per_user": 1 }), "per_user"),
        (json!({ "stock": 1, "line": "tour" }), "line"),
    ] {
        client.put("/v1/skus/cup", terms).await.expect_invalid(field);
    }
    for query in ["group=", "group=a%20b", "group=a&group=b", "colour=red"] {
        client.get(&format!("/v1/skus/cup?{query}")).await.expect_invalid("group");
    }
    client.get("/v1/skus/cup").await.expect_problem(404, "unknown-sku");
}
