//! Many locks held at once by one process, under the watchdog.

use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::lock::MutexGuard;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::bench::command_count::CommandCounter;
use crate::bench::{Failure, NAMESPACE};

/// How many ask at once: enough to fill the connection.
const AT_ONCE: usize = 64;

/// What holding them came to.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Held {
    locks: usize,
    seconds_to_take: f64,
    seconds_held: f64,
    /// Calls that renewed them.
    renewal_calls: u64,
    /// Microseconds that Redis worked on those.
    redis_us: u64,
    /// Share of one core that this process took meanwhile.
    cpu: f64,
    bytes_per_lock: u64,
    lost: usize,
    seconds_to_give_back: f64,
}

pub(in crate::bench) async fn hold_many(
    redis: &str,
    locks: usize,
    seconds: f64,
    counter: &CommandCounter,
) -> Result<Held, Failure> {
    let clock = Clock::system();
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    let gate = Gate::open_with(redis, &config).await?;
    let memory_before = resident_bytes()?;
    let start = clock.monotonic();
    let guards = take(&gate, locks).await?;
    let seconds_to_take = clock.monotonic().since(start).as_secs_f64();
    let bytes_per_lock = resident_bytes()?.saturating_sub(memory_before) / u64::try_from(locks.max(1))?;
    let (commands, cpu_before, held_from) = (counter.read().await?, cpu_seconds()?, clock.monotonic());
    tokio::time::sleep(Duration::try_from_secs_f64(seconds)?).await;
    let seconds_held = clock.monotonic().since(held_from).as_secs_f64();
    let cpu = (cpu_seconds()? - cpu_before) / seconds_held;
    let effort = counter.read().await?.since(&commands, &["eval", "evalsha"]);
    let lost = guards.iter().filter(|guard| guard.check().is_err()).count();
    let give_back_from = clock.monotonic();
    drop(guards);
    gate.shutdown().await;
    let seconds_to_give_back = clock.monotonic().since(give_back_from).as_secs_f64();
    let (renewal_calls, redis_us) = (effort.calls, effort.server_us);
    Ok(Held {
        locks,
        seconds_to_take,
        seconds_held,
        renewal_calls,
        redis_us,
        cpu,
        bytes_per_lock,
        lost,
        seconds_to_give_back,
    })
}

async fn take(gate: &Gate, locks: usize) -> Result<Vec<MutexGuard>, Failure> {
    let mut takers = JoinSet::new();
    for taker in 0..AT_ONCE {
        let gate = gate.clone();
        takers.spawn(async move {
            let mut guards = Vec::new();
            for number in (taker..locks).step_by(AT_ONCE) {
                guards.push(gate.mutex(format!("held:{number}"))?.lock().await?);
            }
            Ok::<_, Failure>(guards)
        });
    }
    let mut guards = Vec::with_capacity(locks);
    while let Some(taken) = takers.join_next().await {
        guards.extend(taken??);
    }
    Ok(guards)
}

/// This process's memory.
fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1_024)
}

/// The time that this process has computed, in user and kernel mode.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // After the name, which may hold blanks, come the fields from the third on; times are 14 and 15, in hundredths.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks =
        |field: usize| fields.get(field - 3).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(14) + ticks(15)) / 100.0)
}

impl Held {
    pub(in crate::bench) fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!("{} locks held at once by one process, under the watchdog:", self.locks);
        println!(
            "  taken in {:.1} s, given back in {:.1} s",
            self.seconds_to_take, self.seconds_to_give_back
        );
        println!("  held for {:.1} s, {} lost", self.seconds_held, self.lost);
        println!("  {} calls renewed them, {:.2} s of Redis' time", self.renewal_calls, self.redis_seconds());
        println!("  {:.1} % of a core, {} bytes of memory per lock", self.cpu * 100.0, self.bytes_per_lock);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn redis_seconds(&self) -> f64 {
        self.redis_us as f64 / 1_000_000.0
    }
}
