//! `/v1/lines/{id}/tickets`: entering, asking, finishing, leaving.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};
use serde_json::{Value, json};

use crate::client::{Answer, Client};

pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A minute after the fake clock's beginning (2026-01-01T00:00:00Z).
const IN_A_MINUTE: &str = "2026-01-01T00:01:00Z";

/// Enters, and gives back the path of the ticket.
pub(crate) async fn enter(client: &Client, line: &str, user: &str) -> String {
    let entered = client.post(&format!("/v1/lines/{line}/tickets"), json!({ "user": user })).await;
    assert!(entered.status.is_success(), "{}", entered.body);
    format!("/v1/lines/{line}/tickets/{}", entered.body["ticket"].as_str().unwrap())
}

pub(crate) async fn is_admitted(client: &Client, ticket: &str) -> bool {
    state_of(client, ticket).await == "admitted"
}

pub(crate) async fn state_of(client: &Client, ticket: &str) -> String {
    client.get(ticket).await.body["state"].as_str().unwrap_or_default().to_owned()
}

/// Enters a line that admits at once, and waits for the turn.
pub(crate) async fn enter_and_be_admitted(client: &Client, line: &str, user: &str) -> String {
    let ticket = enter(client, line, user).await;
    assert!(eventually_async(SOON, async || is_admitted(client, &ticket).await).await);
    ticket
}

/// Whether the turn comes, while a little time passes.
pub(crate) async fn is_admitted_soon(client: &Client, ticket: &str) -> bool {
    eventually_async(SOON, async || {
        client.clock.advance(Duration::from_millis(10));
        is_admitted(client, ticket).await
    })
    .await
}

/// Time passes for the line as it does for people: in small steps, each of which somebody notices.
pub(crate) async fn pass_time(client: &Client, seconds: f64) {
    let mut left = Duration::from_secs_f64(seconds);
    while !left.is_zero() {
        let step = left.min(Duration::from_millis(50));
        client.clock.advance(step);
        left -= step;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) async fn open(client: &Client, line: &str, terms: Value) {
    assert_eq!(client.put(&format!("/v1/lines/{line}"), terms).await.status, 201);
}

pub(crate) fn fast() -> Value {
    json!({ "batch": 100, "every_ms": 10 })
}

/// A line in which everybody waits.
pub(crate) async fn open_paused(client: &Client, line: &str) {
    open(client, line, json!({ "batch": 1, "every_ms": 1000, "grace_ms": null })).await;
    client.act(&format!("/v1/lines/{line}/pause")).await;
}

#[track_caller]
fn assert_kept_by_nobody(answer: &Answer) {
    assert_eq!(answer.headers["cache-control"], "no-store", "{}", answer.body);
}

#[tokio::test]
async fn entering_gives_a_place_once() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    for (user, position) in [("alice", 1), ("bob", 2)] {
        let body = json!({ "user": user });
        let entered = client.post("/v1/lines/tour/tickets", body.clone()).await;
        let ticket = entered.body["ticket"].as_str().unwrap().to_owned();
        let expected =
            json!({ "ticket": ticket, "state": "waiting", "position": position, "waiting": position });
        let again = client.post("/v1/lines/tour/tickets", body).await;
        for (answer, status) in [(entered, 201), (again, 200)] {
            assert_kept_by_nobody(&answer.expect(status, &expected));
        }
        let asked = client.get(&format!("/v1/lines/tour/tickets/{ticket}")).await;
        assert_kept_by_nobody(&asked.expect(200, &expected));
    }
}

#[tokio::test]
async fn a_line_that_moves_says_how_long_it_takes() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 1, "every_ms": 60_000, "max_active": 1 })).await;
    enter_and_be_admitted(&client, "tour", "alice").await;
    let bob = client.post("/v1/lines/tour/tickets", json!({ "user": "bob" })).await;
    assert!(bob.body["eta_ms"].as_u64().is_some_and(|eta_ms| eta_ms > 0), "{}", bob.body);
    assert!(bob.body.get("pass").is_none() && bob.body.get("until").is_none(), "{}", bob.body);
}

#[tokio::test]
async fn before_it_opens_and_after_it_closes_nobody_enters_but_who_is_in_is_told_so() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 100, "every_ms": 10, "opens_at": IN_A_MINUTE })).await;
    let alice = json!({ "user": "alice" });
    let early = client.post("/v1/lines/tour/tickets", alice.clone()).await.expect_problem(403, "not-open");
    assert_eq!(early.body["opens_at"], IN_A_MINUTE);
    assert_kept_by_nobody(&early);

    client.clock.advance(Duration::from_secs(60));
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    client.act("/v1/lines/tour/pause").await;
    let waiting = enter(&client, "tour", "bob").await;
    client.act("/v1/lines/tour/close").await;
    for user in ["bob", "carol"] {
        let refused = client.post("/v1/lines/tour/tickets", json!({ "user": user })).await;
        refused.expect_problem(403, "closed");
    }
    assert_eq!(state_of(&client, &waiting).await, "closed");
    let again = client.post("/v1/lines/tour/tickets", alice).await;
    assert_eq!((again.status.as_u16(), &again.body["state"]), (200, &json!("admitted")));
    assert!(ticket.ends_with(again.body["ticket"].as_str().unwrap()));
    assert!(again.body["pass"].is_string());
}

