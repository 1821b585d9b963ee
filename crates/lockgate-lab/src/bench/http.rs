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
    figures.extend(effort_figures(&servers));

    report.figures(&figures)?;
    report.finish()?;
    Ok(())
}

/// What the servers alone did for a request; the rest is the callers', who share their cores.
fn effort_figures(servers: &[Arc<Server>; 3]) -> impl Iterator<Item = Figure> {
    let names = [
        "a bare handler: µs of processor time per request",
        "embedded: µs of processor time per request",
        "on Redis: µs of processor time per request, without Redis' own",
    ];
    let figure = |(name, server): (&'static str, &Arc<Server>)| {
        server.busy_micros_per_request().map(|value| Figure { name, value, bar: None })
    };
    names.into_iter().zip(servers).filter_map(figure)
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
