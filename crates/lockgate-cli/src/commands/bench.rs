//! `lockgate bench`: how fast it is here, beside the limit and the usual ways.

use clap::{Args, Subcommand};
use lockgate_lab::bench::{self, BenchOptions, Subject};

use super::{Outcome, runtime};

/// Measure limit, peers and Lockgate in one run, interleaved.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: BenchSubject,
}

#[derive(Debug, Subcommand)]
enum BenchSubject {
    /// Taking and giving back a mutex
    Lock(Options),
    /// Issuing coupons
    Stock(Options),
}

#[derive(Debug, Args)]
struct Options {
    /// The Redis to measure on; without it, a redis-server is started for the bench
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// How many tasks ask at once; without it, the points that the docs report
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u16).range(1..))]
    tasks: Option<u16>,

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
            BenchSubject::Lock(options) => (Subject::Lock, options),
            BenchSubject::Stock(options) => (Subject::Stock, options),
        };
        let options = BenchOptions {
            redis: options.redis,
            tasks: options.tasks.map(usize::from),
            seconds: options.seconds,
            rounds: options.rounds,
            json: options.json,
        };
        runtime()?.block_on(bench::run(subject, options))
    }
}
