//! `lockgate bench`: how fast it is here, beside the limit and the usual ways.

use clap::{Args, Subcommand};
use lockgate_lab::bench::{self, BenchOptions, HttpPoint, LedgerPoint, LinePoint, LockPoint, Subject};

use super::{Outcome, runtime, runtime_of};

/// Measure limit, peers and Lockgate in one run, interleaved.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: BenchSubject,
}

#[derive(Debug, Subcommand)]
enum BenchSubject {
    /// Taking and giving back a mutex, alone and in a crowd of several processes; then the other locks
    Lock {
        /// How many processes; with this, --tasks or --hold-us, one crowd is measured instead of those in the docs
        #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=64))]
        processes: Option<u8>,
        /// How many tasks in each process
        #[arg(long, value_name = "W", value_parser = clap::value_parser!(u16).range(1..))]
        tasks: Option<u16>,
        /// For how long each task holds the lock, in microseconds
        #[arg(long, value_name = "H", value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
        hold_us: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
    /// Readers and writers, semaphore, several locks at once, quorum: the last part of `bench lock`
    LockFamily {
        /// How many tasks in each case; without it, the points that the docs report
        #[arg(long, value_name = "W", value_parser = clap::value_parser!(u16).range(1..))]
        tasks: Option<u16>,
        #[command(flatten)]
        options: Options,
    },
    /// 300 tasks that take a mutex once each
    LockRush(Options),
    /// Many mutexes held at once under the watchdog, for --seconds
    LockHeld {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        locks: usize,
        #[command(flatten)]
        options: Options,
    },
    /// What waiting costs, by the usual estimate and measured: --rounds times each
    LockCost(Options),
    /// Issuing coupons
    Stock {
        /// How many tasks ask at once; without it, the points that the docs report
        #[arg(long, value_name = "W", value_parser = clap::value_parser!(u16).range(1..))]
        tasks: Option<u16>,
        #[command(flatten)]
        options: Options,
    },
    /// What many issued coupons cost: memory, Redis' time per call, start-up of the embedded store
    StockSize {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        users: u64,
        #[command(flatten)]
        options: Options,
    },
    /// Standing in line: entering, asking for the position, what a long line costs, and many who watch
    Line {
        /// How many wait in the long line; the rest of the bench is as large in proportion
        #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=16_000_000))]
        people: u64,
        /// How many ask at once
        #[arg(long, value_name = "W", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        tasks: u16,
        #[command(flatten)]
        options: Options,
    },
    /// Writing the ledger: rows a second, how far behind, and what buyers notice of it
    Ledger {
        /// The database to measure on; or postgres, mysql or sqlite, to have one started; without it, postgres
        #[arg(long, value_name = "URL")]
        db: Option<String>,
        /// How many rows each turn writes; the rest of the bench is as large in proportion
        #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
        rows: u64,
        #[command(flatten)]
        options: Options,
    },
    /// The server: requests a second, start-up, memory, and what many who watch cost
    Http {
        /// Over how many connections coupons are asked for
        #[arg(long, value_name = "C", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        connections: u16,
        /// After how many coupons the memory is read
        #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
        issues: u64,
        /// How many watch their place in a line
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=30_000))]
        watchers: u64,
        #[command(flatten)]
        options: Options,
    },
    /// A server that `bench http` starts
    #[command(hide = true)]
    HttpBare,
    /// A process that `bench lock` starts
    #[command(hide = true)]
    LockCrew { threads: usize, orders: String },
}

#[derive(Debug, Args)]
struct Options {
    /// The Redis to measure on; without it, a redis-server is started for the bench
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// How long each contender runs in each case
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = positive_seconds)]
    seconds: f64,

    /// Into how many turns that time is cut
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Write JSON lines to standard output, each as soon as it is known
    #[arg(long)]
    json: bool,
}

fn positive_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("write a number of seconds between 0.01 and 86400".into()),
    }
}

impl Bench {
    pub(crate) fn run(self) -> Outcome {
        let (subject, options) = match self.subject {
            BenchSubject::Lock { processes, tasks, hold_us, options } => {
                let (processes, tasks) = (processes.map(usize::from), tasks.map(usize::from));
                (Subject::Lock(LockPoint { processes, tasks, hold_us }), options)
            }
            BenchSubject::LockFamily { tasks, options } => {
                (Subject::LockFamily(tasks.map(usize::from)), options)
            }
            BenchSubject::LockRush(options) => (Subject::Rush, options),
            BenchSubject::LockHeld { locks, options } => (Subject::Held(locks), options),
            BenchSubject::LockCost(options) => (Subject::Cost, options),
            BenchSubject::Stock { tasks, options } => (Subject::Stock(tasks.map(usize::from)), options),
            BenchSubject::StockSize { users, options } => (Subject::StockSize(users), options),
            BenchSubject::Line { people, tasks, options } => {
                (Subject::Line(LinePoint { people, tasks: tasks.into() }), options)
            }
            BenchSubject::Ledger { db, rows, options } => {
                (Subject::Ledger(LedgerPoint { database: db, rows }), options)
            }
            BenchSubject::Http { connections, issues, watchers, options } => {
                (Subject::Http(HttpPoint { connections: connections.into(), issues, watchers }), options)
            }
            BenchSubject::HttpBare => return runtime()?.block_on(bench::serve_bare_http()),
            BenchSubject::LockCrew { threads, orders } => {
                return runtime_of(threads)?.block_on(bench::serve_in_crew(&orders));
            }
        };
        let options = BenchOptions {
            redis: options.redis,
            program: std::env::current_exe()?,
            seconds: options.seconds,
            rounds: options.rounds,
            json: options.json,
        };
        runtime()?.block_on(bench::run(subject, options))
    }
}
