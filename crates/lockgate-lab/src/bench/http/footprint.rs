//! What an embedded server takes: to start on an empty folder, to rest, and to remember.

use std::path::Path;

use tokio::task::JoinSet;

use super::HttpPoint;
use super::caller::Caller;
use super::process::Process;
use crate::bench::Failure;
use crate::bench::report::{Bar, Figure, Spread};
use crate::bench::stock::new_users;

const MEBIBYTE: f64 = 1_048_576.0;

pub(super) async fn measure(program: &Path, point: HttpPoint, starts: u32) -> Result<Vec<Figure>, Failure> {
    let (mut ready_after, mut at_rest) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let server = Process::embedded(program).await?;
        ready_after.push(server.ready_after.as_secs_f64() * 1_000.0);
        at_rest.extend(mebibytes(&server));
    }
    let mut figures = vec![Figure {
        name: "ms from start to ready, on empty data",
        value: Spread::of(ready_after.into_iter()).median,
        bar: Some(Bar::AtMost(300.0)),
    }];
    // Where the system does not tell what a process takes, nothing is said about it.
    if !at_rest.is_empty() {
        figures.push(Figure {
            name: "MiB resident at rest",
            value: Spread::of(at_rest.into_iter()).median,
            bar: Some(Bar::AtMost(40.0)),
        });
        figures.extend(after_issues(program, point).await?);
    }
    Ok(figures)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
fn mebibytes(server: &Process) -> Option<f64> {
    server.resident_bytes().map(|bytes| bytes as f64 / MEBIBYTE)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
async fn after_issues(program: &Path, point: HttpPoint) -> Result<Vec<Figure>, Failure> {
    let server = Process::embedded(program).await?;
    Caller::connect(&server.address).await?.open_coupon().await?;
    let each = point.issues.div_ceil(point.connections as u64);
    let mut asking = JoinSet::new();
    for _ in 0..point.connections {
        let mut caller = Caller::connect(&server.address).await?;
        asking.spawn(async move {
            for user in new_users(each) {
                caller.issue(&user).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    let issued = each * point.connections as u64;
    let figures = mebibytes(&server).map(|mebibytes| {
        let after = Figure { name: "MiB resident after so many issues", value: mebibytes, bar: None };
        [Figure { name: "issues, then", value: issued as f64, bar: None }, after]
    });
    Ok(figures.into_iter().flatten().collect())
}
