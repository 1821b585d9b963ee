//! What a run of the lab found: everything that a table, a JSON file or a chart is made from.
//!
//! **Promise:** a report says under which conditions its figures were measured (machine, servers, options), what was left out
//! and why, and for every strategy what it claims, what was seen in each round, and whether the two agree. It can be written as
//! JSON and read back without loss, so a chart can be made of a run that is long over.
//!
//! **Not promised:** that times compare between two reports. They do within one.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::audit::{Evidence, Flaw};
use super::claim::Claim;

/// One run of the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Which Lockgate measured.
    pub lockgate_version: String,
    /// When it began: microseconds since 1970.
    pub began_at_us: u64,
    /// How long all of it took.
    pub took_ms: f64,
    /// Where.
    pub machine: Machine,
    /// On which Redis; `None` when there was none.
    pub redis: Option<Service>,
    /// On which database.
    pub database: Service,
    /// What was asked for.
    pub options: Conditions,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    /// What was tried, in the order of the registry.
    pub strategies: Vec<Tried>,
}

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// How many cores this process may use.
    pub cores: usize,
    /// How much memory the machine has, where it is known.
    pub memory_bytes: Option<u64>,
    /// The processor's name, where it is known.
    pub processor: Option<String>,
    /// The operating system, as it calls itself.
    pub os: String,
}

/// A server that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// `Redis`, `PostgreSQL`, `MariaDB`, `MySQL`, `SQLite`.
    pub name: String,
    /// As it says itself.
    pub version: String,
    /// Whether the lab started it, rather than being given its URL.
    pub is_own: bool,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// How many want one.
    pub users: u64,
    /// How many there are.
    pub stock: u64,
    /// Over how many processes the users are spread.
    pub processes: usize,
    /// How often each strategy was to be tried, at least.
    pub rounds: u32,
    /// The sizes of the growth series, beside `users`.
    pub growth: Vec<u64>,
    /// How many requests are served at the same time, over all processes; the rest waits at the door.
    pub in_flight: usize,
    /// Database connections, over all processes.
    pub connections: u32,
    /// After how long without an answer for anybody those who are left count as stuck.
    pub limit_ms: f64,
}

/// A strategy that did not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub strategy: String,
    /// Why, and what to do about it.
    pub why: String,
}

/// A strategy, and how it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The name that `--strategies` takes.
    pub name: String,
    /// The same in plain words.
    pub title: String,
    /// What it is built on.
    pub family: Family,
    /// What it says of itself.
    pub claim: Claim,
    /// Every round.
    pub rounds: Vec<Round>,
    /// Time against users: a point for each size, smallest first. Empty when the strategy gets stuck, as its time is the limit's.
    pub growth: Vec<GrowthPoint>,
    /// Whether claim and rounds agree.
    pub finding: Finding,
}

/// What a strategy is built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Nothing at all.
    Nothing,
    /// A lock or a counter in the memory of one process.
    InProcess,
    /// The database decides.
    Database,
    /// A lock in Redis around the work in the database.
    RedisLock,
    /// Redis decides, and the database is written afterwards.
    RedisDecides,
    /// A queue, and somebody who works it off.
    Queue,
    /// The library itself.
    Lockgate,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Nothing => "nothing",
            Family::InProcess => "in process",
            Family::Database => "database",
            Family::RedisLock => "lock in Redis",
            Family::RedisDecides => "Redis decides",
            Family::Queue => "queue",
            Family::Lockgate => "Lockgate",
        })
    }
}

/// One round of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// How many wanted one.
    pub users: u64,
    /// How many there were.
    pub stock: u64,
    /// Over how many processes the users were spread.
    pub processes: usize,
    /// From the start until the last user had an answer or was given up.
    pub elapsed_ms: f64,
    /// What the strategy wrote after the last answer (a worker that caught up, a batch), which is not in `elapsed_ms`.
    pub write_back_ms: f64,
    /// What the users were told.
    pub answers: Answers,
    /// What it cost.
    pub cost: Cost,
    /// How long those waited who had an answer; `None` when nobody had.
    pub latency: Option<Latency>,
    /// What the auditor found; nothing when it was exact.
    pub flaws: Vec<Flaw>,
    /// What the auditor goes by.
    pub evidence: Evidence,
    /// Something remarkable of this round, in words (a holder that was killed, the first error).
    pub notes: Vec<String>,
}

