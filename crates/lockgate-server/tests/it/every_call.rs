//! What holds for every call alike: who may make it, and what it takes.
//!
//! The list of calls is compared with the contract, so a new call cannot be forgotten here.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{APP, Answer, Client};

/// A call that is made well.
struct Call {
    method: &'static str,
    /// As the contract says it.
    route: &'static str,
    path: &'static str,
    is_admins: bool,
    needs_key: bool,
    body: Value,
    /// What may be left out of the body.
    optional: &'static [&'static str],
}

const WINDOW: &[&str] = &["opens_at", "closes_at", "line"];

/// All calls of `/v1` with ids; lines and the overview have their own tests.
fn calls() -> Vec<Call> {
    let call = |method, route, path, body| Call {
        method,
        route,
        path,
        is_admins: false,
        needs_key: false,
        body,
        optional: &[],
    };
    let admins = |call: Call| Call { is_admins: true, ..call };
    let keyed = |call: Call| Call { needs_key: true, ..call };
    let optional = |call: Call, optional| Call { optional, ..call };
    let (get, post, put) = (
        |route, path| call("GET", route, path, Value::Null),
        |route, path, body| call("POST", route, path, body),
        |route, path, body| admins(call("PUT", route, path, body)),
    );
    let switch = |route, path| admins(call("POST", route, path, Value::Null));
    let (opens, closes) = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let window = |mut terms: Value| {
        terms["opens_at"] = json!(opens);
        terms["closes_at"] = json!(closes);
        terms
    };
    let user = json!({ "user": "ann" });
    vec![
        optional(
            put("/v1/coupons/{id}", "/v1/coupons/c", window(json!({ "quantity": 5, "line": "tour" }))),
            WINDOW,
        ),
        get("/v1/coupons/{id}", "/v1/coupons/c"),
        switch("/v1/coupons/{id}/pause", "/v1/coupons/c/pause"),
        switch("/v1/coupons/{id}/resume", "/v1/coupons/c/resume"),
        switch("/v1/coupons/{id}/close", "/v1/coupons/c/close"),
        post("/v1/coupons/{id}/issues", "/v1/coupons/c/issues", user.clone()),
        get("/v1/coupons/{id}/issues/{user}", "/v1/coupons/c/issues/ann"),
        optional(
            keyed(post(
                "/v1/coupons/{id}/holds",
                "/v1/coupons/c/holds",
                json!({ "user": "ann", "quantity": 1, "ttl_ms": 1 }),
            )),
            &["quantity"],
        ),
        optional(
            put(
                "/v1/deals/{id}",
                "/v1/deals/d",
                window(json!({ "stock": 5, "per_user": 1, "line": "tour" })),
            ),
            WINDOW,
        ),
        get("/v1/deals/{id}", "/v1/deals/d"),
        switch("/v1/deals/{id}/pause", "/v1/deals/d/pause"),
        switch("/v1/deals/{id}/resume", "/v1/deals/d/resume"),
        switch("/v1/deals/{id}/close", "/v1/deals/d/close"),
        keyed(post(
            "/v1/deals/{id}/purchases",
            "/v1/deals/d/purchases",
            json!({ "user": "ann", "quantity": 1 }),
        )),
        optional(
            keyed(post(
                "/v1/deals/{id}/holds",
                "/v1/deals/d/holds",
                json!({ "user": "ann", "quantity": 1, "ttl_ms": 1 }),
            )),
            &["quantity"],
        ),
        get("/v1/holds/{hold}", "/v1/holds/h"),
        post("/v1/holds/{hold}/confirm", "/v1/holds/h/confirm", user.clone()),
        post("/v1/holds/{hold}/cancel", "/v1/holds/h/cancel", user),
        optional(
            put("/v1/skus/{id}", "/v1/skus/s", window(json!({ "stock": 5, "group": "g" }))),
            &["group", "opens_at", "closes_at"],
        ),
        get("/v1/skus/{id}", "/v1/skus/s"),
        keyed(post(
            "/v1/orders",
            "/v1/orders",
            json!({ "user": "ann", "items": [{ "sku": "s", "quantity": 1 }] }),
        )),
        get("/v1/orders/{order}", "/v1/orders/o"),
        post("/v1/locks/{id}", "/v1/locks/k", json!({ "owner": "ann", "wait_ms": 0, "lease_ms": 1 })),
        get("/v1/locks/{id}", "/v1/locks/k"),
        call("DELETE", "/v1/locks/{id}", "/v1/locks/k?token=0", Value::Null),
        post("/v1/locks/{id}/renew", "/v1/locks/k/renew", json!({ "token": "0", "lease_ms": 1 })),
        switch("/v1/locks/{id}/break", "/v1/locks/k/break"),
        admins(get("/v1/dead-letters", "/v1/dead-letters")),
        switch("/v1/dead-letters/replay", "/v1/dead-letters/replay"),
        switch("/v1/dead-letters/{letter}/replay", "/v1/dead-letters/0:1-0:1/replay"),
        admins(call("DELETE", "/v1/dead-letters/{letter}", "/v1/dead-letters/0:1-0:1", Value::Null)),
    ]
}

