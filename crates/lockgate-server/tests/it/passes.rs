//! Passes: who is admitted gets one, anybody can verify it, and a campaign takes it once.

use std::time::Duration;

use lockgate::key::Name;
use lockgate::line::pass::{PassClaims, PassError, PassKeys, PassVerifier};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::tickets::{enter_and_be_admitted, fast, open, open_paused, pass_time};

async fn pass_of(client: &Client, ticket: &str) -> String {
    client.get(ticket).await.body["pass"].as_str().unwrap().to_owned()
}

async fn issue(client: &Client, user: &str, pass: &str) -> Answer {
    client.post_with("/v1/coupons/w/issues", ("lockgate-pass", pass), json!({ "user": user })).await
}

#[tokio::test]
async fn whoever_has_the_published_keys_can_verify_a_pass() {
    let client = Client::admin_with_app_token();
    open(&client, "tour", json!({ "batch": 100, "every_ms": 10, "pass_ttl_ms": 60_000 })).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    let told = client.get(&ticket).await;
    assert_eq!(told.headers["cache-control"], "no-store");
    assert_eq!(told.body["until"], "2026-01-01T00:01:00Z");

    let keys = client.as_(None).get("/.well-known/jwks.json").await;
    assert_eq!(keys.status, 200);
    assert_eq!(keys.headers["cache-control"], "public, max-age=300");
    assert_eq!(keys.headers["content-type"], "application/json");
    assert_eq!(keys.body["keys"][0]["kid"], client.passes.kid());
    assert!(keys.body["keys"][0].get("d").is_none(), "the secret stays secret");

    let verifier = PassVerifier::from_jwks(&keys.body.to_string()).unwrap();
    let (line, now) = (Name::new("line", "tour").unwrap(), client.clock.wall());
    let token = told.body["pass"].as_str().unwrap();
    assert_eq!(verifier.verify(token, &line, now).unwrap().user().as_str(), "alice");
    let over = verifier.verify(token, &line, now + Duration::from_secs(60));
    assert_eq!(over, Err(PassError::Expired), "it does not outlast the turn");
}

#[tokio::test]
async fn a_campaign_takes_each_turn_once_and_of_its_user_alone() {
    let client = Client::admin();
    open(&client, "tour", fast()).await;
    client.put("/v1/coupons/w", json!({ "quantity": 9, "line": "tour" })).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    let pass = pass_of(&client, &ticket).await;
    issue(&client, "bob", &pass).await.expect_problem(403, "pass-invalid");
    issue(&client, "alice", "forged").await.expect_problem(403, "pass-invalid");
    assert_eq!(issue(&client, "alice", &pass).await.status, 201);
    assert_eq!(issue(&client, "alice", &pass).await.status, 200, "again, and not a second one");

    let renewed = client.act(&format!("{ticket}/renew")).await.body["pass"].as_str().unwrap().to_owned();
    let jti = |pass: &str| client.passes.verifier().authenticate(pass).unwrap().jti();
    assert_eq!(jti(&renewed), jti(&pass), "a renewed pass is of the same turn");

    let claims = client.passes.verifier().authenticate(&pass).unwrap();
    let (line, now) = (Name::new("line", "tour").unwrap(), client.clock.wall());
    let carol = Name::new("user", "carol").unwrap();
    let claims = PassClaims { user: &carol, line: &line, jti: claims.jti(), until: claims.expires_at(), now };
    let foreign = PassKeys::generate().sign(&claims).unwrap();
    issue(&client, "carol", &foreign).await.expect_problem(403, "pass-invalid");
}

#[tokio::test]
async fn renewing_lets_the_turn_begin_anew() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 100, "every_ms": 10, "pass_ttl_ms": 10_000 })).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    let expiry = |body: &Value| {
        let pass = client.passes.verifier().authenticate(body["pass"].as_str().unwrap()).unwrap();
        pass.expires_at()
    };
    let first = client.get(&ticket).await.body;
    pass_time(&client, 3.0).await;
    assert_eq!(client.get(&ticket).await.body["until"], first["until"], "looking does not make it longer");
    let renewed = client.act(&format!("{ticket}/renew")).await;
    assert_eq!(renewed.status, 200);
    assert_eq!(renewed.headers["cache-control"], "no-store");
    assert!(expiry(&renewed.body) >= expiry(&first) + Duration::from_secs(2), "{} {first}", renewed.body);
}

#[tokio::test]
async fn in_the_last_moment_of_a_turn_there_is_no_pass_to_be_had() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 100, "every_ms": 10, "pass_ttl_ms": 500 })).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    let told = client.get(&ticket).await.body;
    assert_eq!(told["state"], "admitted");
    assert!(told.get("pass").is_none() && told["until"].is_string(), "{told}");
}

#[tokio::test]
async fn who_waits_has_no_pass() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let waiting = client.post("/v1/lines/tour/tickets", json!({ "user": "alice" })).await;
    assert!(waiting.body.get("pass").is_none(), "{}", waiting.body);
}