#[tokio::test]
async fn a_bad_user_is_refused() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let long = "x".repeat(129);
    for user in ["", " ", "a b", "a/b", "{a}", "ü", "🎟", "a\u{0}b", "a\nb", &long] {
        client.post("/v1/lines/tour/tickets", json!({ "user": user })).await.expect_invalid("user");
    }
    for body in [json!({}), json!({ "user": null }), json!({ "user": 7 }), json!({ "user": ["a"] })] {
        client.post("/v1/lines/tour/tickets", body).await.expect_invalid("user");
    }
    let unknown_field = json!({ "user": "a", "position": 1 });
    client.post("/v1/lines/tour/tickets", unknown_field).await.expect_invalid("position");
    assert_eq!(client.get("/v1/lines/tour").await.body["arrived"], 0);
}

/// Each answer of all calls on a ticket.
async fn all_calls(client: &Client, ticket: &str) -> Vec<Answer> {
    vec![
        client.get(ticket).await,
        client.act(&format!("{ticket}/finish")).await,
        client.act(&format!("{ticket}/renew")).await,
        client.get(&format!("{ticket}/events")).await,
        client.delete(ticket).await,
    ]
}

#[tokio::test]
async fn what_is_no_ticket_of_the_line_is_unknown_whatever_is_done_with_it() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    open_paused(&client, "other").await;
    let ticket = enter(&client, "tour", "alice").await;
    let text = ticket.rsplit_once('/').unwrap().1;
    let last = if text.ends_with('0') { "1" } else { "0" };
    let forged = format!("{}{last}", &text[..text.len() - 1]);
    let later = text.replacen("0-", "1-", 1);
    for wrong in [
        "x",
        "0",
        "%20",
        "%FF",
        "%00",
        "..%2F..",
        "-1-0-00",
        "99999999999999999999-0-00",
        &text.to_uppercase(),
        &"9".repeat(5000),
        &forged,
        &later,
        "👻",
    ] {
        let wrong = wrong.replace('👻', "%F0%9F%91%BB");
        if wrong == text {
            continue;
        }
        for answer in all_calls(&client, &format!("/v1/lines/tour/tickets/{wrong}")).await {
            assert_kept_by_nobody(&answer.expect_problem(404, "unknown-ticket"));
        }
    }
    for line in ["other", "nope"] {
        for answer in all_calls(&client, &format!("/v1/lines/{line}/tickets/{text}")).await {
            answer.expect_problem(404, "unknown-ticket");
        }
    }
    assert_eq!(client.get(&ticket).await.body["position"], 1, "and nothing has happened to the real one");
}

#[tokio::test]
async fn a_ticket_needs_no_token() {
    let client = Client::admin_with_app_token();
    open(&client, "tour", fast()).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    for stranger in [client.as_(None), client.as_(Some("Bearer wrong"))] {
        for path in [ticket.clone(), format!("{ticket}/events")] {
            assert_eq!(stranger.get(&path).await.status, 200, "{path}");
        }
        for what in ["renew", "renew"] {
            assert_eq!(stranger.act(&format!("{ticket}/{what}")).await.status, 200);
        }
    }
    let stranger = client.as_(None);
    assert_eq!(stranger.act(&format!("{ticket}/finish")).await.status, 200);
    assert_eq!(stranger.delete(&ticket).await.status, 200);
}