impl Call {
    async fn made_by(&self, client: &Client) -> Answer {
        self.with_body(client, self.body.to_string().into_bytes()).await
    }

    /// With the key if it needs one, and this body if it takes one.
    async fn with_body(&self, client: &Client, body: Vec<u8>) -> Answer {
        let client = if self.needs_key { client.keyed("key") } else { client.clone() };
        self.as_it_is(&client, Some("application/json"), body).await
    }

    async fn as_it_is(&self, client: &Client, content_type: Option<&str>, body: Vec<u8>) -> Answer {
        if self.body.is_null() {
            return client.send(self.method, self.path, None, Vec::new()).await;
        }
        client.send(self.method, self.path, content_type, body).await
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.route)
    }
}

fn with_bodies() -> impl Iterator<Item = Call> {
    calls().into_iter().filter(|call| !call.body.is_null())
}

/// What there is to be changed by a call that should have been refused.
async fn everything(client: &Client) -> Vec<(u16, Value)> {
    let mut all = Vec::new();
    for path in ["/v1/coupons/c", "/v1/deals/d", "/v1/skus/s?group=g", "/v1/locks/k"] {
        let answer = client.get(path).await;
        all.push((answer.status.as_u16(), answer.body));
    }
    all
}

#[tokio::test]
async fn the_list_is_that_of_the_contract() {
    let contract = serde_json::to_value(lockgate_server::openapi()).unwrap();
    let mut described = BTreeSet::new();
    for (path, methods) in contract["paths"].as_object().unwrap() {
        if !path.starts_with("/v1/") || path.starts_with("/v1/lines") || path.starts_with("/v1/overview") {
            continue;
        }
        for (method, about) in methods.as_object().unwrap() {
            let is_admins = about["security"] == json!([{ "admin": [] }]);
            let needs_key = about["parameters"]
                .as_array()
                .is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "Idempotency-Key"));
            described.insert((format!("{} {path}", method.to_uppercase()), is_admins, needs_key));
        }
    }
    let listed = calls().iter().map(|call| (call.name(), call.is_admins, call.needs_key)).collect();
    assert_eq!(described, listed);
}

#[tokio::test]
async fn a_wrong_token_or_none_is_401_before_anything_else_is_looked_at() {
    let admin = Client::admin_with_app_token();
    let before = everything(&admin).await;
    for call in calls() {
        for who in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic the-app"), Some("the-app")] {
            // Guessing is slowed down.
            admin.clock.advance(Duration::from_secs(1));
            let refused = call.made_by(&admin.as_(who)).await.expect_problem(401, "unauthorized");
            assert_eq!(refused.headers["www-authenticate"], "Bearer", "{}", call.name());
            let nonsense = call.as_it_is(&admin.as_(who), Some("text/plain"), b"{".to_vec()).await;
            nonsense.expect_problem(401, "unauthorized");
        }
        let by_app = call.made_by(&admin.as_(Some(APP))).await;
        assert_eq!(by_app.status == 401, call.is_admins, "{}: {}", call.name(), by_app.body);
        assert_ne!(call.made_by(&admin).await.status, 401, "{}", call.name());
        if call.is_admins {
            call.made_by(&Client::admin().as_(None)).await.expect_problem(401, "unauthorized");
        } else {
            assert_ne!(call.made_by(&Client::admin().as_(None)).await.status, 401, "{}", call.name());
        }
    }
    let refused = Client::admin_with_app_token();
    for call in calls() {
        call.made_by(&refused.as_(None)).await;
    }
    assert_eq!(everything(&refused).await, before, "refused calls have changed nothing");
}

#[tokio::test]
async fn a_call_that_needs_a_key_is_refused_without_it_or_with_a_bad_one() {
    let client = Client::admin();
    for call in calls().iter().filter(|call| call.needs_key) {
        let bare = async |client: &Client| {
            call.as_it_is(client, Some("application/json"), call.body.to_string().into()).await
        };
        bare(&client).await.expect_invalid("Idempotency-Key");
        let twice = client.keyed("a").keyed("a");
        bare(&twice).await.expect_invalid("Idempotency-Key");
        for bad in ["", " ", "a b", "ü", &"x".repeat(256)] {
            bare(&client.keyed(bad)).await.expect_invalid("Idempotency-Key");
        }
        for good in ["a", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", &"x".repeat(255)] {
            let answer = bare(&client.keyed(good)).await;
            assert_ne!(answer.status, 400, "{}: {}", call.name(), answer.body);
        }
    }
}

