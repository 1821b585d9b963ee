//! One process's part: it opens the strategy, lets its users ask, and says what each of them was told.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::clock::Clock;
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Failure;
use super::audit::{Answer, Heard};
use super::redis_link::RedisLink;
use super::shop::{Address, Shop};
use super::strategy::{self, Links, Scene, Strategy, Taker};

/// Where everything is, for a process that begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Places {
    pub(super) database: Address,
    pub(super) connections: u32,
    pub(super) redis: Option<String>,
    pub(super) quorum: Vec<String>,
    pub(super) mark: String,
}

/// One process's part of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) strategy: String,
    pub(super) coupon: i64,
    pub(super) stock: u64,
    /// Which of the processes it is.
    pub(super) process: usize,
    /// The first of its users, and the one after the last.
    pub(super) users: (u64, u64),
    /// How many are served at the same time.
    pub(super) in_flight: usize,
    /// After how long without an answer for anybody the rest counts as stuck.
    pub(super) stall: Duration,
    /// How long all of it may take.
    pub(super) limit: Duration,
}

/// What the users of one process were told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Testimony {
    pub(super) heard: Vec<Heard>,
    pub(super) elapsed: Duration,
    /// What was remarkable: the first error.
    pub(super) notes: Vec<String>,
}

/// What a process has done in a round, when all is written.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Effort {
    pub(super) write_back: Duration,
    pub(super) redis_round_trips: u64,
    pub(super) sql_statements: u64,
    pub(super) retries: u64,
}

/// The process's connections, which last for all rounds.
pub(super) struct Actor {
    shop: Shop,
    links: Arc<Links>,
    clock: Clock,
}

/// A round that is about to begin, or has just ended.
pub(super) struct Performance {
    taker: Arc<dyn Taker>,
    retries: Arc<AtomicU64>,
    turn: Turn,
}

impl Actor {
    pub(super) async fn connect(places: &Places) -> Result<Self, Failure> {
        let links = Links {
            redis_url: places.redis.clone(),
            quorum_urls: places.quorum.clone(),
            mark: places.mark.clone(),
            redis: OnceCell::new(),
            gate: OnceCell::new(),
            quorum: OnceCell::new(),
        };
        let shop = Shop::connect(&places.database, places.connections).await?;
        shop.warm_up(places.connections).await?;
        Ok(Self { shop, links: Arc::new(links), clock: Clock::system() })
    }

    /// Makes everything ready, so that what is timed is the crowd alone.
    pub(super) async fn prepare(&self, turn: Turn) -> Result<Performance, Failure> {
        let strategy = find(&turn.strategy)?;
        let retries = Arc::<AtomicU64>::default();
        let scene = Scene {
            shop: self.shop.clone(),
            links: Arc::clone(&self.links),
            coupon: turn.coupon,
            stock: turn.stock,
            process: turn.process,
            retries: Arc::clone(&retries),
        };
        let taker = Arc::from((strategy.open)(scene).await?);
        self.take_counts();
        Ok(Performance { taker, retries, turn })
    }

    /// Lets the users ask, all at once.
    pub(super) async fn perform(&self, performance: &Performance) -> Testimony {
        let began = self.clock.monotonic();
        let (taker, turn) = (&performance.taker, &performance.turn);
        let mut testimony = crowd(taker, turn, &self.clock).await;
        testimony.elapsed = self.clock.monotonic().since(began);
        testimony
    }

    /// Lets the strategy write what is still to be written, and adds up.
    pub(super) async fn finish(&self, performance: Performance) -> Result<Effort, Failure> {
        let began = self.clock.monotonic();
        let limit = performance.turn.limit;
        timeout(limit, performance.taker.finish())
            .await
            .map_err(|_| format!("{}: nothing was written back in {limit:?}", performance.turn.strategy))??;
        let write_back = self.clock.monotonic().since(began);
        let (redis_round_trips, sql_statements) = self.take_counts();
        let retries = performance.retries.load(Ordering::Relaxed);
        Ok(Effort { write_back, redis_round_trips, sql_statements, retries })
    }

    fn take_counts(&self) -> (u64, u64) {
        (self.links.redis.get().map_or(0, RedisLink::take_round_trips), self.shop.take_statements())
    }

    pub(super) async fn leave(self) {
        if let Some(gate) = self.links.gate.get() {
            gate.shutdown().await;
        }
        self.shop.close().await;
    }
}

fn find(name: &str) -> Result<&'static Strategy, Failure> {
    strategy::all()
        .iter()
        .find(|strategy| strategy.name == name)
        .ok_or_else(|| format!("no strategy is called {name}").into())
}

/// Everybody asks at the same moment; so many are served at a time, and the others wait at the door, which counts.
async fn crowd(taker: &Arc<dyn Taker>, turn: &Turn, clock: &Clock) -> Testimony {
    let door = Arc::new(Semaphore::new(turn.in_flight));
    let began = clock.monotonic();
    let mut asking = JoinSet::new();
    for user in turn.users.0..turn.users.1 {
        let (taker, door, clock) = (Arc::clone(taker), Arc::clone(&door), clock.clone());
        asking.spawn(async move {
            let _inside = door.acquire().await;
            let answer = taker.take(user).await;
            let after_us = clock.monotonic().since(began).as_micros();
            (user, answer, u64::try_from(after_us).unwrap_or(u64::MAX))
        });
    }
    let mut testimony = Testimony::default();
    loop {
        let left = turn.limit.saturating_sub(clock.monotonic().since(began));
        match timeout(turn.stall.min(left), asking.join_next()).await {
            Ok(Some(Ok(told))) => testimony.hear(told),
            // A task that panicked has told its user nothing.
            Ok(Some(Err(why))) => testimony.note(&why),
            Ok(None) => break,
            Err(_) => {
                asking.shutdown().await;
                break;
            }
        }
    }
    testimony.add_silent(turn);
    testimony
}

impl Testimony {
    fn hear(&mut self, (user, answer, after_us): (u64, Result<Answer, Failure>, u64)) {
        let answer = answer.unwrap_or_else(|why| {
            self.note(&why);
            Answer::Failed
        });
        self.heard.push(Heard { user, answer, after_us });
    }

    /// One error is as good as a hundred of them.
    fn note(&mut self, why: &impl ToString) {
        if self.notes.is_empty() {
            self.notes.push(format!("an error: {}", why.to_string()));
        }
    }

    /// Those who were told nothing.
    fn add_silent(&mut self, turn: &Turn) {
        let told: HashSet<u64> = self.heard.iter().map(|heard| heard.user).collect();
        let silent = (turn.users.0..turn.users.1).filter(|user| !told.contains(user));
        self.heard.extend(silent.map(|user| Heard { user, answer: Answer::NoAnswer, after_us: 0 }));
    }
}
