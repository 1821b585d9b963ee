//! What a million issued coupons cost: in Redis' memory, per call, and when the embedded store starts again.

use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::stock::{MAX_QUANTITY, Terms};
use lockgate::store::{Campaign, CampaignKind, IssueWish, JournalPosition, MAX_BATCH, Sending, Store};
use serde::Serialize;
use tempfile::TempDir;

use super::new_users;
use crate::bench::command_count::CommandCounter;
use crate::bench::{Failure, NAMESPACE, remove_our_keys, used_memory};

/// How many users one call takes where a cost is measured: as a busy server makes them.
const BATCH: u64 = 500;

#[derive(Debug, Serialize)]
pub(in crate::bench) struct Size {
    users: u64,
    bytes_per_user: u64,
    journal_bytes_per_user: u64,
    /// Microseconds that Redis works per user, when a thousand are issued and when all are.
    redis_us_at_1_000: f64,
    redis_us_at_all: f64,
    /// What a replay costs, when all are issued.
    redis_us_per_replay: f64,
    /// The embedded store with its journal on disk.
    journal_file_bytes_per_user: u64,
    seconds_to_start: f64,
}

pub(in crate::bench) async fn measure(
    url: &str,
    users: u64,
    as_json: bool,
    counter: &CommandCounter,
) -> Result<(), Failure> {
    let size = measure_redis(url, users, counter).await?;
    let size = measure_disk(users, size).await?;
    if as_json {
        println!("{}", serde_json::to_string(&size)?);
        return Ok(());
    }
    println!("| issued users | {} |\n| --- | --- |", size.users);
    println!("| Redis, bytes per user, journal trimmed | {} |", size.bytes_per_user);
    println!("| Redis, bytes per user in the journal | {} |", size.journal_bytes_per_user);
    println!("| Redis µs per user, 1,000 issued | {:.2} |", size.redis_us_at_1_000);
    println!("| Redis µs per user, all issued | {:.2} |", size.redis_us_at_all);
    println!("| Redis µs per replay, all issued | {:.2} |", size.redis_us_per_replay);
    println!("| journal on disk, bytes per user | {} |", size.journal_file_bytes_per_user);
    println!("| embedded start-up, seconds | {:.2} |", size.seconds_to_start);
    Ok(())
}

struct Filling<'a> {
    store: &'a dyn Store,
    coupon: Campaign,
    sending: Sending,
}

impl Filling<'_> {
    async fn issue(&mut self, users: impl Iterator<Item = String>) -> Result<(), Failure> {
        let wishes = users
            .map(|user| {
                Ok(IssueWish { coupon: self.coupon.clone(), user: Name::new("user", user)?, pass: None })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        self.sending.number += 1;
        self.store.coupon_issue(&self.sending, &wishes).await?;
        Ok(())
    }

    async fn issue_many(&mut self, users: u64) -> Result<(), Failure> {
        for first in (0..users).step_by(MAX_BATCH) {
            self.issue(new_users((users - first).min(MAX_BATCH as u64))).await?;
        }
        Ok(())
    }

    /// Redis' time per user over so many calls.
    #[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
    async fn cost(&mut self, counter: &CommandCounter, calls: u64, replay: bool) -> Result<f64, Failure> {
        let before = counter.read().await?;
        let known: Vec<_> = new_users(if replay { BATCH } else { 0 }).collect();
        self.issue(known.iter().cloned()).await?;
        let before = if replay { counter.read().await? } else { before };
        for _ in 0..calls {
            if replay {
                self.issue(known.iter().cloned()).await?;
            } else {
                self.issue(new_users(BATCH)).await?;
            }
        }
        let effort = counter.read().await?.since(&before, &["eval", "evalsha"]);
        Ok(effort.server_us as f64 / (calls * BATCH) as f64)
    }
}

async fn measure_redis(url: &str, users: u64, counter: &CommandCounter) -> Result<Size, Failure> {
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    let gate = Gate::open_with(url, &config).await?;
    gate.coupon("size")?.open(&Terms::new(MAX_QUANTITY)?).await?;
    let coupon = Campaign::new(CampaignKind::Coupon, Name::new("coupon", "size")?);
    let mut filling = Filling { store: gate.store().as_ref(), coupon, sending: Sending::once() };
    let empty = used_memory(url).await?;
    filling.issue_many(1_000).await?;
    let redis_us_at_1_000 = filling.cost(counter, 10, false).await?;
    filling.issue_many(users.saturating_sub(6_000)).await?;
    let with_journal = used_memory(url).await?;
    let redis_us_at_all = filling.cost(counter, 100, false).await?;
    let redis_us_per_replay = filling.cost(counter, 100, true).await?;
    let issued = gate.coupon("size")?.status().await?.map_or(0, |status| status.granted);
    let before_trimming = used_memory(url).await?;
    let all = JournalPosition::parse("18446744073709551615-0").unwrap_or_default();
    gate.store().journal_trim(0, all).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let bytes_per_user = used_memory(url).await?.saturating_sub(empty) / issued.max(1);
    let journal_bytes_per_user =
        (before_trimming.saturating_sub(empty) / issued.max(1)).saturating_sub(bytes_per_user);
    let _ = with_journal;
    remove_our_keys(url).await?;
    Ok(Size {
        users,
        bytes_per_user,
        journal_bytes_per_user,
        redis_us_at_1_000,
        redis_us_at_all,
        redis_us_per_replay,
        journal_file_bytes_per_user: 0,
        seconds_to_start: 0.0,
    })
}

async fn measure_disk(users: u64, size: Size) -> Result<Size, Failure> {
    let folder = TempDir::new()?;
    let path = folder.path().join("journal.db");
    let url = format!("sqlite:{}", path.display());
    let gate = Gate::open(&url).await?;
    gate.coupon("size")?.open(&Terms::new(MAX_QUANTITY)?).await?;
    let coupon = Campaign::new(CampaignKind::Coupon, Name::new("coupon", "size")?);
    let mut filling = Filling { store: gate.store().as_ref(), coupon, sending: Sending::once() };
    filling.issue_many(users).await?;
    drop(gate);
    let clock = Clock::system();
    let start = clock.monotonic();
    let gate = reopen(&url).await?;
    let seconds_to_start = clock.monotonic().since(start).as_secs_f64();
    let issued = gate.coupon("size")?.status().await?.map_or(0, |status| status.granted);
    if issued != users {
        return Err(format!("{issued} of {users} were there again").into());
    }
    let journal_file_bytes_per_user = std::fs::metadata(&path)?.len() / users.max(1);
    Ok(Size { seconds_to_start, journal_file_bytes_per_user, ..size })
}

/// The thread of the gate that was dropped may take a moment to let go of the file.
async fn reopen(url: &str) -> Result<Gate, Failure> {
    for _ in 0..100 {
        if let Ok(gate) = Gate::open(url).await {
            return Ok(gate);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Gate::open(url).await?)
}
