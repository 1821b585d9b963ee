//! What a worker process is told and what it says.
//!
//! It is started with its [`Orders`] as one JSON argument. Then it reads commands, one per line, and says what came of
//! them, one line each: `<nanoseconds since boot> <slot> <word> [number]`. A slot is one task with one lock in its hand;
//! there are as many as are spoken to.
//!
//! | command | says | |
//! | --- | --- | --- |
//! | (start) | `ready` | slot 0; the gate is open |
//! | `lock <slot>` | `locked <fence>`, `failed` | when it has the lock; meanwhile only `cancel` is understood |
//! | `cancel <slot>` | `cancelled` | the wait is dropped |
//! | `check <slot>` | `held`, `lost` | what the guard says |
//! | `write <slot>` | `accepted`, `refused` | the register checks the fence |
//! | `release <slot>` | `released`, `was-lost`, `unanswered` | waits for the store's answer |
//! | `drop <slot>` | `dropped` | gives it back without waiting |
//! | (by itself) | `lost` | at the moment when `lost()` returns |
//! | `work <tasks>` | `working` | slot 0: so many tasks lock, write and release until told to rest |
//! | `grants` | `grants <number>` | how often they had the lock so far |
//! | `rest` | `resting <number>` | they have given everything back |
//!
//! At the end of its input a worker ends. Every request and answer is also in its history file.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lockgate::config::Config;
use lockgate::lock::{Mutex, Waiting};
use serde::{Deserialize, Serialize};

use super::recipe::Want;

/// How a worker waits for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Hand-off, and passing on inside a process.
    Cohort,
    /// Hand-off, every waiter with a place of its own.
    Alone,
    /// Told when it is free.
    Notify,
    /// Again and again.
    Spin,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Cohort, Policy::Alone, Policy::Notify, Policy::Spin];

    /// Those that stand in the store's queue.
    pub const QUEUED: [Policy; 2] = [Policy::Cohort, Policy::Alone];

    /// Whether waiters stand in the store's queue.
    #[must_use]
    pub fn queues(self) -> bool {
        Self::QUEUED.contains(&self)
    }

    pub(super) fn apply(self, mutex: Mutex) -> Mutex {
        match self {
            Policy::Cohort => mutex,
            Policy::Alone => mutex.cohort(None),
            Policy::Notify => mutex.waiting(Waiting::Notify),
            Policy::Spin => mutex.waiting(Waiting::spin()),
        }
    }
}

/// What a worker is to do all its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub(super) name: String,
    /// The URL of the store, perhaps through a network that fails.
    pub(super) store: String,
    /// The URL of the Redis that plays what the lock protects. No fault ever touches it.
    pub(super) register: String,
    /// Where the history goes.
    pub(super) folder: PathBuf,
    pub(super) lock: String,
    /// What it wants of the lock: slot 1 the first, slot 2 the second, all others the last; a task of a crowd any of them.
    pub(super) wants: Vec<Want>,
    pub(super) policy: Policy,
    pub(super) lease: Duration,
    /// Whether the watchdog keeps the lock beyond its lease.
    pub(super) is_kept: bool,
    pub(super) claim: Duration,
    pub(super) seed: u64,
    pub(super) toil: Toil,
    pub(super) caution: Caution,
}

/// How those work who are told to `work`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Toil {
    /// Over how many locks: the one of the orders, and others with a number behind its name.
    pub(super) locks: u32,
    /// Every other time it is held for up to so long; otherwise for a few milliseconds.
    pub(super) longest_hold: Option<Duration>,
}

impl Default for Toil {
    fn default() -> Self {
        Self { locks: 1, longest_hold: None }
    }
}

/// What is done about a master that may be replaced by one that knows less.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Caution {
    pub(super) wait_replicas: u32,
    pub(super) quarantine: Option<Duration>,
}

impl Orders {
    pub(super) fn config(&self) -> Config {
        let mut config = Config::default();
        config.claim = self.claim;
        config.quarantine = self.caution.quarantine;
        config.redis.wait_replicas = self.caution.wait_replicas;
        config.redis.wait_replicas_for = self.claim / 2;
        // All locks in one partition, so that one master has them all.
        config.redis.cluster_partitions = 1;
        config
    }
}

/// A line that a worker said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// By the clock that all processes of a machine share.
    pub(super) at: u64,
    pub(super) slot: u32,
    pub(super) word: String,
    pub(super) number: u64,
}

impl FromStr for Said {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap_or_default();
        let (at, slot, word, number) = (next().parse(), next().parse(), next().to_owned(), next());
        match (at, slot) {
            (Ok(at), Ok(slot)) => Ok(Self { at, slot, word, number: number.parse().unwrap_or(0) }),
            _ => Err(format!("a worker said {line:?}")),
        }
    }
}

/// A command to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Lock,
    Cancel,
    Check,
    Write,
    Release,
    Drop,
}

impl FromStr for Command {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "lock" => Command::Lock,
            "cancel" => Command::Cancel,
            "check" => Command::Check,
            "write" => Command::Write,
            "release" => Command::Release,
            "drop" => Command::Drop,
            _ => return Err(format!("there is no command {word:?}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_is_understood() {
        let said: Said = "12 1 locked 99".parse().unwrap();
        assert_eq!(said, Said { at: 12, slot: 1, word: "locked".into(), number: 99 });
        assert_eq!("12 0 ready".parse::<Said>().unwrap().number, 0);
        assert!("hello".parse::<Said>().is_err());
    }
}
