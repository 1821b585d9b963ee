//! Redis goes away while the server runs, in every way, and comes back.

use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::testing::eventually;
use lockgate::testing::services::{Persistence, Redis, ServiceError};
use serde_json::json;

use crate::process::ServerProcess;

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
