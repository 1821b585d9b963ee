//! Plays the rounds: sets the coupon, lets the crew go, reads the books, has them judged.

use std::path::Path;
use std::time::Duration;

use super::actor::{Testimony, Turn};
use super::audit::{Answer, Heard, audit};
use super::claim::{check, goes_on};
use super::crew::{Crew, Played};
use super::report::{Answers, Cost, GrowthPoint, Latency, Round, Tried, median, millis};
use super::stage::Stage;
use super::strategy::{Bookkeeping, Counting, Strategy};
use super::victim::{Fate, Victim};
use super::{Event, Failure, LabOptions};
use crate::bench::command_count::CommandCounts;

/// What the library's clients send to Redis; its scripts call none of these.
const CLIENT_COMMANDS: &[&str] = &["eval", "evalsha", "script|load"];

/// How long a round may take for each user, beside the time that one may be without any answer: on a machine that is busy with
/// other things too, a transaction in a crowd has been seen to take a quarter of it.
const LIMIT_PER_USER: Duration = Duration::from_millis(60);

/// One of the sizes at which a strategy is tried.
#[derive(Clone, Copy)]
struct Size {
    users: u64,
    stock: u64,
}

/// Who plays, and where.
pub(super) struct Conductor<'a> {
    pub(super) stage: &'a Stage,
    pub(super) crew: Crew,
    pub(super) options: &'a LabOptions,
    pub(super) program: &'a Path,
    pub(super) coupons: i64,
}

impl Conductor<'_> {
    /// All rounds of a strategy, and what they come to.
    pub(super) async fn try_out(
        &mut self,
        strategy: &Strategy,
        watch: &dyn Fn(Event<'_>),
    ) -> Result<Tried, Failure> {
        let options = self.options;
        let full = Size { users: options.users, stock: options.stock };
        let claim = (strategy.claim)();
        let (mut rounds, mut number) = (Vec::new(), 0);
        while goes_on(&claim, options.processes, options.rounds, &rounds) {
            rounds.push(self.play(strategy, full).await?);
            number += 1;
            watch(Event::Round { strategy: strategy.name, number });
        }
        // The time of somebody who is stuck is the limit, whatever the size of the crowd.
        let growth = if strategy.crash.is_some() { &[] } else { options.growth.as_slice() };
        let mut others = Vec::new();
        for users in growth {
            others.push(self.play(strategy, full.with(*users)).await?);
        }
        let finding = check(&claim, options.processes, &rounds, &others);
        let points = if growth.is_empty() { Vec::new() } else { growth_of(&rounds, &others) };
        let (name, title) = (strategy.name.to_owned(), strategy.title.to_owned());
        Ok(Tried { name, title, family: strategy.family, claim, rounds, growth: points, finding })
    }

    async fn play(&mut self, strategy: &Strategy, size: Size) -> Result<Round, Failure> {
        let named = |why: Failure| format!("{}: {why}", strategy.name);
        self.play_round(strategy, size).await.map_err(named).map_err(Into::into)
    }

    async fn play_round(&mut self, strategy: &Strategy, size: Size) -> Result<Round, Failure> {
        self.coupons += 1;
        let coupon = self.coupons;
        self.stage.shop.open_coupon(coupon, size.stock).await?;
        let turns = self.turns(strategy, size, coupon);
        let before = self.command_counts().await?;
        let (played, note) = self.let_go(strategy, turns, coupon).await?;
        let after = self.command_counts().await?;
        let books = match strategy.books {
            Bookkeeping::Coupon => self.stage.shop.books(coupon).await?,
            Bookkeeping::Ledger => self.stage.shop.books_of_ledger(coupon, size.stock).await?,
        };
        let history: Vec<Heard> = played.testimonies.iter().flat_map(|told| told.heard.clone()).collect();
        let evidence = audit(size.stock, &history, &books);
        let notes = played.testimonies.iter().flat_map(|told| told.notes.clone());
        Ok(Round {
            users: size.users,
            stock: size.stock,
            processes: self.options.processes,
            elapsed_ms: longest_ms(&played.testimonies),
            write_back_ms: played.efforts.iter().map(|effort| millis(effort.write_back)).fold(0.0, f64::max),
            answers: answers(&history),
            cost: cost(strategy, &played, &before, &after),
            latency: latency(&history),
            flaws: evidence.flaws(),
            evidence,
            notes: note.into_iter().chain(notes).collect(),
        })
    }

    /// Plays the round, with somebody who dies in it if the strategy is about that.
    async fn let_go(
        &mut self,
        strategy: &Strategy,
        turns: Vec<Turn>,
        coupon: i64,
    ) -> Result<(Played, Option<String>), Failure> {
        let Some(redis) = self.stage.redis_url().filter(|_| strategy.crash.is_some()) else {
            return Ok((self.crew.play(turns, || ()).await?, None));
        };
        let fate = Fate { redis: redis.to_owned(), mark: self.stage.mark().to_owned(), coupon };
        let victim = Victim::start(self.program, &fate).await?;
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (end, all_over) = tokio::sync::oneshot::channel();
        let death = victim.join_and_die(begun, all_over);
        let tell = || {
            // If it is dead already, that is noticed below.
            let _ = begin.send(());
        };
        let played = self.crew.play(turns, tell).await;
        // It may be dead already.
        let _ = end.send(());
        let note = death.await??;
        Ok((played?, note))
    }

    /// The users are shared out among the processes, as evenly as it goes.
    fn turns(&self, strategy: &Strategy, size: Size, coupon: i64) -> Vec<Turn> {
        let processes = self.options.processes;
        let share = |process: usize| {
            let (process, all) = (u64::try_from(process).unwrap_or(0), u64::try_from(processes).unwrap_or(1));
            size.users * process / all
        };
        let limit = self.options.limit * 2 + LIMIT_PER_USER * u32::try_from(size.users).unwrap_or(u32::MAX);
        let turn = |process| Turn {
            strategy: strategy.name.to_owned(),
            coupon,
            stock: size.stock,
            process,
            users: (share(process), share(process + 1)),
            in_flight: (self.options.in_flight / processes).max(1),
            stall: strategy.crash.unwrap_or(self.options.limit),
            limit,
        };
        (0..processes).map(turn).collect()
    }

    async fn command_counts(&self) -> Result<Vec<CommandCounts>, Failure> {
        let mut counts = Vec::new();
        for counter in &self.stage.counters {
            counts.push(counter.read().await?);
        }
        Ok(counts)
    }
}

