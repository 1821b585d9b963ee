//! `lockgate serve` on a good day.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use lockgate::testing::services::{Persistence, Redis};
use serde_json::json;

use crate::process::{ADMIN_TOKEN, ServerProcess};

#[test]
fn it_serves_without_any_service_and_says_where_to_look_next() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    assert!(server.welcome.contains("store: embedded, journal on disk"), "{}", server.welcome);
    assert!(
        server.welcome.contains("/readyz") && server.welcome.contains("/v1/coupons"),
        "{}",
        server.welcome
    );
    assert!(
        !server.welcome.contains(ADMIN_TOKEN),
        "a token that was given is not printed: {}",
        server.welcome
    );
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.get("/readyz").0, 200);
    assert_eq!(server.put("/v1/coupons/welcome", &json!({ "quantity": 1 })).0, 201);
    assert_eq!(server.post("/v1/coupons/welcome/issues", &json!({ "user": "alice" })).0, 201);
    assert_eq!(server.post("/v1/coupons/welcome/issues", &json!({ "user": "bob" })).0, 409);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn what_it_issued_is_there_again_when_it_is_started_again() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    assert_eq!(server.put("/v1/coupons/welcome", &json!({ "quantity": 1 })).0, 201);
    assert_eq!(server.post("/v1/coupons/welcome/issues", &json!({ "user": "alice" })).0, 201);
    // Killed, not stopped.
    drop(server);
    let server = ServerProcess::start(data.path(), &[]);
    let (status, again) = server.post("/v1/coupons/welcome/issues", &json!({ "user": "alice" }));
    assert_eq!((status, &again["seq"]), (200, &json!(1)), "{again}");
    assert_eq!(server.post("/v1/coupons/welcome/issues", &json!({ "user": "bob" })).0, 409);
}

#[test]
fn a_token_that_it_makes_is_shown_once_and_kept() {
    let data = tempfile::tempdir().unwrap();
    let first = ServerProcess::start_without_token(data.path(), &[]);
    let token = fs::read_to_string(data.path().join("admin-token")).unwrap();
    assert!(token.trim().len() >= 32 && first.welcome.contains(token.trim()), "{}", first.welcome);
    drop(first);
    let second = ServerProcess::start_without_token(data.path(), &[]);
    assert!(!second.welcome.contains(token.trim()), "{}", second.welcome);
    assert!(second.welcome.contains("admin-token"), "it says where the token is: {}", second.welcome);
    assert_eq!(fs::read_to_string(data.path().join("admin-token")).unwrap(), token);
}

#[test]
fn two_servers_on_one_redis_share_what_they_issue() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let data = tempfile::tempdir().unwrap();
    let servers = [0, 1].map(|_| ServerProcess::start(data.path(), &["--store", &redis.url()]));
    assert_eq!(servers[0].put("/v1/coupons/w", &json!({ "quantity": 1 })).0, 201);
    assert_eq!(servers[1].post("/v1/coupons/w/issues", &json!({ "user": "alice" })).0, 201);
    assert_eq!(servers[0].post("/v1/coupons/w/issues", &json!({ "user": "alice" })).0, 200);
    assert_eq!(servers[0].post("/v1/coupons/w/issues", &json!({ "user": "bob" })).0, 409);
    assert!(
        fs::read_dir(data.path()).unwrap().next().is_none(),
        "a server on Redis keeps nothing in its data folder"
    );
}

#[test]
fn a_client_that_never_finishes_does_not_keep_it_from_stopping() {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), &[]);
    let mut stuck = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stuck
        .write_all(b"POST /v1/coupons/w/issues HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        .unwrap();
    // The server has the request in hand once it answers somebody who came later.
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_server_on_redis_takes_its_namespace_and_certificates_from_the_command_line() {
    let redis = Redis::builder().tls().start().unwrap();
    let (data, ca) = (tempfile::tempdir().unwrap(), redis.ca_file().unwrap().to_str().unwrap().to_owned());
    let arguments = ["--store", &redis.url(), "--redis-ca", &ca, "--namespace", "shop"];
    let server = ServerProcess::start(data.path(), &arguments);
    assert_eq!(server.put("/v1/coupons/w", &json!({ "quantity": 1 })).0, 201);
}
