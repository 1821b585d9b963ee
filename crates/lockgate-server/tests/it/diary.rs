//! What admins did, of all servers, for as long as the ledger is kept.

use std::time::Duration;

use lockgate::Gate;
use lockgate::ledger::Ledger;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Persistence, Postgres, Redis};
use lockgate_server::{LedgerDesk, Service, Tokens};
use serde_json::{Value, json};

use crate::client::Client;

const SOON: Duration = Duration::from_secs(30);

/// What servers share.
struct Base {
    redis: Redis,
    postgres: Postgres,
}

struct OneServer {
    client: Client,
    desk: LedgerDesk,
}

impl Base {
    fn start() -> Self {
        Self { redis: Redis::start(Persistence::Off).unwrap(), postgres: Postgres::start().unwrap() }
    }

    async fn serve(&self) -> OneServer {
        let gate = Gate::open(&self.redis.url()).await.unwrap();
        let desk = LedgerDesk::start(Ledger::open(&self.postgres.url()).await.unwrap(), &gate).unwrap();
        let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
        let mut service = Service::new(gate, tokens);
        service.ledger = Some(desk.view());
        let clock = service.clock.clone();
        OneServer { client: Client::of(service, clock), desk }
    }
}

impl OneServer {
    /// Says which coupons it was asked to create, the latest first, and whether it tells of all servers.
    async fn told(&self) -> (Vec<String>, bool) {
        let overview = self.client.get("/v1/overview").await.body;
        let actions = overview["actions"].as_array().unwrap().iter();
        let target = |action: &Value| action["target"].as_str().unwrap().replace("/v1/coupons/", "");
        (actions.map(target).collect(), overview["actions_of_all"].as_bool().unwrap())
    }

    async fn create(&self, coupon: &str) {
        let made = self.client.put(&format!("/v1/coupons/{coupon}"), json!({ "quantity": 1 })).await;
        assert_eq!(made.status, 201, "{}", made.body);
    }

    async fn until_told(&self, coupons: &[&str]) {
        let mut told = (Vec::new(), false);
        let comes = eventually_async(SOON, async || {
            told = self.told().await;
            told.1 && told.0 == coupons
        });
        assert!(comes.await, "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_tell_of_each_other_and_a_new_one_of_those_that_are_gone() {
    let base = Base::start();
    let (one, other) = (base.serve().await, base.serve().await);
    one.create("first").await;
    assert_eq!(one.told().await.0, ["first"], "its own at once");
    other.until_told(&["first"]).await;
    other.create("second").await;
    one.until_told(&["second", "first"]).await;
    one.client.as_(Some("Bearer hunter2")).put("/v1/coupons/third?token=hunter2", json!({})).await;
    other.until_told(&["third", "second", "first"]).await;
    let shown = other.client.get("/v1/overview").await.body["actions"].clone();
    assert_eq!((&shown[0]["action"], &shown[0]["outcome"]), (&json!("put-coupon"), &json!("unauthorized")));
    assert!(!shown.to_string().contains("hunter2") && !shown.to_string().contains("the-admin"), "{shown}");

    // What was done last is written before they end.
    one.create("fourth").await;
    one.desk.shut_down().await;
    other.desk.shut_down().await;
    let new = base.serve().await;
    new.until_told(&["fourth", "third", "second", "first"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_while_the_database_is_away_is_written_when_it_is_back() {
    let base = Base::start();
    let (one, other) = (base.serve().await, base.serve().await);
    one.create("before").await;
    other.until_told(&["before"]).await;
    base.postgres.kill();
    let away: Vec<_> = (0..150).map(|number| format!("away-{number}")).collect();
    for coupon in &away {
        one.create(coupon).await;
    }
    let (told, is_of_all) = one.told().await;
    assert!(!is_of_all, "it says that it cannot tell of the others");
    assert_eq!((told.len(), told[0].as_str(), told[150].as_str()), (151, "away-149", "before"));
    base.postgres.restart().unwrap();
    one.create("after").await;
    let all: Vec<_> =
        ["after"].into_iter().chain(away.iter().rev().map(String::as_str)).chain(["before"]).collect();
    other.until_told(&all).await;
}

#[tokio::test]
async fn without_a_ledger_a_server_tells_of_itself_and_says_so() {
    let client = Client::admin();
    client.put("/v1/coupons/c", json!({ "quantity": 1 })).await;
    let overview = client.get("/v1/overview").await.body;
    assert_eq!(
        (&overview["actions_of_all"], overview["actions"].as_array().unwrap().len()),
        (&json!(false), 1)
    );
}
