//! The server, as its clients see it: requests a second beside a handler that decides nothing, and what a server takes to start, to
//! rest, to remember and to be watched.
//!
//! ```text
//! bare        the limit: a handler that reads the same JSON and answers the same, in a process of its own
//! process     a server that was started for the bench
//! caller      a client on one connection that stays open
//! issuing     asking for coupons over many connections
//! footprint   start-up and memory
//! watchers    memory per open stream of events
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::command_count::CommandCounter;
use super::frame::{Pace, run_case};
use super::report::{Bar, Figure, Report, Spread};
use super::slice::Slice;
use super::{BenchOptions, Failure};

mod bare;
mod caller;
mod footprint;
mod issuing;
mod process;
mod watchers;

pub(super) use self::bare::serve as serve_bare;
use self::issuing::Server;

/// How many connections, and how much is remembered and watched.
#[derive(Clone, Copy, Debug)]
pub struct HttpPoint {
    /// Over how many connections coupons are asked for.
    pub connections: usize,
    /// After how many coupons the memory is read.
    pub issues: u64,
    /// How many watch their place in a line.
    pub watchers: u64,
}

pub(super) async fn measure(
    redis: &str,
    point: HttpPoint,
    options: &BenchOptions,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let pace = Pace::new(Duration::try_from_secs_f64(options.seconds)?, options.rounds);
    let mut report = Report::new(options.json, io::stdout());

    let mut figures = footprint::measure(&options.program, point, options.rounds).await?;
    figures.extend(watchers::measure(&options.program, point.watchers).await?);
    let (case, servers) = issuing::case(&options.program, redis, point.connections).await?;
    figures.extend(issuing_figures(&run_case(&case, &pace, counter, &mut report).await?));
    figures.extend(effort_figures(&servers).await?);

    report.figures(&figures)?;
    report.finish()?;
    Ok(())
}

/// What a request cost the servers, and those who asked: they share the cores.
async fn effort_figures(servers: &[Arc<Server>; 3]) -> Result<Vec<Figure>, Failure> {
    const EFFORTS: [[&str; 2]; 3] = [
        [
            "a bare handler: µs of processor time per request",
            "a bare handler: the callers' µs of processor time per request",
        ],
        [
            "embedded: µs of processor time per request",
            "embedded: the callers' µs of processor time per request",
        ],
        [
            "on Redis: µs of processor time per request, without Redis' own",
            "on Redis: the callers' µs of processor time per request",
        ],
    ];
    const SHARED: [(usize, &str); 2] = [
        (issuing::EMBEDDED, "embedded: callers per call of the store"),
        (issuing::ON_REDIS, "on Redis: callers per call of the store"),
    ];
    let mut found = Vec::new();
    for (names, server) in EFFORTS.into_iter().zip(servers) {
        let values = [server.busy_micros_per_request(), server.callers_busy_micros_per_request()];
        found.extend(names.into_iter().zip(values));
    }
    for (place, name) in SHARED {
        found.push((name, servers[place].callers_per_call().await?));
    }
    let figure = |(name, value): (_, Option<f64>)| Some(Figure { name, value: value?, bar: None });
    Ok(found.into_iter().filter_map(figure).collect())
}

fn issuing_figures(rounds: &[Vec<Slice>]) -> [Figure; 4] {
    let times = |place: usize, figure: fn(&Slice) -> f64| {
        Spread::of(rounds.iter().map(|slices| figure(&slices[place]) / figure(&slices[issuing::BARE]))).median
    };
    [
        Figure {
            name: "embedded, journal on disk: requests/s, of the bare handler's",
            value: times(issuing::EMBEDDED, |slice| slice.per_second),
            bar: Some(Bar::AtLeast(0.6)),
        },
        Figure {
            name: "embedded, journal on disk: p99, times the bare handler's",
            value: times(issuing::EMBEDDED, |slice| slice.p99_us),
            bar: Some(Bar::AtMost(3.0)),
        },
        Figure {
            name: "on Redis: requests/s, of the bare handler's",
            value: times(issuing::ON_REDIS, |slice| slice.per_second),
            bar: Some(Bar::AtLeast(0.5)),
        },
        Figure {
            name: "on Redis: p99, times the bare handler's",
            value: times(issuing::ON_REDIS, |slice| slice.p99_us),
            bar: None,
        },
    ]
}
