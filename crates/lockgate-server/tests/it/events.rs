//! `…/events`: where somebody stands, as it changes.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt as _;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Redis};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::client::Client;
use crate::tickets::{SOON, enter, enter_and_be_admitted, fast, open, open_paused, pass_time, state_of};

/// A stream that is being read.
struct Events(BodyDataStream);

impl Events {
    async fn of(client: &Client, ticket: &str) -> Self {
        let response = client.request("GET", &format!("{ticket}/events"), &[], Vec::new()).await;
        assert_eq!(response.status(), 200);
        Self(response.into_body().into_data_stream())
    }

    /// What comes next as it was sent; `None` at the end.
    async fn raw(&mut self) -> Option<String> {
        let chunk = timeout(SOON, self.0.next()).await.expect("nothing comes")?;
        Some(String::from_utf8(chunk.unwrap().to_vec()).unwrap())
    }

    /// What the next event says.
    async fn next(&mut self) -> Option<Value> {
        self.raw().await.as_deref().map(said)
    }

    /// Reads on until the event that says so; those before it may tell how the line has grown.
    async fn until(&mut self, member: &str, value: &Value) {
        while self.next().await.expect("it ends before")[member] != *value {}
    }
}

fn said(raw: &str) -> Value {
    let data = raw.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no event: {raw}"))).unwrap()
}

#[tokio::test]
async fn every_change_is_told_until_the_last() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let [alice, bob] = [enter(&client, "tour", "alice").await, enter(&client, "tour", "bob").await];
    let response = client.as_(None).request("GET", &format!("{bob}/events"), &[], Vec::new()).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-accel-buffering"), "no");

    let mut events = Events(response.into_body().into_data_stream());
    let first = events.raw().await.unwrap();
    assert!(first.contains("retry: 3000\n") && !first.contains("id: "), "{first}");
    assert_eq!(said(&first), client.get(&bob).await.body, "as GET answers");

    client.delete(&alice).await;
    events.until("position", &json!(1)).await;
    client.act("/v1/lines/tour/resume").await;
    let last = loop {
        let raw = events.raw().await.expect("the turn comes before the end");
        if raw.contains("\"admitted\"") {
            break raw;
        }
    };
    assert!(last.contains("id: end\n") && last.contains("\"pass\""), "{last}");
    assert_eq!(events.raw().await, None, "nothing changes any more by waiting");
}

#[tokio::test]
async fn who_has_heard_the_end_is_not_told_again() {
    let client = Client::admin();
    open(&client, "tour", fast()).await;
    let ticket = enter_and_be_admitted(&client, "tour", "alice").await;
    let path = format!("{ticket}/events");
    let again = client.request("GET", &path, &[("last-event-id", "end")], Vec::new()).await;
    assert_eq!(again.status(), 204);
    let mut events = Events::of(&client, &ticket).await;
    assert_eq!(events.next().await.unwrap()["state"], "admitted");
    assert_eq!(events.raw().await, None);
}

#[tokio::test]
async fn a_server_that_stops_ends_the_streams_at_once() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let ticket = enter(&client, "tour", "alice").await;
    let mut events = Events::of(&client, &ticket).await;
    assert_eq!(events.next().await.unwrap()["position"], 1);
    client.closing.cancel();
    let ended = timeout(Duration::from_secs(1), events.raw()).await.expect("it goes on");
    assert_eq!(ended, None);
}

#[tokio::test]
async fn who_watches_is_there_and_who_goes_away_is_not() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 1, "every_ms": 10, "grace_ms": 1000 })).await;
    client.act("/v1/lines/tour/pause").await;
    let [stays, goes] = [enter(&client, "tour", "alice").await, enter(&client, "tour", "bob").await];
    let mut watched = Events::of(&client, &stays).await;
    let mut left_behind = Events::of(&client, &goes).await;
    for events in [&mut watched, &mut left_behind] {
        assert_eq!(events.next().await.unwrap()["state"], "waiting");
    }
    let reading = tokio::spawn(async move {
        let mut last = Value::Null;
        while let Some(event) = watched.next().await {
            last = event;
        }
        last
    });
    pass_time(&client, 0.5).await;
    drop(left_behind);
    pass_time(&client, 3.0).await;
    client.act("/v1/lines/tour/resume").await;
    pass_time(&client, 0.5).await;
    assert_eq!(reading.await.unwrap()["state"], "admitted");
    assert_eq!(state_of(&client, &goes).await, "abandoned");
}