impl Round {
    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// What users were told, by how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// You have one.
    pub got: u64,
    /// There are none left.
    pub sold_out: u64,
    /// Too busy, try again later.
    pub gave_up: u64,
    /// An error.
    pub failed: u64,
    /// Nothing, within the limit.
    pub no_answer: u64,
}

/// What a round cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How often somebody waited for an answer of Redis; a pipeline is one.
    pub redis_round_trips: u64,
    /// What Redis executed, commands inside scripts included.
    pub redis_commands: u64,
    /// Statements that the database was sent, `BEGIN` and `COMMIT` included.
    pub sql_statements: u64,
    /// How often somebody had to begin anew: a version that had changed, a lock that was lost.
    pub retries: u64,
}

/// How long users waited, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them, at most.
    pub p50_ms: f64,
    /// Nine of ten.
    pub p90_ms: f64,
    /// All but one in a hundred.
    pub p99_ms: f64,
    /// The last one.
    pub max_ms: f64,
}

/// How long a crowd of one size took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowthPoint {
    /// How many wanted one. The stock was as large in proportion as in the rounds.
    pub users: u64,
    /// How many there were.
    pub stock: u64,
    /// The median over the rounds of this size.
    pub median_ms: f64,
    /// How many rounds that is.
    pub rounds: u32,
}

/// Whether a strategy is what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether the rounds bear the claim out.
    pub is_as_claimed: bool,
    /// Where they do not, in words. Empty when they do.
    pub contradictions: Vec<String>,
    /// How many rounds, growth included, were exact.
    pub exact_rounds: u32,
    /// How many rounds there were, growth included.
    pub all_rounds: u32,
    /// Every flaw that was seen, once.
    pub seen: Vec<Flaw>,
}

impl Report {
    /// Those whose claim and finding differ.
    pub fn contradictions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.strategies.iter().flat_map(|tried| {
            tried.finding.contradictions.iter().map(|words| (tried.name.as_str(), words.as_str()))
        })
    }
}

impl Tried {
    /// The median time of its rounds, without those of the growth series; `None` when there was none.
    #[must_use]
    pub fn median_ms(&self) -> Option<f64> {
        median(self.rounds.iter().map(|round| round.elapsed_ms))
    }

    /// The same of what was written after the last answer.
    #[must_use]
    pub fn median_write_back_ms(&self) -> Option<f64> {
        median(self.rounds.iter().map(|round| round.write_back_ms))
    }

    /// Round trips to Redis per user who got one, over all rounds.
    #[must_use]
    pub fn redis_round_trips_per_success(&self) -> Option<f64> {
        self.per_success(|cost| cost.redis_round_trips)
    }

    /// SQL statements per user who got one, over all rounds.
    #[must_use]
    pub fn sql_statements_per_success(&self) -> Option<f64> {
        self.per_success(|cost| cost.sql_statements)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of calls are far below 2^53")]
    fn per_success(&self, figure: impl Fn(&Cost) -> u64) -> Option<f64> {
        let got: u64 = self.rounds.iter().map(|round| round.answers.got).sum();
        let all: u64 = self.rounds.iter().map(|round| figure(&round.cost)).sum();
        (got > 0).then(|| all as f64 / got as f64)
    }
}

/// To the microsecond, which is as much as was measured.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

/// The middle one, or the mean of the two in the middle.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let above = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(above);
    }
    values.get(middle.checked_sub(1)?).map(|below| f64::midpoint(*below, above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }

    #[test]
    fn a_figure_of_many_digits_is_read_back_as_it_was_written() {
        // A median of two times that were measured to the microsecond; one bit off if it is read without care.
        let median_ms = median([18.711, 19.166].into_iter()).unwrap();
        assert_eq!(median_ms.to_string(), "18.938499999999998");
        let point = GrowthPoint { users: 60, stock: 40, median_ms, rounds: 2 };
        let written = serde_json::to_string(&point).unwrap();
        assert_eq!(serde_json::from_str::<GrowthPoint>(&written).unwrap(), point);
    }
}