#[tokio::test]
async fn every_field_that_is_missing_or_of_a_wrong_type_is_named() {
    let client = Client::admin();
    let before = everything(&client).await;
    for call in with_bodies() {
        for field in call.body.as_object().unwrap().keys() {
            let mut without = call.body.clone();
            without.as_object_mut().unwrap().remove(field);
            if call.optional.contains(&field.as_str()) {
                continue;
            }
            let refused = call.with_body(&client, without.to_string().into()).await;
            assert_eq!(refused.status, 400, "{} without {field}: {}", call.name(), refused.body);
            refused.expect_invalid(field);
        }
        for field in call.body.as_object().unwrap().keys() {
            for wrong in [json!({}), json!(true), json!(-1), json!([[]]), json!("\u{0}")] {
                let mut body = call.body.clone();
                body[field] = wrong.clone();
                let refused = call.with_body(&client, body.to_string().into()).await;
                if call.name() == "POST /v1/locks/{id}/renew" && field == "token" && wrong.is_string() {
                    refused.expect_problem(409, "not-held");
                    continue;
                }
                let named = refused.expect_problem(400, "invalid").body["errors"][0]["field"].to_string();
                assert!(named.contains(field.as_str()), "{}: {body} names {named}", call.name());
            }
        }
        let mut more = call.body.clone();
        more["colour"] = json!("red");
        call.with_body(&client, more.to_string().into()).await.expect_invalid("colour");
    }
    assert_eq!(everything(&client).await, before);
}

#[tokio::test]
async fn what_may_be_left_out_may_be_null_too() {
    let client = Client::admin();
    for call in with_bodies() {
        let (mut without, mut null) = (call.body.clone(), call.body.clone());
        for field in call.optional {
            without.as_object_mut().unwrap().remove(*field);
            null[*field] = Value::Null;
        }
        for body in [without, null] {
            let answer = call.with_body(&client, body.to_string().into()).await;
            assert_ne!(answer.status, 400, "{} {body}: {}", call.name(), answer.body);
        }
    }
}

#[tokio::test]
async fn an_array_is_not_read_as_if_it_were_an_object() {
    let client = Client::admin();
    let before = everything(&client).await;
    for (method, path, body) in [
        ("PUT", "/v1/coupons/c", json!([5, null, null, null])),
        ("PUT", "/v1/deals/d", json!([5, 1, null, null, null])),
        ("PUT", "/v1/skus/s", json!([5, "g", null, null])),
        ("POST", "/v1/locks/k", json!(["ann", 0, 1000])),
        ("POST", "/v1/orders", json!(["ann", [{ "sku": "s", "quantity": 1 }]])),
    ] {
        let text = body.to_string().into();
        client.keyed("a").send(method, path, Some("application/json"), text).await.expect_invalid("body");
    }
    client.put("/v1/skus/s", json!({ "stock": 5 })).await;
    let items = json!({ "user": "ann", "items": [["s", null, 1]] });
    client.keyed("a").post("/v1/orders", items).await.expect_invalid("items[0]");
    assert_eq!(client.get("/v1/skus/s").await.body["sold"], 0);
    assert_eq!(everything(&client).await, before);
}

#[tokio::test]
async fn a_field_that_is_said_twice_is_refused_even_if_it_says_the_same() {
    let client = Client::admin();
    let before = everything(&client).await;
    for call in with_bodies() {
        let text = call.body.to_string();
        for (field, value) in call.body.as_object().unwrap() {
            let twice = format!("{{\"{field}\":{value},{}", &text[1..]);
            call.with_body(&client, twice.into()).await.expect_invalid(field);
        }
    }
    let twice = br#"{"user":"ann","items":[{"sku":"s","sku":"s","quantity":1}]}"#.to_vec();
    let json = Some("application/json");
    client.keyed("a").send("POST", "/v1/orders", json, twice).await.expect_invalid("items[0].sku");
    assert_eq!(everything(&client).await, before);
}

