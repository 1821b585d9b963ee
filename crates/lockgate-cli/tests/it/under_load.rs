//! A server that ends in the middle of a sale: asked to stop, or killed. On the embedded store and on Redis.
//!
//! Whatever was answered is so afterwards, nobody has two, and no more are issued than there are.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::testing::eventually;
use lockgate::testing::services::{Persistence, Redis};
use serde_json::{Value, json};

use crate::process::ServerProcess;

const CLIENTS: u64 = 16;
const QUANTITY: u64 = 2_000;

/// The server is ended when so many have asked: in the middle of the sale.
const ENDED_AFTER: u64 = 300;

fn sell_and_end(more: &[&str], end: impl FnOnce(ServerProcess)) {
    let data = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(data.path(), more);
    assert_eq!(server.put("/v1/coupons/w", &json!({ "quantity": QUANTITY })).0, 201);
    let (address, next) = (server.url.trim_start_matches("http://").to_owned(), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (address, next) = (address.clone(), Arc::clone(&next));
            std::thread::spawn(move || issue_until_it_ends(&address, &next))
        })
        .collect();
    let is_busy = || next.load(Ordering::Relaxed) > ENDED_AFTER;
    assert!(eventually(Duration::from_secs(20), is_busy), "there is no load");
    end(server);
    let answered: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(answered.len() > 100, "{}", answered.len());

    let again = ServerProcess::start(data.path(), more);
    let issue = |user: &str| again.post("/v1/coupons/w/issues", &json!({ "user": user }));
    for (user, seq) in &answered {
        let (status, body) = issue(user);
        assert_eq!((status, &body["seq"]), (200, &json!(seq)), "{user}: {body}");
    }
    // The sale goes on to its end. Those whose answer was cut off may have one, which is found here.
    let mut seqs = HashSet::new();
    for user in 0..QUANTITY + CLIENTS + 100 {
        let (status, body) = issue(&format!("u{user}"));
        match status {
            200 | 201 => {
                assert!(seqs.insert(body["seq"].as_u64().unwrap()), "{body} is somebody else's, too");
            }
            status => assert_eq!((status, &body["code"]), (409, &json!("sold-out")), "{body}"),
        }
    }
    assert_eq!(seqs, (1..=QUANTITY).collect(), "each number is somebody's, once");
    assert_eq!(again.get("/v1/coupons/w").1["issued"], QUANTITY);
}

/// The users who were told that they have one, and their numbers.
fn issue_until_it_ends(address: &str, next: &AtomicU64) -> Vec<(String, u64)> {
    let mut answered = Vec::new();
    let Ok(mut stream) = TcpStream::connect(address) else { return answered };
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let user = format!("u{}", next.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "user": user }).to_string();
        let request = format!(
            "POST /v1/coupons/w/issues HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(request.as_bytes()).is_err() {
            return answered;
        }
        match read_issue(&mut reader) {
            Some(seq) => answered.push((user, seq)),
            None => return answered,
        }
    }
}

/// The number in a whole 201; `None` when it is cut off, or says that the sale is over.
fn read_issue(reader: &mut impl BufRead) -> Option<u64> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    if body["code"] == "sold-out" {
        return None;
    }
    assert!(head.starts_with("HTTP/1.1 201"), "{head}{body}");
    body["seq"].as_u64()
}

fn stopped(server: ServerProcess) {
    assert_eq!(server.terminate(), Some(0));
}

/// Dropping it is `kill -9`.
fn killed(server: ServerProcess) {
    drop(server);
}

#[test]
fn an_embedded_server_that_is_stopped_has_lost_nothing_and_sold_nothing_twice() {
    sell_and_end(&[], stopped);
}

#[test]
fn an_embedded_server_that_is_killed_has_lost_nothing_and_sold_nothing_twice() {
    sell_and_end(&[], killed);
}

#[test]
fn a_server_on_redis_that_is_stopped_has_lost_nothing_and_sold_nothing_twice() {
    let redis = Redis::start(Persistence::Off).unwrap();
    sell_and_end(&["--store", &redis.url()], stopped);
}

#[test]
fn a_server_on_redis_that_is_killed_has_lost_nothing_and_sold_nothing_twice() {
    let redis = Redis::start(Persistence::Off).unwrap();
    sell_and_end(&["--store", &redis.url()], killed);
}
