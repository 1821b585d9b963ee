//! Dead letters over HTTP: a database that refuses something, and what an admin can do about it.

use std::time::Duration;

use lockgate::Gate;
use lockgate::ledger::Ledger;
use lockgate::testing::eventually_async;
use lockgate_server::{LedgerDesk, Service, Tokens};
use serde_json::{Value, json};
use sqlx::SqlitePool;
use tempfile::TempDir;

use crate::client::Client;

const SOON: Duration = Duration::from_secs(20);

/// A service whose ledger does not take everybody.
struct Shop {
    client: Client,
    pool: SqlitePool,
    _desk: LedgerDesk,
    _folder: TempDir,
}

impl Shop {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/ledger.db", folder.path().display());
        let (ledger, gate) = (Ledger::open(&url).await.unwrap(), Gate::open("memory").await.unwrap());
        let pool = SqlitePool::connect(&url).await.unwrap();
        let desk = LedgerDesk::start(ledger, &gate).unwrap();
        let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
        let mut service = Service::new(gate, tokens);
        service.ledger = Some(desk.view());
        let clock = service.clock.clone();
        let shop = Self { client: Client::of(service, clock), pool, _desk: desk, _folder: folder };
        let refuse = "CREATE TRIGGER picky BEFORE INSERT ON lockgate_ledger WHEN NEW.user_id LIKE 'bad%' \
                      BEGIN SELECT RAISE(ABORT, 'we do not serve them'); END";
        shop.run(refuse).await;
        for coupon in ["a", "b"] {
            shop.client.put(&format!("/v1/coupons/{coupon}"), json!({ "quantity": 1000 })).await;
        }
        shop
    }

    async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&self.pool).await.unwrap();
    }

    async fn issue(&self, coupon: &str, user: &str) {
        let wish = json!({ "user": user });
        assert_eq!(self.client.post(&format!("/v1/coupons/{coupon}/issues"), wish).await.status, 201);
    }

    async fn list(&self, query: &str) -> Vec<Value> {
        let listed = self.client.get(&format!("/v1/dead-letters{query}")).await;
        assert_eq!(listed.status, 200, "{}", listed.body);
        listed.body["dead_letters"].as_array().unwrap().clone()
    }

    async fn until_dead(&self, count: usize) -> Vec<Value> {
        let mut letters = Vec::new();
        let come = eventually_async(SOON, async || {
            letters = self.list("").await;
            letters.len() == count
        });
        assert!(come.await, "{letters:?}");
        letters
    }

    async fn until_told(&self, dead_letters: u64, light: &str) {
        let mut told = Value::Null;
        let comes = eventually_async(SOON, async || {
            told = self.client.get("/readyz").await.body["ledger"].clone();
            told["dead_letters"] == dead_letters && told["audit"] == light
        });
        assert!(comes.await, "{told}");
    }

    async fn rows_of(&self, user: &'static str) -> i64 {
        let count = "SELECT COUNT(*) FROM lockgate_ledger WHERE user_id = ?";
        sqlx::query_scalar(count).bind(user).fetch_one(&self.pool).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_is_listed_replayed_when_the_cause_is_gone_and_then_gone_itself() {
    let shop = Shop::new().await;
    shop.until_told(0, "green").await;
    for (coupon, user) in [("a", "bad-1"), ("b", "bad-2"), ("a", "good"), ("a", "bad-3")] {
        shop.issue(coupon, user).await;
    }
    let letters = shop.until_dead(3).await;
    let campaigns: Vec<_> = letters.iter().map(|letter| letter["campaign"].as_str().unwrap()).collect();
    assert_eq!(campaigns, ["coupon::a", "coupon::b", "coupon::a"], "the oldest first");
    assert!(letters[0]["reason"].as_str().unwrap().contains("we do not serve them"), "{}", letters[0]);
    assert!(letters[0]["content"].as_str().unwrap().contains("bad-1"), "{}", letters[0]);
    assert_eq!((&letters[0]["rev"], &letters[0]["is_conflict"]), (&json!(2), &json!(false)));
    assert_eq!(shop.list("?campaign=coupon::b").await, [letters[1].clone()]);
    assert_eq!(shop.list("?campaign=coupon::c").await, [] as [Value; 0]);
    let path = |letter: &Value| format!("/v1/dead-letters/{}", letter["id"].as_str().unwrap());

    // The cause is still there: it is refused again, and stays.
    let refused = shop.client.act(&format!("{}/replay", path(&letters[0]))).await;
    let refused = refused.expect_problem(409, "still-refused");
    assert!(refused.body["detail"].as_str().unwrap().contains("we do not serve them"), "{}", refused.body);
    let refused = shop.client.act("/v1/dead-letters/replay").await;
    assert_eq!((refused.status.as_u16(), &refused.body["written"]), (200, &json!(0)), "{}", refused.body);
    assert_eq!(refused.body["refused"].as_array().unwrap().len(), 3);
    assert_eq!(refused.body["refused"][0]["id"], letters[0]["id"]);
    assert_eq!(shop.until_dead(3).await, letters);
    shop.until_told(3, "yellow").await;

    shop.run("DROP TRIGGER picky").await;
    assert_eq!(shop.client.act(&format!("{}/replay", path(&letters[0]))).await.status, 204);
    assert_eq!(shop.rows_of("bad-1").await, 1);
    let again = shop.client.act(&format!("{}/replay", path(&letters[0]))).await;
    again.expect_problem(404, "unknown-dead-letter");
    let replayed = shop.client.act("/v1/dead-letters/replay?campaign=coupon::b").await;
    replayed.expect(200, &json!({ "written": 1, "refused": [] }));
    assert_eq!(shop.until_dead(1).await, [letters[2].clone()], "those of another campaign stay");
    let replayed = shop.client.act("/v1/dead-letters/replay").await;
    replayed.expect(200, &json!({ "written": 1, "refused": [] }));
    assert_eq!((shop.rows_of("bad-2").await, shop.rows_of("bad-3").await), (1, 1));
    shop.until_told(0, "green").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_is_discarded_is_missing_for_good() {
    let shop = Shop::new().await;
    shop.issue("a", "bad").await;
    let letters = shop.until_dead(1).await;
    let path = format!("/v1/dead-letters/{}", letters[0]["id"].as_str().unwrap());
    assert_eq!(shop.client.delete(&path).await.status, 204);
    shop.client.delete(&path).await.expect_problem(404, "unknown-dead-letter");
    shop.until_dead(0).await;
    shop.until_told(0, "red").await;
}

/// More than one call goes through, and more than are listed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_replayed_some_at_a_time_past_those_that_stay() {
    let shop = Shop::new().await;
    for user in 0..203 {
        shop.issue("a", &format!("bad-{user}")).await;
    }
    let total = async || {
        let listed = shop.client.get("/v1/dead-letters").await.body;
        listed["dead_letters"].as_array().unwrap().len() as u64 + listed["more"].as_u64().unwrap()
    };
    assert!(eventually_async(SOON, async || total().await == 203).await);
    assert_eq!(shop.list("").await.len(), 100);
    // All stay; the second call goes on behind them.
    let first = shop.client.act("/v1/dead-letters/replay").await.body;
    assert_eq!(first["refused"].as_array().map(Vec::len), Some(200), "{first}");
    shop.run("DROP TRIGGER picky").await;
    let next = first["next"].as_str().unwrap();
    let second = shop.client.act(&format!("/v1/dead-letters/replay?after={next}")).await;
    second.expect(200, &json!({ "written": 3, "refused": [] }));
    assert_eq!(total().await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_sense_is_refused_and_a_server_without_a_ledger_says_so() {
    let shop = Shop::new().await;
    shop.client.get("/v1/dead-letters?campaign=summer").await.expect_invalid("campaign");
    shop.client.get("/v1/dead-letters?colour=red").await.expect_invalid("query");
    shop.client.act("/v1/dead-letters/replay?after=yesterday").await.expect_invalid("after");
    for nonsense in ["0:1-0", "x", "0:1-0:01", "%00"] {
        let path = format!("/v1/dead-letters/{nonsense}");
        shop.client.delete(&path).await.expect_problem(404, "unknown-dead-letter");
        shop.client.act(&format!("{path}/replay")).await.expect_problem(404, "unknown-dead-letter");
    }
    let bare = Client::admin();
    bare.get("/v1/dead-letters").await.expect_problem(404, "no-ledger");
    bare.act("/v1/dead-letters/replay").await.expect_problem(404, "no-ledger");
    shop.run("DROP TABLE lockgate_dead_letters").await;
    let away = shop.client.get("/v1/dead-letters").await.expect_problem(503, "unavailable");
    assert_eq!(away.headers["retry-after"], "1");
}
