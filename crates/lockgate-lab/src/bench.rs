//! Benchmarks whose figures can be believed.
//!
//! **Promise:** what is compared ran in the same run on the same machine, turn by turn: each round gives every
//! contender one slice of time, in an order that rotates, after a warm-up round that does not count. A figure is the
//! median over the rounds, a ratio is the median of the *per-round* ratios to the limit, and both come with their
//! spread. A yardstick of pure computation runs before every slice: when it varies, the machine was not quiet, and the
//! report says so. Results are written as they come, so a run that is cut short has not been for nothing.
//!
//! **Not promised:** that a figure holds on another machine. Ratios mostly do.
//!
//! ```text
//! frame            cases, contenders, rounds
//! slice            one contender's turn: throughput, latency, fairness, commands, hand-overs
//! tally            what one worker did, to be added up
//! command_count    what clients sent, from INFO commandstats
//! yardstick        was the machine quiet?
//! report           JSON lines as they come, a table at the end
//! lock, stock, line, ledger, http  the cases
//! ```

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lockgate::testing::services::{Persistence, Redis};
use redis::IntoConnectionInfo;

pub(crate) mod command_count;
mod frame;
mod http;
mod ledger;
mod line;
mod lock;
mod report;
mod slice;
mod stock;
mod tally;
mod yardstick;

use self::command_count::CommandCounter;
use self::frame::{Case, Pace, run_case};
pub use self::http::HttpPoint;
pub use self::ledger::LedgerPoint;
pub use self::line::LinePoint;
pub use self::lock::LockPoint;
use self::lock::Stage;
use self::report::Report;

/// How to measure.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The Redis to measure on; a `redis-server` of our own when there is none.
    pub redis: Option<String>,
    /// The program that was started: benches between processes start it again.
    pub program: PathBuf,
    /// How long each contender runs in each case, over all rounds.
    pub seconds: f64,
    /// Into how many turns that time is cut.
    pub rounds: u32,
    /// JSON lines on standard output instead of a table.
    pub json: bool,
}

/// What can be measured.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Taking and giving back a mutex.
    Lock(LockPoint),
    /// Readers, permits, several locks at once and a quorum, with so many tasks; with the numbers that the docs report when
    /// there is none.
    LockFamily(Option<usize>),
    /// 300 who take a mutex once each.
    Rush,
    /// So many mutexes held at once.
    Held(usize),
    /// What waiting for a mutex costs.
    Cost,
    /// Issuing coupons, to so many tasks at once; to the numbers that the docs report when there is none.
    Stock(Option<usize>),
    /// What so many issued coupons cost.
    StockSize(u64),
    /// Standing in line.
    Line(LinePoint),
    /// Writing the ledger.
    Ledger(LedgerPoint),
    /// Asking a server.
    Http(HttpPoint),
}

/// The prefix of every key that a bench writes.
const NAMESPACE: &str = "lg-bench";

/// What a bench may end with.
type Failure = Box<dyn Error + Send + Sync>;

/// Measures `subject` and writes the result to standard output.
///
/// # Errors
///
/// When Redis cannot be started or reached, or a contender fails.
pub async fn run(subject: Subject, options: BenchOptions) -> Result<(), Failure> {
    let own_redis = match options.redis {
        Some(_) => None,
        None => Some(Redis::start(Persistence::Off)?),
    };
    let url = options.redis.clone().or(own_redis.as_ref().map(Redis::url)).unwrap_or_default();
    let counter = CommandCounter::connect(&url).await?;
    // Also before: what an interrupted run left would be in the way of this one.
    remove_our_keys(&url).await?;
    let measured = measure(subject, &url, &options, &counter).await;
    remove_our_keys(&url).await?;
    measured
}

async fn measure(
    subject: Subject,
    url: &str,
    options: &BenchOptions,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let pace = Pace::new(Duration::try_from_secs_f64(options.seconds)?, options.rounds);
    let cases = match subject {
        Subject::Lock(point) => {
            lock::cases(&Stage { program: options.program.clone(), redis: url.to_owned() }, point)
        }
        Subject::LockFamily(tasks) => lock::family::cases(url, tasks),
        Subject::Rush => vec![lock::rush::case(url)],
        Subject::Held(locks) => {
            return lock::held::hold_many(url, locks, options.seconds, counter).await?.print(options.json);
        }
        Subject::Cost => return lock::cost::measure(url, options.rounds, options.json, counter).await,
        Subject::StockSize(users) => return stock::size::measure(url, users, options.json, counter).await,
        Subject::Line(point) => return line::measure(url, point, options, counter).await,
        Subject::Http(point) => return http::measure(url, point, options, counter).await,
        Subject::Ledger(point) => return ledger::measure(url, &point, options, counter).await,
        Subject::Stock(tasks) => {
            let stage = stock::stage(url, tasks).await?;
            return run_cases(&stage.cases, &pace, options.json, counter).await;
        }
    };
    run_cases(&cases, &pace, options.json, counter).await
}

async fn run_cases(
    cases: &[Case<'_>],
    pace: &Pace,
    as_json: bool,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let mut report = Report::new(as_json, io::stdout());
    for case in cases {
        run_case(case, pace, counter, &mut report).await?;
    }
    report.finish()?;
    Ok(())
}

/// What a process does that a bench has started: see `bench::lock`.
///
/// # Errors
///
/// When the orders make no sense, or the contender fails.
pub async fn serve_in_crew(orders: &str) -> Result<(), Failure> {
    lock::serve_in_crew(orders).await
}

/// What a process does that a bench has started to be measured against: see `bench::http`.
///
/// # Errors
///
/// When it cannot listen.
pub async fn serve_bare_http() -> Result<(), Failure> {
    http::serve_bare().await
}

/// A client as the peers use it, with small requests sent at once like ours.
fn raw_client(url: &str) -> Result<redis::Client, Failure> {
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    Ok(redis::Client::open(url.into_connection_info()?.set_tcp_settings(settings))?)
}

/// A connection that waits for as long as it takes: on a machine that is busy on purpose, the usual half second is not enough.
pub(crate) async fn patient_connection(url: &str) -> Result<redis::aio::MultiplexedConnection, Failure> {
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    Ok(raw_client(url)?.get_multiplexed_async_connection_with_config(&patient).await?)
}

/// How often a server is asked whether it has let go of what was removed.
const LOOKS_AT_MEMORY: usize = 1_000;

/// What Redis has in memory, in bytes, when it has let go of what was removed.
async fn used_memory(url: &str) -> Result<u64, Failure> {
    let mut connection = patient_connection(url).await?;
    for _ in 0..LOOKS_AT_MEMORY {
        let info: String = redis::cmd("INFO").arg("memory").query_async(&mut connection).await?;
        let figure = |name| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if figure("lazyfree_pending_objects:").is_none_or(|pending| pending == "0") {
            return Ok(figure("used_memory:").ok_or("INFO says nothing of used_memory")?.parse()?);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("Redis does not let go of what was removed".into())
}

/// Leaves somebody else's Redis as it was found.
async fn remove_our_keys(url: &str) -> Result<(), Failure> {
    remove_keys(url, NAMESPACE).await
}

/// Removes every key under a prefix that is ours.
pub(crate) async fn remove_keys(url: &str, prefix: &str) -> Result<(), Failure> {
    let mut connection = patient_connection(url).await?;
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}:*")).arg("COUNT").arg(1_000);
        let (next, keys): (u64, Vec<String>) = scan.query_async(&mut connection).await?;
        if !keys.is_empty() {
            redis::cmd("UNLINK").arg(keys).exec_async(&mut connection).await?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
