//! Holds the lock while others wait, counts what that takes, and sees how soon the next one has it.

use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::{Clock, Moment};
use serde::Serialize;
use tokio::task::JoinSet;

use super::client::{Client, Held, Pace};
use super::model::Model;
use super::policy::Policy;
use super::{CostOptions, Failure, millis};
use crate::bench::command_count::{CommandCounter, CommandCounts};
use crate::lab::report::median;

/// When nothing was sent for so long, nobody has anything to say.
const QUIET: Duration = Duration::from_millis(30);
/// How often that is looked for before it is given up.
const LOOKS: usize = 300;

/// What was counted and timed: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Calls of clients for one hold.
    pub calls: f64,
    /// In the round with the fewest.
    pub fewest_calls: u64,
    /// In the round with the most.
    pub most_calls: u64,
    /// From the release until the next one has it.
    pub delay_ms: f64,
    /// What each waiter had to send before it waited, if it is told.
    pub arrival_calls_per_waiter: Option<f64>,
    /// From one try to the next, where the lab's own client tries.
    pub period_ms: Option<f64>,
}

/// All rounds of one way to wait.
pub(super) struct Rounds<'a> {
    pub(super) options: &'a CostOptions,
    pub(super) counter: &'a CommandCounter,
    pub(super) policy: Policy,
    pub(super) model: Model,
}

struct Once {
    calls: u64,
    arrival_calls: Option<u64>,
    delay: Duration,
}

/// Those who wait, and when each of them has it.
type Crowd = JoinSet<Result<(Moment, Held), Failure>>;

impl Rounds<'_> {
    #[expect(clippy::cast_precision_loss, reason = "counts of calls are far below 2^53")]
    pub(super) async fn play(&self, url: &str, mark: &str) -> Result<Measured, Failure> {
        let pace = Arc::new(Pace::default());
        let mut clients = Vec::new();
        for _ in 0..=self.options.waiters {
            clients.push(Client::open(url, mark, self.policy, self.options, &pace).await?);
        }
        let (holder, waiters) = clients.split_first().ok_or("nobody to hold the lock")?;
        // Connections and scripts that are used for the first time are not what is measured.
        self.once(holder, waiters, "warm-up", Duration::ZERO).await?;
        let mut all = Vec::new();
        for round in 0..self.options.rounds {
            // The release falls anywhere between two tries.
            let share = (f64::from(round) + 0.5) / f64::from(self.options.rounds);
            let longer = self.options.backoff.mul_f64(share);
            all.push(self.once(holder, waiters, &format!("round-{round}"), longer).await?);
        }
        let waiters = f64::from(self.options.waiters);
        Ok(Measured {
            calls: median(all.iter().map(|once| once.calls as f64)).unwrap_or_default(),
            fewest_calls: all.iter().map(|once| once.calls).min().unwrap_or_default(),
            most_calls: all.iter().map(|once| once.calls).max().unwrap_or_default(),
            delay_ms: median(all.iter().map(|once| millis(once.delay))).unwrap_or_default(),
            arrival_calls_per_waiter: median(
                all.iter().filter_map(|once| once.arrival_calls).map(|calls| calls as f64 / waiters),
            ),
            period_ms: pace.period_ms(),
        })
    }

    async fn once(
        &self,
        holder: &Client,
        waiters: &[Client],
        name: &str,
        longer: Duration,
    ) -> Result<Once, Failure> {
        // What an earlier round has left is none of this one's.
        let name = format!("{}-{name}", self.policy.name());
        let held = holder.lock(&name).await?;
        self.until_quiet().await?;
        if self.policy.asks() {
            self.while_they_ask(held, waiters, &name, longer).await
        } else {
            self.while_they_are_told(held, waiters, &name).await
        }
    }

    /// Counts what is asked within L; then releases it at another point between two tries in each round.
    async fn while_they_ask(
        &self,
        held: Held,
        waiters: &[Client],
        name: &str,
        longer: Duration,
    ) -> Result<Once, Failure> {
        let clock = Clock::system();
        let before = self.counter.read().await?;
        let begin = clock.monotonic();
        let mut crowd = gather(waiters, name, self.model.first_try_after());
        tokio::time::sleep(self.options.hold.saturating_sub(clock.monotonic().since(begin))).await;
        let after = self.counter.read().await?;
        tokio::time::sleep(longer).await;
        let (delay, next) = hand_over(held, &mut crowd, &clock).await?;
        crowd.shutdown().await;
        next.release().await?;
        Ok(Once { calls: self.calls(&after, &before), arrival_calls: None, delay })
    }

    /// Lets all of them begin to wait; then counts the hold and the hand-over until nobody has anything more to say.
    async fn while_they_are_told(&self, held: Held, waiters: &[Client], name: &str) -> Result<Once, Failure> {
        let clock = Clock::system();
        let before_arrival = self.counter.read().await?;
        let mut crowd = gather(waiters, name, Duration::ZERO);
        let before = self.until_all_wait(&before_arrival).await?;
        tokio::time::sleep(self.options.hold).await;
        // The next one keeps it, or the one after would be counted too.
        let (delay, next) = hand_over(held, &mut crowd, &clock).await?;
        let after = self.until_quiet().await?;
        crowd.shutdown().await;
        next.release().await?;
        let arrival_calls = Some(self.calls(&before, &before_arrival));
        Ok(Once { calls: self.calls(&after, &before), arrival_calls, delay })
    }

    fn calls(&self, after: &CommandCounts, before: &CommandCounts) -> u64 {
        after.since(before, self.policy.client_commands()).calls
    }

    async fn until_all_wait(&self, before: &CommandCounts) -> Result<CommandCounts, Failure> {
        for _ in 0..LOOKS {
            let now = self.until_quiet().await?;
            if self.calls(&now, before) >= u64::from(self.options.waiters) {
                return Ok(now);
            }
        }
        Err("not everybody has begun to wait; try with fewer --waiters".into())
    }

    async fn until_quiet(&self) -> Result<CommandCounts, Failure> {
        let mut before = self.counter.read().await?;
        for _ in 0..LOOKS {
            tokio::time::sleep(QUIET).await;
            let now = self.counter.read().await?;
            if self.calls(&now, &before) == 0 {
                return Ok(now);
            }
            before = now;
        }
        Err("this Redis is never quiet, so nothing can be counted on it; leave --redis out to start one"
            .into())
    }
}

fn gather(waiters: &[Client], name: &str, first_try_after: Duration) -> Crowd {
    let mut crowd = JoinSet::new();
    for client in waiters {
        let (client, name) = (client.clone(), name.to_owned());
        crowd.spawn(async move {
            if !first_try_after.is_zero() {
                tokio::time::sleep(first_try_after).await;
            }
            let held = client.lock(&name).await?;
            Ok((Clock::system().monotonic(), held))
        });
    }
    crowd
}

/// Gives it back, and says how long it took until the next one had it.
async fn hand_over(held: Held, crowd: &mut Crowd, clock: &Clock) -> Result<(Duration, Held), Failure> {
    let released_at = clock.monotonic();
    held.release().await?;
    let (got_at, next) = crowd.join_next().await.ok_or("nobody waits")???;
    Ok((got_at.since(released_at), next))
}
