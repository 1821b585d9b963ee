//! `/v1/locks`: who may act now.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::memory::MemoryStore;
use lockgate_server::{Service, Tokens};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Answer, Client};

async fn take(client: &Client, owner: &str, wait_ms: u64, lease_ms: u64) -> Answer {
    let wish = json!({ "owner": owner, "wait_ms": wait_ms, "lease_ms": lease_ms });
    client.post("/v1/locks/door", wish).await
}

/// Somebody who waits, and is in the queue when this returns.
async fn waiter(client: &Client, owner: &'static str, wait_ms: u64) -> JoinHandle<Answer> {
    let before = waiting(client).await;
    let asking = {
        let client = client.clone();
        tokio::spawn(async move { take(&client, owner, wait_ms, 10_000).await })
    };
    until_waiting(client, before + 1).await;
    asking
}

async fn waiting(client: &Client) -> u64 {
    client.get("/v1/locks/door").await.body["waiting"].as_u64().unwrap()
}

async fn until_waiting(client: &Client, number: u64) {
    let looking = async {
        while waiting(client).await != number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.unwrap();
}

/// The answer of somebody who need not wait any more.
async fn answered(asking: JoinHandle<Answer>) -> Answer {
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap().unwrap()
}

async fn renew(client: &Client, token: &Value, lease_ms: u64) -> Answer {
    client.post("/v1/locks/door/renew", json!({ "token": token, "lease_ms": lease_ms })).await
}

async fn release(client: &Client, token: &Value) -> Answer {
    client.with("Lockgate-Token", token.as_str().unwrap()).delete("/v1/locks/door").await
}

fn fence(answer: &Answer) -> u64 {
    answer.body["fence"].as_u64().unwrap()
}

#[tokio::test]
async fn a_free_lock_is_given_with_a_token_a_fence_and_its_lease() {
    let client = Client::admin();
    let taken = take(&client, "ann", 0, 10_000).await;
    assert_eq!(taken.status, 200);
    let token = taken.body["token"].as_str().unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    assert!(fence(&taken) > 0);
    assert_eq!(taken.body, json!({ "token": token, "fence": fence(&taken), "lease_ms": 10_000 }));
    // Another lock has nothing to do with it.
    let other = json!({ "owner": "bob", "wait_ms": 0, "lease_ms": 10_000 });
    assert_eq!(client.post("/v1/locks/window", other).await.status, 200);
}

#[tokio::test]
async fn the_same_owner_is_given_the_same_token_while_it_holds_the_lock() {
    let client = Client::admin();
    let first = take(&client, "ann", 0, 10_000).await;
    client.clock.advance(Duration::from_secs(6));
    let again = take(&client, "ann", 0, 10_000).await;
    let (token, fence) = (&first.body["token"], fence(&first));
    let expected = json!({ "token": token, "fence": fence, "lease_ms": 10_000, "replayed": true });
    let again = again.expect(200, &expected);
    // Its lease has begun anew.
    client.clock.advance(Duration::from_secs(6));
    take(&client, "bob", 0, 10_000).await.expect_problem(423, "locked");
    assert_eq!(release(&client, &again.body["token"]).await.status, 204);
    let later = take(&client, "ann", 0, 10_000).await;
    assert_ne!(&later.body["token"], token, "a new tenure has a new token");
}

#[tokio::test]
async fn a_taken_lock_is_423_and_says_when_to_ask_again() {
    let client = Client::admin();
    take(&client, "ann", 0, 10_000).await;
    client.clock.advance(Duration::from_secs(3));
    let refused = take(&client, "bob", 0, 10_000).await.expect_problem(423, "locked");
    assert_eq!(refused.body["retry_after_ms"], 7_000);
    assert!(refused.body.get("token").is_none());
    assert_eq!(waiting(&client).await, 0, "who does not wait is not in the queue");
}

#[tokio::test]
async fn who_waits_gets_it_when_it_is_given_back_first_come_first_served() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 10_000).await;
    let bob = waiter(&client, "bob", 5_000).await;
    let carl = waiter(&client, "carl", 5_000).await;
    let dora = waiter(&client, "dora", 5_000).await;
    let mut holder = ann;
    for (next, left) in [(bob, 2), (carl, 1), (dora, 0)] {
        assert!(!next.is_finished());
        assert_eq!(release(&client, &holder.body["token"]).await.status, 204);
        let given = answered(next).await;
        assert_eq!((given.status.as_u16(), &given.body["lease_ms"]), (200, &json!(10_000)));
        assert!(fence(&given) > fence(&holder));
        assert_eq!(waiting(&client).await, left);
        assert_eq!(
            fence(&client.get("/v1/locks/door").await),
            fence(&given),
            "it is told the same elsewhere"
        );
        // It has its whole lease, not only a claim.
        client.clock.advance(Duration::from_millis(1_000));
        assert_eq!(renew(&client, &given.body["token"], 10_000).await.status, 200);
        holder = given;
    }
}

