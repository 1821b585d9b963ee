//! What it takes that many watch their place in a line, each on a connection of its own.

use std::path::Path;

use axum::http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::caller::Caller;
use super::process::Process;
use crate::bench::Failure;
use crate::bench::report::{Bar, Figure};
use crate::bench::stock::new_users;

/// So many open their streams at once.
const CROWD: u64 = 100;

const KIBIBYTE: f64 = 1_024.0;

/// Somebody who watches.
struct Watcher {
    _caller: Caller,
    _events: Incoming,
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
pub(super) async fn measure(program: &Path, watchers: u64) -> Result<Vec<Figure>, Failure> {
    raise_limit_of_open_files()?;
    let server = Process::embedded_for(program, watchers + CROWD).await?;
    let mut operator = Caller::connect(&server.address).await?;
    // So slow that nobody is admitted while they watch, but for the first.
    let terms = json!({ "batch": 1, "every_ms": 3_600_000, "max_active": 1, "pass_ttl_ms": 60_000 });
    operator.call(Method::PUT, "/v1/lines/bench", Some(&terms)).await?;
    let mut tickets = Vec::new();
    for user in new_users(watchers) {
        let entered =
            operator.call(Method::POST, "/v1/lines/bench/tickets", Some(&json!({ "user": user }))).await?;
        let entered: Value = serde_json::from_slice(&entered)?;
        tickets.push(entered["ticket"].as_str().ok_or("no ticket")?.to_owned());
    }
    let before = server.resident_bytes();
    let mut watching = Vec::new();
    for some in tickets.chunks(usize::try_from(CROWD)?) {
        watching.extend(watch(&server.address, some).await?);
    }
    let after = server.resident_bytes();
    let each =
        before.zip(after).map(|(before, after)| after.saturating_sub(before) as f64 / watching.len() as f64);
    let figures = each.map(|bytes| {
        let each = Figure {
            name: "KiB per open stream of events",
            value: bytes / KIBIBYTE,
            bar: Some(Bar::AtMost(20.0)),
        };
        [Figure { name: "streams of events at once", value: watching.len() as f64, bar: None }, each]
    });
    Ok(figures.into_iter().flatten().collect())
}

/// Returns when all have heard where they stand.
async fn watch(address: &str, tickets: &[String]) -> Result<Vec<Watcher>, Failure> {
    let mut beginning = JoinSet::new();
    for ticket in tickets {
        let (address, ticket) = (address.to_owned(), ticket.clone());
        beginning.spawn(async move {
            let mut caller = Caller::connect(&address).await?;
            let path = format!("/v1/lines/bench/tickets/{ticket}/events");
            let mut events = caller.send(Method::GET, &path, None).await?.into_body();
            let first = events.frame().await.ok_or("a stream without events")??;
            let text = first.into_data().unwrap_or_default();
            if !text.starts_with(b"event:") && !text.starts_with(b"data:") && !text.starts_with(b"id:") {
                return Err(format!("no event: {}", String::from_utf8_lossy(&text)).into());
            }
            Ok::<_, Failure>(Watcher { _caller: caller, _events: events })
        });
    }
    let mut watching = Vec::new();
    while let Some(watcher) = beginning.join_next().await {
        watching.push(watcher??);
    }
    Ok(watching)
}

/// Every stream is an open file here as well.
fn raise_limit_of_open_files() -> Result<(), Failure> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
