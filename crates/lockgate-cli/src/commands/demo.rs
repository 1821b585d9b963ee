//! `lockgate demo`: a flash sale with simulated shoppers, live, and the proof that it was fair.
//!
//! **Promise:** the server is the real one, with its journal and its ledger on disk; the shoppers know nothing but its HTTP calls. At the
//! end what they were told is held against what the server says, and both against what is on disk; the command ends with 1 if any two
//! of them differ.

mod dice;
mod http;
mod progress;
mod shop;
mod shoppers;
mod tally;
mod verdict;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::progress::Progress;
use self::shop::{Closed, Sale, Shop};
use self::tally::Tally;
use self::verdict::Verdict;
use super::wishes::duration;
use super::{Failure, Outcome, print, runtime};

/// Play a flash sale: a crowd stands in line for a few coupons, and everything is counted afterwards.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many shoppers come
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    shoppers: u32,

    /// How many coupons there are
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    stock: u32,

    /// How many are admitted together; without it, so many that the line is served in about 13 seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,

    /// How often
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = pace)]
    every: Duration,

    /// Where the server listens; without it, on a free port of this machine
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    listen: Option<SocketAddr>,

    /// Who comes when and does what follows from this number; without it, a new one
    #[arg(long, value_name = "N")]
    seed: Option<u32>,

    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,

    /// Go on serving the dashboard when the sale is over, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

/// What a sale takes if nothing is said about its pace.
const USUAL_LENGTH: Duration = Duration::from_secs(13);

fn pace(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    let is_sane = (Duration::from_millis(10)..=Duration::from_secs(60)).contains(&every);
    is_sane.then_some(every).ok_or_else(|| "write 10ms to 60s".to_owned())
}

/// Nothing here is meant for others: app calls need no token.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: Option<SocketAddr> = text.parse().ok();
    address
        .filter(|address| address.ip().is_loopback())
        .ok_or_else(|| "write an address of this machine and a port, as in 127.0.0.1:8080".to_owned())
}

impl Demo {
    pub(crate) fn run(self) -> Outcome {
        runtime()?.block_on(self.play())
    }

    async fn play(self) -> Outcome {
        // Before anybody is told anything: whoever answers that by Ctrl-C is to be heard.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let sale = self.sale()?;
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let shop = Shop::open(self.listen.unwrap_or(anywhere)).await?;
        eprintln!("{sale}\n  dashboard    {}/\n  admin token  {}\n", shop.url(), shop.admin_token());
        let tally = Arc::new(Tally::default());
        let progress = Progress::show(&sale, &tally);
        let sold = unless(&mut interrupt, shop.sell(&sale, &tally)).await?;
        progress.end();
        let (closed, books) = shop.close_and_read().await?;
        let verdict = Verdict::of(&sale, &tally, &sold, &books);
        let text = if self.json { format!("{:#}\n", verdict.to_json()) } else { verdict.to_string() };
        print(&text);
        if self.keep {
            keep(closed, &mut interrupt).await?;
        }
        verdict.into_outcome()
    }

    fn sale(&self) -> Result<Sale, Failure> {
        let batches = USUAL_LENGTH.as_millis() / self.every.as_millis().max(1);
        let usual = u128::from(self.shoppers).div_ceil(batches.max(1));
        let seed = self.seed.map_or_else(dice::fresh_seed, Ok)?;
        Ok(Sale {
            shoppers: self.shoppers,
            stock: self.stock,
            batch: self.batch.unwrap_or(u32::try_from(usual).unwrap_or(u32::MAX)),
            every: self.every,
            seed,
        })
    }
}

async fn unless<T>(
    interrupt: &mut Signal,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Err("stopped before the end of the sale; nothing was verified".into()),
    }
}

/// Serves what is on disk, as a server does that was started again.
async fn keep(closed: Closed, interrupt: &mut Signal) -> Outcome {
    let shop = closed.open_again().await?;
    eprintln!("\nserving {}/ until Ctrl-C; the admin token is {}", shop.url(), shop.admin_token());
    interrupt.recv().await;
    shop.close().await.map(|_| ())
}