#[tokio::test]
async fn who_waits_in_vain_is_told_so_after_wait_ms_and_leaves_the_queue() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 60_000).await;
    let (clock, patience) = (Clock::system(), Duration::from_millis(200));
    let start = clock.monotonic();
    let refused = take(&client, "bob", 200, 10_000).await.expect_problem(423, "locked");
    assert!(clock.monotonic().since(start) >= patience, "it waits as long as it was told to");
    assert_eq!(refused.body["retry_after_ms"], 60_000);
    until_waiting(&client, 0).await;
    assert_eq!(renew(&client, &ann.body["token"], 60_000).await.status, 200);
}

#[tokio::test]
async fn who_goes_away_while_waiting_does_not_get_it() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 10_000).await;
    let bob = waiter(&client, "bob", 5_000).await;
    let carl = waiter(&client, "carl", 5_000).await;
    bob.abort();
    until_waiting(&client, 1).await;
    release(&client, &ann.body["token"]).await;
    assert_eq!(answered(carl).await.status, 200);
}

#[tokio::test]
async fn an_owner_that_asks_twice_while_it_waits_is_given_one_lock() {
    let (one, two) = loop {
        let client = Client::admin();
        let ann = take(&client, "ann", 0, 10_000).await;
        let (one, two) = (waiter(&client, "bob", 20_000).await, waiter(&client, "bob", 250).await);
        release(&client, &ann.body["token"]).await;
        // On a machine that is very busy the second has given up before.
        if !two.is_finished() {
            break (answered(one).await, answered(two).await);
        }
    };
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200), "{}", two.body);
    assert_eq!((&two.body["token"], fence(&two)), (&one.body["token"], fence(&one)));
}

#[tokio::test]
async fn a_lease_that_nobody_renews_ends_and_the_next_one_waits_no_longer() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 10_000).await;
    let bob = waiter(&client, "bob", 60_000).await;
    client.clock.advance(Duration::from_millis(10_000));
    let given = loop {
        // Whoever looks after the queue does so a little later than the lease ends.
        if bob.is_finished() {
            break answered(bob).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.clock.advance(Duration::from_millis(10));
    };
    assert_eq!(given.status, 200, "{}", given.body);
    assert!(fence(&given) > fence(&ann));
    renew(&client, &ann.body["token"], 10_000).await.expect_problem(409, "not-held");
    release(&client, &ann.body["token"]).await.expect_problem(409, "not-held");
    assert_eq!(renew(&client, &given.body["token"], 10_000).await.status, 200);
}

