//! What the server stands on goes away while it runs, in every way, and comes back: Redis, and the ledger's database.

use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::testing::eventually;
use lockgate::testing::services::{Persistence, Postgres, Redis, ServiceError};
use serde_json::json;

use crate::process::{ServerProcess, run};

/// The longest that a call may take (`RedisConfig::call_timeout`), and room for a busy test machine.
const CALL_BOUND: Duration = Duration::from_secs(3 + 2);

/// How soon after its return calls must work again, measured to the end of the first call that does.
const BACK_WITHIN: Duration = Duration::from_secs(1);

/// How soon campaigns must be open again: `Config::recovery_grace`, and room for a busy test machine.
const OPEN_WITHIN: Duration = Duration::from_secs(3 + 7);

fn ride_out(
    go_away: impl Fn(&Redis) -> Result<(), ServiceError>,
    come_back: impl Fn(&Redis) -> Result<(), ServiceError>,
) {
    let redis = Redis::start(Persistence::AofAlways).unwrap();
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &["--store", &redis.url()]);
    assert_eq!(server.put("/v1/coupons/w", &json!({ "quantity": 100 })).0, 201);
    assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": "before" })).0, 201);

    go_away(&redis).unwrap();
    let clock = Clock::system();
    for path in ["/v1/coupons/w", "/readyz", "/v1/coupons/w"] {
        let asked = clock.monotonic();
        assert_eq!(server.get(path).0, 503, "{path}");
        let took = clock.monotonic().since(asked);
        assert!(took < CALL_BOUND, "{path} took {took:?}");
    }
    assert_eq!(server.get("/healthz").0, 200);

    come_back(&redis).unwrap();
    let back_at = clock.monotonic();
    assert!(eventually(CALL_BOUND, || server.get("/readyz").0 == 200), "not back at all");
    let took = clock.monotonic().since(back_at);
    assert!(took < BACK_WITHIN, "back only after {took:?}");
    // A server that was started again is looked at first: did it forget something?
    let told_again = || server.post("/v1/coupons/w/issues", &json!({ "user": "before" })).0 == 200;
    assert!(eventually(OPEN_WITHIN, told_again), "it was forgotten");
    assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": "after" })).0, 201);
}

#[test]
fn killed_and_started_again() {
    ride_out(
        |redis| {
            redis.kill();
            Ok(())
        },
        |redis| redis.restart(),
    );
}

#[test]
fn stopped_and_started_again() {
    ride_out(|redis| redis.stop(), |redis| redis.restart());
}

#[test]
fn paused_and_resumed() {
    ride_out(|redis| redis.pause(), |redis| redis.resume());
}

/// Decisions do not wait for the ledger: it has them all when its database is back.
#[test]
fn the_ledgers_database_killed_and_started_again() {
    let (redis, postgres) = (Redis::start(Persistence::Off).unwrap(), Postgres::start().unwrap());
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &["--store", &redis.url(), "--ledger", &postgres.url()]);
    let opened = || server.put("/v1/coupons/w", &json!({ "quantity": 1_000 })).0 == 201;
    assert!(eventually(OPEN_WITHIN, opened));
    let issue = |users: std::ops::Range<u32>| {
        for user in users {
            assert_eq!(server.post("/v1/coupons/w/issues", &json!({ "user": format!("u{user}") })).0, 201);
        }
    };
    issue(0..50);

    postgres.kill();
    issue(50..100);
    let mut ready = (0, json!(null));
    let is_told = eventually(Duration::from_secs(40), || {
        ready = server.get("/readyz");
        ready.1["ledger"]["is_written"] == false
    });
    assert!(is_told && ready.0 == 200, "{ready:?}");
    issue(100..150);

    postgres.restart().unwrap();
    let mut rows = String::new();
    let is_complete = eventually(Duration::from_secs(40), || {
        let export = run(&["ledger", "export", "coupon", "w", "--ledger", &postgres.url()]);
        rows = String::from_utf8(export.stdout).unwrap();
        // A head, and everybody once.
        rows.lines().count() == 1 + 150
    });
    assert!(is_complete, "{rows}");
    let is_well = || server.get("/readyz").1["ledger"]["audit"] == "green";
    assert!(eventually(Duration::from_secs(40), is_well), "{}", server.get("/readyz").1);
}