#[tokio::test]
async fn a_connection_that_is_cut_ends_the_watch() {
    let client = Client::admin();
    open(&client, "tour", json!({ "batch": 1, "every_ms": 10, "grace_ms": 1000 })).await;
    client.act("/v1/lines/tour/pause").await;
    let ticket = enter(&client, "tour", "alice").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(axum::serve(listener, client.router()).into_future());
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {ticket}/events HTTP/1.1\r\nHost: lockgate\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("data: ") {
        assert_ne!(timeout(SOON, connection.read_buf(&mut received)).await.unwrap().unwrap(), 0);
    }
    drop(connection);
    pass_time(&client, 3.0).await;
    client.act("/v1/lines/tour/resume").await;
    pass_time(&client, 0.5).await;
    assert_eq!(state_of(&client, &ticket).await, "abandoned");
    serving.abort();
}

#[tokio::test]
async fn a_ticket_that_is_unknown_has_no_stream() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let ticket = enter(&client, "tour", "alice").await;
    let mut events = Events::of(&client, &ticket).await;
    events.next().await.unwrap();
    client.act("/v1/lines/tour/close").await;
    events.until("state", &json!("closed")).await;
    client.delete("/v1/lines/tour").await;
    client.get(&format!("{ticket}/events")).await.expect_problem(404, "unknown-ticket");
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_comes_every_15_seconds() {
    let client = Client::admin();
    open_paused(&client, "tour").await;
    let ticket = enter(&client, "tour", "alice").await;
    let mut events = Events::of(&client, &ticket).await;
    events.next().await.unwrap();
    for _ in 0..2 {
        let sign = timeout(Duration::from_millis(15_100), events.0.next()).await.expect("nothing comes");
        assert!(sign.unwrap().unwrap().starts_with(b":"), "a comment is no event");
    }
}

#[tokio::test]
async fn a_store_that_is_away_for_a_while_ends_no_stream() {
    let clock = Clock::fake();
    let store = Arc::new(BreakableStore::new(Arc::new(MemoryStore::new(clock.clone()))));
    let client = Client::on(Arc::clone(&store) as _, clock, None);
    open_paused(&client, "tour").await;
    let ticket = enter(&client, "tour", "alice").await;
    let mut events = Events::of(&client, &ticket).await;
    assert_eq!(events.next().await.unwrap()["position"], 1);
    client.act("/v1/lines/tour/resume").await;
    let is_her_turn = async || {
        client.clock.advance(Duration::from_millis(10));
        client.get("/v1/lines/tour").await.body["admitted"] == 1
    };
    assert!(eventually_async(SOON, is_her_turn).await);

    store.break_all(Break::Refuse);
    client.get(&ticket).await.expect_problem(503, "unavailable");
    client.get(&format!("{ticket}/events")).await.expect_problem(503, "unavailable");
    let nothing = timeout(Duration::from_millis(300), events.raw()).await;
    assert!(nothing.is_err(), "it waits for the store: {nothing:?}");
    store.heal();
    events.until("state", &json!("admitted")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_a_watcher_hears_of_an_admission_that_was_asked_for_twice() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let client = Client::on(Arc::clone(gate.store()), Clock::system(), None);
    open_paused(&client, "tour").await;
    let [alice, bob] = [enter(&client, "tour", "alice").await, enter(&client, "tour", "bob").await];
    let [mut first, mut second] = [Events::of(&client, &alice).await, Events::of(&client, &bob).await];
    assert_eq!(first.next().await.unwrap()["position"], 1);
    assert_eq!(second.next().await.unwrap()["position"], 2);
    let admit = async |count: u32| {
        let key = ("idempotency-key", "once");
        client.post_with("/v1/lines/tour/admit", key, json!({ "count": count })).await
    };
    assert_eq!(admit(1).await.status, 201);
    admit(1).await.expect(200, &json!({ "line": "tour", "count": 1, "replayed": true }));
    admit(2).await.expect_problem(422, "idempotency-key-reused");
    first.until("state", &json!("admitted")).await;
    assert_eq!(first.raw().await, None);
    second.until("position", &json!(1)).await;
    assert_eq!(client.get("/v1/lines/tour").await.body["admitted"], 1, "and the next only moves up");
}