#[tokio::test]
async fn renewing_lets_the_lease_begin_anew() {
    let client = Client::admin();
    let token = take(&client, "ann", 0, 10_000).await.body["token"].clone();
    for _ in 0..3 {
        client.clock.advance(Duration::from_millis(9_999));
        renew(&client, &token, 10_000).await.expect(200, &json!({ "lease_ms": 10_000 }));
    }
    renew(&client, &token, 2_000).await.expect(200, &json!({ "lease_ms": 2_000 }));
    let refused = take(&client, "bob", 0, 10_000).await.expect_problem(423, "locked");
    assert_eq!(refused.body["retry_after_ms"], 2_000, "it may become shorter as well");
    client.clock.advance(Duration::from_millis(2_000));
    renew(&client, &token, 10_000).await.expect_problem(409, "not-held");
    assert_eq!(take(&client, "bob", 0, 10_000).await.status, 200);
}

#[tokio::test]
async fn a_lock_is_given_back_by_header_or_by_query() {
    let client = Client::admin();
    let token = take(&client, "ann", 0, 10_000).await.body["token"].clone();
    let released = release(&client, &token).await;
    assert_eq!((released.status.as_u16(), released.body), (204, Value::Null));
    assert_eq!(release(&client, &token).await.status, 204, "a repetition is answered the same");

    let token = take(&client, "bob", 0, 10_000).await.body["token"].clone();
    let token = token.as_str().unwrap();
    assert_eq!(client.delete(&format!("/v1/locks/door?token={token}")).await.status, 204);
    assert_eq!(client.get("/v1/locks/door").await.body["held"], false);
    assert_eq!(take(&client, "carl", 0, 10_000).await.status, 200);
}

#[tokio::test]
async fn a_wrong_token_neither_renews_nor_releases() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 10_000).await.body["token"].clone();
    let other = json!({ "owner": "ann", "wait_ms": 0, "lease_ms": 10_000 });
    let elsewhere = client.post("/v1/locks/window", other).await.body["token"].clone();
    let flipped = if ann.as_str().unwrap().ends_with('0') { "1" } else { "0" };
    let near = format!("{}{flipped}", &ann.as_str().unwrap()[..31]);
    let long = format!("{}0", ann.as_str().unwrap());
    for wrong in [json!(near), json!(long), elsewhere, json!("x"), json!(""), json!("0".repeat(32))] {
        renew(&client, &wrong, 10_000).await.expect_problem(409, "not-held");
        release(&client, &wrong).await.expect_problem(409, "not-held");
        let query = format!("/v1/locks/door?token={}", wrong.as_str().unwrap());
        client.delete(&query).await.expect_problem(409, "not-held");
    }
    client.delete("/v1/locks/door").await.expect_invalid("Lockgate-Token");
    for query in ["token=a&token=b", "colour=red"] {
        client.delete(&format!("/v1/locks/door?{query}")).await.expect_invalid("token");
    }
    assert_eq!(renew(&client, &ann, 10_000).await.status, 200);
    client.delete("/v1/locks/nobody-has-asked").await.expect_invalid("Lockgate-Token");
    let nobodys = client.with("Lockgate-Token", ann.as_str().unwrap());
    nobodys.delete("/v1/locks/nobody-has-asked").await.expect_problem(409, "not-held");
}

#[tokio::test]
async fn fences_rise_however_the_lock_changes_hands() {
    let client = Client::admin();
    let mut fences = Vec::new();
    let released = take(&client, "ann", 0, 10_000).await;
    fences.push(fence(&released));
    release(&client, &released.body["token"]).await;
    fences.push(fence(&take(&client, "ann", 0, 10_000).await));
    client.clock.advance(Duration::from_secs(10));
    fences.push(fence(&take(&client, "bob", 0, 10_000).await));
    fences.push(fence(&client.post("/v1/locks/door/break", json!({})).await));
    fences.push(fence(&take(&client, "carl", 0, 10_000).await));
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
}

#[tokio::test]
async fn how_a_lock_stands_is_told_without_its_token() {
    let client = Client::admin();
    let free = client.get("/v1/locks/door").await;
    let body = json!({ "key": "door", "held": false, "fence": free.body["fence"], "waiting": 0 });
    free.expect(200, &body);
    let taken = take(&client, "ann", 0, 10_000).await;
    client.clock.advance(Duration::from_secs(4));
    let bob = waiter(&client, "bob", 5_000).await;
    let body = json!({
        "key": "door", "held": true, "owner": "ann", "fence": fence(&taken), "lease_left_ms": 6_000, "waiting": 1,
    });
    client.get("/v1/locks/door").await.expect(200, &body);
    bob.abort();
}