impl Size {
    /// Another crowd, with a stock as large in proportion.
    fn with(self, users: u64) -> Self {
        let stock = u128::from(self.stock) * u128::from(users) / u128::from(self.users.max(1));
        Self { users, stock: u64::try_from(stock).unwrap_or(u64::MAX).max(1) }
    }
}

fn answers(history: &[Heard]) -> Answers {
    let mut answers = Answers::default();
    for heard in history {
        *match heard.answer {
            Answer::Got => &mut answers.got,
            Answer::SoldOut => &mut answers.sold_out,
            Answer::GaveUp => &mut answers.gave_up,
            Answer::Failed => &mut answers.failed,
            Answer::NoAnswer => &mut answers.no_answer,
        } += 1;
    }
    answers
}

fn cost(strategy: &Strategy, played: &Played, before: &[CommandCounts], after: &[CommandCounts]) -> Cost {
    let of_servers = |figure: &dyn Fn(&CommandCounts, &CommandCounts) -> u64| -> u64 {
        after.iter().zip(before).map(|(after, before)| figure(after, before)).sum()
    };
    let sum = |figure: fn(&super::actor::Effort) -> u64| played.efforts.iter().map(figure).sum::<u64>();
    Cost {
        redis_round_trips: match strategy.counting {
            Counting::Own => sum(|effort| effort.redis_round_trips),
            Counting::ClientCommands => {
                of_servers(&|after, before| after.since(before, CLIENT_COMMANDS).calls)
            }
        },
        redis_commands: of_servers(&|after, before| after.all_since(before).calls),
        sql_statements: sum(|effort| effort.sql_statements),
        retries: sum(|effort| effort.retries),
    }
}

/// By how long those waited who were told something.
fn latency(history: &[Heard]) -> Option<Latency> {
    let told = history.iter().filter(|heard| heard.answer != Answer::NoAnswer);
    let mut waits: Vec<u64> = told.map(|heard| heard.after_us).collect();
    waits.sort_unstable();
    let last = waits.len().checked_sub(1)?;
    let at = |percent: usize| {
        let micros = waits.get(last * percent / 100).copied().unwrap_or_default();
        millis(Duration::from_micros(micros))
    };
    Some(Latency { p50_ms: at(50), p90_ms: at(90), p99_ms: at(99), max_ms: at(100) })
}

fn longest_ms(testimonies: &[Testimony]) -> f64 {
    testimonies.iter().map(|told| millis(told.elapsed)).fold(0.0, f64::max)
}

/// A point for each size, smallest first.
fn growth_of(rounds: &[Round], others: &[Round]) -> Vec<GrowthPoint> {
    let mut sizes: Vec<(u64, u64)> =
        rounds.iter().chain(others).map(|round| (round.users, round.stock)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let point = |(users, stock): (u64, u64)| {
        let times: Vec<f64> = rounds
            .iter()
            .chain(others)
            .filter(|round| round.users == users && round.stock == stock)
            .map(|round| round.elapsed_ms)
            .collect();
        let rounds = u32::try_from(times.len()).unwrap_or(u32::MAX);
        Some(GrowthPoint { users, stock, median_ms: median(times.into_iter())?, rounds })
    };
    sizes.into_iter().filter_map(point).collect()
}