#[tokio::test]
async fn finishing_makes_room_for_the_next_and_may_be_repeated() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 1, "every_ms": 10, "max_active": 1, "grace_ms": null })).await;
    let alice = enter_and_be_admitted(&client, "tour", "alice").await;
    let bob = enter(&client, "tour", "bob").await;
    pass_time(&client, 0.5).await;
    assert_eq!(state_of(&client, &bob).await, "waiting");

    for what in ["finish", "renew"] {
        let refused = client.act(&format!("{bob}/{what}")).await.expect_problem(409, "not-admitted");
        assert_eq!((&refused.body["state"], &refused.body["position"]), (&json!("waiting"), &json!(1)));
        assert_kept_by_nobody(&refused);
    }
    assert_eq!(state_of(&client, &bob).await, "waiting", "who asks too early keeps the place");

    for _ in 0..2 {
        let finished = client.act(&format!("{alice}/finish")).await;
        let ticket = alice.rsplit_once('/').unwrap().1;
        assert_kept_by_nobody(&finished.expect(200, &json!({ "ticket": ticket, "state": "finished" })));
    }
    let refused = client.act(&format!("{alice}/renew")).await.expect_problem(409, "not-admitted");
    assert_eq!(refused.body["state"], "finished");
    assert_eq!(client.delete(&alice).await.body["state"], "finished", "how it had ended stays");

    assert!(is_admitted_soon(&client, &bob).await);
    let line = client.get("/v1/lines/tour").await.body;
    assert_eq!((&line["finished"], &line["active"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn who_leaves_makes_room_and_may_say_so_again() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let [alice, bob] = [enter(&client, "tour", "alice").await, enter(&client, "tour", "bob").await];
    for _ in 0..2 {
        let left = client.delete(&alice).await;
        assert_eq!((left.status.as_u16(), &left.body["state"]), (200, &json!("left")));
        assert_kept_by_nobody(&left);
    }
    assert_eq!(client.get(&alice).await.body["state"], "left");
    assert_eq!(client.get(&bob).await.body["position"], 1);
    let refused = client.act(&format!("{alice}/finish")).await.expect_problem(409, "not-admitted");
    assert_eq!(refused.body["state"], "left");
    assert_ne!(enter(&client, "tour", "alice").await, alice, "who comes back has a new place");
    assert_eq!(client.get("/v1/lines/tour").await.body["left"], 1);
}

#[tokio::test]
async fn how_it_ended_is_told() {
    let client = Client::admin();
    let terms = json!({ "batch": 1, "every_ms": 10, "grace_ms": 1000, "pass_ttl_ms": 3000 });
    open(&client, "tour", terms).await;
    let expired = enter_and_be_admitted(&client, "tour", "alice").await;
    let no_show = enter(&client, "tour", "bob").await;
    pass_time(&client, 4.0).await;
    assert_eq!(state_of(&client, &no_show).await, "no-show");
    assert_eq!(state_of(&client, &expired).await, "expired");
    client.act(&format!("{expired}/renew")).await.expect_problem(409, "not-admitted");

    client.act("/v1/lines/tour/pause").await;
    let abandoned = enter(&client, "tour", "carol").await;
    pass_time(&client, 2.0).await;
    client.act("/v1/lines/tour/resume").await;
    pass_time(&client, 0.5).await;
    assert_eq!(state_of(&client, &abandoned).await, "abandoned");
    let line = client.get("/v1/lines/tour").await.body;
    let counts = ["expired", "no_shows", "abandoned"].map(|count| line[count].as_u64());
    assert_eq!(counts, [Some(1); 3], "{line}");
}

/// The whole way on a store that does not answer at once, so that positions come from the last tick.
#[tokio::test(flavor = "multi_thread")]
async fn on_redis_people_come_wait_are_admitted_and_go() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let client = Client::on(Arc::clone(gate.store()), Clock::system(), None);
    let terms = json!({ "batch": 1, "every_ms": 10, "max_active": 1, "grace_ms": null });
    open(&client, "tour", terms).await;
    let alice = enter_and_be_admitted(&client, "tour", "alice").await;
    let pass = client.get(&alice).await.body["pass"].as_str().unwrap().to_owned();
    assert_eq!(client.passes.verifier().authenticate(&pass).unwrap().user().as_str(), "alice");
    let tickets = [enter(&client, "tour", "bob").await, enter(&client, "tour", "carol").await];
    let positions = async || {
        let [bob, carol] = [client.get(&tickets[0]).await, client.get(&tickets[1]).await];
        [bob.body["position"].as_u64(), carol.body["position"].as_u64()]
    };
    assert!(eventually_async(SOON, async || positions().await == [Some(1), Some(2)]).await);
    client.act(&format!("{}/renew", tickets[0])).await.expect_problem(409, "not-admitted");

    assert_eq!(client.delete(&tickets[0]).await.body["state"], "left");
    assert_eq!(client.get(&tickets[1]).await.body["position"], 1, "what was done here is seen at once");
    assert_eq!(client.act(&format!("{alice}/finish")).await.body["state"], "finished");
    assert!(eventually_async(SOON, async || is_admitted(&client, &tickets[1]).await).await);

    client.act("/v1/lines/tour/close").await;
    let text = alice.rsplit_once('/').unwrap().1;
    client.get(&format!("/v1/lines/other/tickets/{text}")).await.expect_problem(404, "unknown-ticket");
    assert_eq!(client.delete("/v1/lines/tour").await.status, 204);
    client.get(&alice).await.expect_problem(404, "unknown-ticket");
}