#[tokio::test]
async fn an_admin_breaks_a_lock_and_the_next_one_gets_it() {
    let client = Client::admin();
    let ann = take(&client, "ann", 0, 10_000).await;
    client.as_(None).post("/v1/locks/door/break", json!({})).await.expect_problem(401, "unauthorized");
    let bob = waiter(&client, "bob", 5_000).await;
    let broken = client.post("/v1/locks/door/break", json!({})).await;
    assert_eq!((broken.status.as_u16(), &broken.body["key"]), (200, &json!("door")));
    assert!(fence(&broken) > fence(&ann));
    assert_eq!(answered(bob).await.status, 200);
    renew(&client, &ann.body["token"], 10_000).await.expect_problem(409, "not-held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_ask_at_once_one_gets_it() {
    let client = Client::admin();
    let asking = (0..50).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { take(&client, &format!("owner-{number}"), 0, 10_000).await.status })
    });
    let mut given = 0;
    for answer in asking.collect::<Vec<_>>() {
        let status = answer.await.unwrap().as_u16();
        assert!([200, 423].contains(&status), "{status}");
        given += u32::from(status == 200);
    }
    assert_eq!(given, 1);
}

#[tokio::test]
async fn bad_wishes_are_refused_and_take_nothing() {
    let client = Client::admin();
    let good = json!({ "owner": "ann", "wait_ms": 0, "lease_ms": 10_000 });
    for (field, wrong) in [
        ("owner", json!("")),
        ("owner", json!("a b")),
        ("owner", json!("ü")),
        ("owner", json!("x".repeat(129))),
        ("owner", json!(5)),
        ("wait_ms", json!(-1)),
        ("wait_ms", json!(1.5)),
        ("wait_ms", json!(60_001)),
        ("wait_ms", json!(u64::MAX)),
        ("wait_ms", json!("5")),
        ("lease_ms", json!(0)),
        ("lease_ms", json!(-1)),
        ("lease_ms", json!(0.5)),
        ("lease_ms", json!(86_400_001)),
        ("lease_ms", json!(u64::MAX)),
    ] {
        let mut wish = good.clone();
        wish[field] = wrong;
        client.post("/v1/locks/door", wish).await.expect_invalid(field);
    }
    assert_eq!(client.get("/v1/locks/door").await.body["held"], false);
    let token = take(&client, "ann", 60_000, 86_400_000).await.body["token"].clone();
    for lease_ms in [0, 86_400_001, u64::MAX] {
        renew(&client, &token, lease_ms).await.expect_invalid("lease_ms");
    }
    for token in [json!(5), json!(null), json!([])] {
        renew(&client, &token, 1).await.expect_invalid("token");
    }
    assert_eq!(client.get("/v1/locks/door").await.body["lease_left_ms"], 86_400_000);
}

/// A wait that was asked for is no call that takes too long.
#[tokio::test]
async fn who_asks_to_wait_may_wait_longer_than_calls_may_take() {
    let mut service = Service::new(
        Gate::on(Arc::new(MemoryStore::new(Clock::system()))),
        Tokens { admin: "the-admin".parse().unwrap(), app: None },
    );
    service.edge.request_timeout = Duration::from_millis(200);
    let client = Client::of(service, Clock::system());
    let ask = |owner: &str, wait_ms: u64| json!({ "owner": owner, "wait_ms": wait_ms, "lease_ms": 60_000 });
    assert_eq!(client.post("/v1/locks/k", ask("a", 0)).await.status, 200);
    client.post("/v1/locks/k", ask("b", 600)).await.expect_problem(423, "locked");
}