#[tokio::test]
async fn a_body_that_is_no_json_or_too_deep_or_too_large_is_refused() {
    let client = Client::admin();
    let before = everything(&client).await;
    for call in with_bodies() {
        let good = call.body.to_string();
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let nested = |levels: usize| good.replacen('{', &format!("{{\"deep\":{},", deep(levels)), 1);
        for bad in
            [String::new(), "{".into(), format!("{good} x"), deep(30_000), "null".into(), "\u{feff}{}".into()]
        {
            let refused = call.with_body(&client, bad.into_bytes()).await.expect_problem(400, "invalid");
            assert_eq!(refused.body["errors"][0]["field"], "body", "{}", call.name());
        }
        call.with_body(&client, nested(30_000).into_bytes()).await.expect_problem(400, "invalid");
        for field in call.body.as_object().unwrap().keys() {
            let mut body = call.body.clone();
            body[field] = json!("here");
            let body = body.to_string().replace("\"here\"", &deep(30_000));
            call.with_body(&client, body.into_bytes()).await.expect_problem(400, "invalid");
        }
        call.with_body(&client, b"\xff\xfe".to_vec()).await.expect_invalid("body");

        let padded = |size: usize| format!("{good}{}", " ".repeat(size - good.len())).into_bytes();
        call.with_body(&client, padded(64 * 1024 + 1)).await.expect_problem(413, "too-large");

        let keyed = client.keyed("key");
        for wrong in
            [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonp")]
        {
            let refused = call.as_it_is(&keyed, wrong, good.clone().into()).await;
            refused.expect_problem(415, "unsupported-media-type");
        }
    }
    assert_eq!(everything(&client).await, before);
    for call in with_bodies() {
        let good = call.body.to_string();
        let full = format!("{good}{}", " ".repeat(64 * 1024 - good.len())).into_bytes();
        let answer = call.as_it_is(&client.keyed("key"), Some("Application/JSON;charset=utf-8"), full).await;
        assert!(![400, 413, 415].contains(&answer.status.as_u16()), "{}: {}", call.name(), answer.body);
    }
}

#[tokio::test]
async fn a_bad_id_in_the_path_is_refused_before_the_body_is_read() {
    let client = Client::admin();
    let bad =
        ["%20", "a%20b", "%00", "a%00b", "a%0Ab", "%C3%BC", "%F0%9F%8E%9F", "%FF", "a%2Fb", "%2F", "%7Ba%7D"];
    let long = "x".repeat(129);
    for call in calls().iter().filter(|call| call.route.contains("{id}")) {
        for id in bad.iter().copied().chain([long.as_str()]) {
            let path = call.route.replace("{id}", id).replace("{user}", "ann");
            let keyed = client.keyed("key");
            let content_type = (!call.body.is_null()).then_some("application/json");
            let body = call.body.to_string().into_bytes();
            keyed.send(call.method, &path, content_type, body).await.expect_invalid("id");
            keyed.send(call.method, &path, content_type, b"{".to_vec()).await.expect_invalid("id");
        }
        let empty = call.route.replace("{id}", "").replace("{user}", "ann");
        let refused = client.send(call.method, &empty, None, Vec::new()).await;
        if call.route.ends_with("{id}") {
            refused.expect_problem(404, "not-found");
        } else {
            refused.expect_invalid("id");
        }
    }
    for user in bad.iter().copied().chain([long.as_str()]) {
        let refused = client.get(&format!("/v1/coupons/c/issues/{user}")).await;
        refused.expect_problem(400, "invalid");
    }
    for id in ["a", "A-Z.0_9:@", &"x".repeat(128)] {
        let made = client.put(&format!("/v1/coupons/{id}"), json!({ "quantity": 1 })).await;
        assert_eq!((made.status.as_u16(), &made.body["id"]), (201, &json!(id)));
        assert_eq!(client.get(&format!("/v1/coupons/{id}")).await.body["id"], id);
    }
}

#[tokio::test]
async fn a_bad_user_is_refused_wherever_one_is_named() {
    let client = Client::admin();
    let before = everything(&client).await;
    let long = "x".repeat(129);
    for call in with_bodies().filter(|call| call.body.get("user").is_some()) {
        for user in ["", " ", "a b", "a/b", "ü", "🎟", "a\u{0}b", "a\nb", "{a}", &long] {
            let mut body = call.body.clone();
            body["user"] = json!(user);
            call.with_body(&client, body.to_string().into()).await.expect_invalid("user");
        }
    }
    assert_eq!(everything(&client).await, before);
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_405() {
    let client = Client::admin();
    for call in calls() {
        let refused = client.send("PATCH", call.path, None, Vec::new()).await;
        let refused = refused.expect_problem(405, "method-not-allowed");
        let allowed = refused.headers["allow"].to_str().unwrap();
        assert!(allowed.split(',').any(|method| method == call.method), "{}: {allowed}", call.name());
    }
}
