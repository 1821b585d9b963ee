//! `lockgate lab cost`: what waiting for a lock costs, by the usual estimate and measured.

use std::time::Duration;

use clap::Args;
use lockgate_lab::lab::cost::{self, CostOptions};

use super::super::wishes::duration;
use super::super::{Outcome, print, runtime};

#[derive(Debug, Args)]
pub(super) struct Cost {
    /// How many wait (W)
    #[arg(long, value_name = "W", default_value_t = 20)]
    waiters: u32,

    /// How long the lock is held (L)
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    hold: Duration,

    /// How long somebody who asks again waits in between (b)
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration)]
    backoff: Duration,

    /// How often each way to wait is tried
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,

    /// The Redis to use, with nobody else on it; without it, a redis-server is started
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// Write JSON to standard output
    #[arg(long)]
    json: bool,
}

impl Cost {
    pub(super) fn run(self) -> Outcome {
        let Self { waiters, hold, backoff, rounds, redis, json } = self;
        let options = CostOptions { waiters, hold, backoff, rounds, redis };
        let report = runtime()?.block_on(cost::cost(&options, &|policy| eprintln!("measuring {policy}")))?;
        if json {
            print(&(serde_json::to_string_pretty(&report)? + "\n"));
        } else {
            print(&report.table());
        }
        Ok(())
    }
}
