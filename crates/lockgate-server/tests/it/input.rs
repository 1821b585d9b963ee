//! Bad input: each gets a 400 that names the field, or the status that HTTP has for it.

use serde_json::{Value, json};

use crate::client::Client;

#[tokio::test]
async fn a_bad_field_is_named() {
    let client = Client::admin();
    let cases: &[(Value, &str)] = &[
        (json!({}), "quantity"),
        (json!({ "quantity": null }), "quantity"),
        (json!({ "quantity": -1 }), "quantity"),
        (json!({ "quantity": 1.5 }), "quantity"),
        (json!({ "quantity": "5" }), "quantity"),
        (json!({ "quantity": 9_007_199_254_740_992_u64 }), "quantity"),
        (json!({ "quantity": 1, "opens_at": "tomorrow" }), "opens_at"),
        (json!({ "quantity": 1, "opens_at": 5 }), "opens_at"),
        (json!({ "quantity": 1, "opens_at": "1969-01-01T00:00:00Z" }), "opens_at"),
        (json!({ "quantity": 1, "closes_at": "9999-01-01T00:00:00Z" }), "closes_at"),
        (
            json!({ "quantity": 1, "opens_at": "2026-01-02T00:00:00Z", "closes_at": "2026-01-01T00:00:00Z" }),
            "closes_at",
        ),
        (json!({ "quantity": 1, "colour": "red" }), "colour"),
        (json!([]), "body"),
        (json!("quantity"), "body"),
    ];
    for (body, field) in cases {
        client.put("/v1/coupons/w", body.clone()).await.expect_invalid(field);
    }
    client.get("/v1/coupons/w").await.expect_problem(404, "unknown-coupon");
}

#[tokio::test]
async fn a_bad_id_is_refused_wherever_it_stands() {
    let client = Client::admin();
    client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    let long = "x".repeat(129);
    for id in ["", " ", "a b", "a/b", "{a}", "ü", "🎟", "a\u{0}b", "a\nb", &long] {
        client.post("/v1/coupons/w/issues", json!({ "user": id })).await.expect_invalid("user");
    }
    for path in ["/v1/coupons/a%20b", "/v1/coupons/%7Ba%7D", "/v1/coupons/%00", "/v1/coupons/%FF"] {
        client.get(path).await.expect_invalid("id");
    }
    assert_eq!(client.get("/v1/coupons/w").await.body["issued"], 0);
    let longest = "x".repeat(128);
    for id in ["a", "A-Z.0_9:@", &longest] {
        assert_eq!(client.post("/v1/coupons/w/issues", json!({ "user": id })).await.status, 201);
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let client = Client::admin();
    let json = Some("application/json");
    let path = "/v1/coupons/w";
    client.send("PUT", path, json, b"".to_vec()).await.expect_invalid("body");
    client.send("PUT", path, json, b"{".to_vec()).await.expect_invalid("body");
    client.send("PUT", path, json, b"{\"quantity\":1} x".to_vec()).await.expect_invalid("body");
    client
        .send("PUT", path, json, b"{\"quantity\":1,\"quantity\":2}".to_vec())
        .await
        .expect_invalid("quantity");
    client.send("PUT", path, json, b"\xff\xfe".to_vec()).await.expect_invalid("body");
    let good = b"{\"quantity\":1}".to_vec();
    client.send("PUT", path, None, good.clone()).await.expect_problem(415, "unsupported-media-type");
    client
        .send("PUT", path, Some("text/plain"), good.clone())
        .await
        .expect_problem(415, "unsupported-media-type");
    let large = vec![b' '; 64 * 1024 + 1];
    client.send("PUT", path, json, large).await.expect_problem(413, "too-large");
    assert_eq!(client.send("PUT", path, Some("application/json; charset=utf-8"), good).await.status, 201);
}

#[tokio::test]
async fn other_paths_and_methods_are_problems_too() {
    let client = Client::admin();
    client.get("/nothing/here").await.expect_problem(404, "not-found");
    let refused = client.send("DELETE", "/v1/coupons/w", None, Vec::new()).await;
    assert_eq!(refused.expect_problem(405, "method-not-allowed").headers["allow"], "PUT,GET,HEAD");
}
