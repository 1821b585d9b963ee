//! Who may do what: the table of `auth.rs`, line by line.

use serde_json::json;

use crate::client::{ADMIN, APP, Client};

/// The statuses of an admin call and of an app call.
async fn statuses(client: &Client) -> (u16, u16) {
    let admin_call = client.put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    let app_call = client.get("/v1/coupons/w").await;
    (admin_call.status.as_u16(), app_call.status.as_u16())
}

#[tokio::test]
async fn without_an_app_token_anybody_may_ask_and_only_the_admin_may_set_up() {
    let client = Client::admin();
    assert_eq!(statuses(&client).await, (201, 200));
    assert_eq!(statuses(&client.as_(None)).await, (401, 200));
    assert_eq!(statuses(&client.as_(Some("Bearer wrong"))).await, (401, 401));
}

#[tokio::test]
async fn with_an_app_token_it_is_needed_to_ask() {
    let client = Client::admin_with_app_token();
    assert_eq!(statuses(&client).await, (201, 200));
    assert_eq!(statuses(&client.as_(None)).await, (401, 401));
    assert_eq!(statuses(&client.as_(Some(APP))).await, (401, 200));
    for wrong in ["Bearer wrong", "Bearer ", "Bearer", "Basic the-app", "the-app", "Bearer the-app2"] {
        assert_eq!(statuses(&client.as_(Some(wrong))).await, (401, 401), "{wrong:?}");
    }
    assert_eq!(
        statuses(&client.as_(Some("bearer the-app"))).await.1,
        200,
        "the scheme's case does not matter"
    );
}

#[tokio::test]
async fn a_refusal_says_how_to_authenticate_and_does_nothing() {
    let client = Client::admin();
    let refused = client.as_(None).put("/v1/coupons/w", json!({ "quantity": 5 })).await;
    assert_eq!(refused.expect_problem(401, "unauthorized").headers["www-authenticate"], "Bearer");
    client.as_(Some(ADMIN)).get("/v1/coupons/w").await.expect_problem(404, "unknown-coupon");
}

#[tokio::test]
async fn a_stranger_is_told_nothing_about_the_body() {
    let client = Client::admin_with_app_token();
    let refused = client.as_(None).put("/v1/coupons/w", json!({ "nonsense": true })).await;
    refused.expect_problem(401, "unauthorized");
}
