//! Where one run takes place: a Redis that may fail, a register that does not, workers, and the judge.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lockgate::Gate;
use lockgate::testing::eventually_async;
use lockgate::testing::history::{Bounds, History, Violation, check};
use lockgate::testing::proxy::FaultProxy;
use lockgate::testing::services::{Persistence, Redis};
use tempfile::TempDir;
use tokio::time::sleep;

use super::dice::Dice;
use super::hand::{Hand, PATIENCE};
use super::orders::{Caution, Orders, Policy, Toil};
use super::stop::Stop;
use super::{Failure, Outcome, Run, Site};

/// The lock that everybody wants.
const LOCK: &str = "till";

/// How much later than promised is still in time: for the wake-ups and the hops of a machine with nothing else to do.
pub(super) const PROMPT: Duration = Duration::from_millis(100);

pub(super) struct Arena {
    pub(super) dice: Dice,
    pub(super) redis: Redis,
    pub(super) policy: Policy,
    /// The terms of the workers that are started next.
    pub(super) lease: Duration,
    pub(super) is_kept: bool,
    pub(super) claim: Duration,
    /// The store forgets in this run, so two may hold the lock until the older lease ends. Fences rise all the same.
    pub(super) store_forgets: bool,
    register: Redis,
    observer: Gate,
    folder: TempDir,
    program: PathBuf,
    allowance: Duration,
    faults: u64,
    broken: Vec<String>,
}

impl Arena {
    pub(super) async fn open(site: &Site, run: &Run, persistence: Persistence) -> Result<Self, Failure> {
        let mut dice = Dice::new(run.seed);
        let policy = run.policy.unwrap_or_else(|| dice.one_of(run.scenario.policies()));
        let redis = Redis::start(persistence)?;
        let observer = Gate::open(&redis.url()).await?;
        Ok(Self {
            dice,
            redis,
            policy,
            lease: Duration::from_millis(500),
            is_kept: true,
            claim: Duration::from_millis(500),
            store_forgets: false,
            register: Redis::start(Persistence::Off)?,
            observer,
            folder: tempfile::Builder::new().prefix("lockgate-faults-").tempdir()?,
            program: site.program.clone(),
            allowance: site.allowance,
            faults: 0,
            broken: Vec::new(),
        })
    }

    /// A worker that reaches the store directly.
    pub(super) async fn worker(&mut self, name: &str) -> Result<Hand, Stop> {
        let store = self.redis.url();
        self.worker_at(name, store).await
    }

    /// A worker and the network between it and the store.
    pub(super) async fn worker_behind_a_proxy(&mut self, name: &str) -> Result<(Hand, FaultProxy), Stop> {
        let proxy = FaultProxy::start(SocketAddr::from(([127, 0, 0, 1], self.redis.port()))).await?;
        let hand = self.worker_at(name, format!("redis://{}", proxy.addr())).await?;
        Ok((hand, proxy))
    }

    async fn worker_at(&mut self, name: &str, store: String) -> Result<Hand, Stop> {
        let orders = Orders {
            name: name.to_owned(),
            store,
            register: self.register.url(),
            folder: self.folder.path().to_owned(),
            lock: LOCK.to_owned(),
            policy: self.policy,
            lease: self.lease,
            is_kept: self.is_kept,
            claim: self.claim,
            seed: self.dice.below(u64::MAX),
            toil: Toil::default(),
            caution: Caution::default(),
        };
        let mut hand = Hand::start(&self.program, &orders)?;
        hand.says(0, &["ready"]).await?;
        Ok(hand)
    }

    /// Lets a worker wait, and returns when `waiting` are in the queue; without a queue, when they have surely asked.
    pub(super) async fn let_wait(&mut self, hand: &mut Hand, waiting: u64) -> Result<(), Stop> {
        hand.tell("lock 1")?;
        self.until_waiting(waiting).await
    }

    pub(super) async fn until_waiting(&mut self, waiting: u64) -> Result<(), Stop> {
        if !self.policy.queues() {
            sleep(self.dice.millis(30, 80)).await;
            return Ok(());
        }
        let mutex = self.observer.mutex(LOCK)?;
        let are_there = async || mutex.status().await.is_ok_and(|status| status.waiting == waiting);
        if eventually_async(PATIENCE, are_there).await {
            return Ok(());
        }
        Err(Stop::broken(format!("{waiting} should be in the queue, and it is {:?}", mutex.status().await)))
    }

    pub(super) fn count_fault(&mut self) {
        self.faults += 1;
    }

    /// Something took from one time to another, and must not take longer than its bound, give or take what this machine
    /// is allowed.
    pub(super) fn within(&mut self, what: &str, from: u64, to: u64, bound: Duration) {
        let took = Duration::from_nanos(to.saturating_sub(from));
        if took > bound + self.allowance {
            self.broken.push(format!(
                "{what} took {took:?}; allowed are {bound:?}, and {:?} for a busy machine",
                self.allowance
            ));
        }
    }

    /// Something must be so.
    pub(super) fn demand(&mut self, is_so: bool, what: impl FnOnce() -> String) {
        if !is_so {
            self.broken.push(what());
        }
    }

    /// Reads what all workers wrote down, also the dead ones, and judges it.
    pub(super) fn judge(mut self, run: &Run, ended: Result<(), Stop>) -> Result<Outcome, Failure> {
        match ended {
            Ok(()) => {}
            Err(Stop::Broken(what)) => self.broken.push(what),
            Err(Stop::Trouble(why)) => return Err(why),
        }
        let verdict = check(&History::read_folder(self.folder.path())?, &Bounds::default());
        let is_excused =
            |violation: &Violation| self.store_forgets && matches!(violation, Violation::TwoHolders { .. });
        let found = verdict.violations.iter().filter(|violation| !is_excused(violation));
        self.broken.extend(found.map(ToString::to_string));
        if verdict.is_empty() {
            self.broken.push("nothing was written down, so nothing was judged".to_owned());
        }
        if !self.broken.is_empty() {
            let kept = self.folder.keep();
            self.broken.push(format!("(what the processes wrote down is in {})", kept.display()));
        }
        Ok(Outcome {
            scenario: run.scenario,
            seed: run.seed,
            policy: self.policy,
            faults: self.faults,
            operations: verdict.judged.operations,
            violations: self.broken,
        })
    }
}
