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
use super::recipe::{Standing, Want};
use super::shares;
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
    /// What the workers that are started next want, and on what terms.
    pub(super) wants: Vec<Want>,
    pub(super) lease: Duration,
    pub(super) is_kept: bool,
    pub(super) claim: Duration,
    /// How many tasks a process of a crowd has.
    pub(super) tasks: u32,
    /// The store forgets in this run, so two may hold the lock until the older lease ends. Fences rise all the same.
    pub(super) store_forgets: bool,
    /// So many at least must have held it at the same time, or the run has not shown anything.
    pub(super) shared_by: u64,
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
            wants: vec![Want::Mutex],
            lease: Duration::from_millis(500),
            is_kept: true,
            claim: Duration::from_millis(500),
            tasks: 2,
            store_forgets: false,
            shared_by: 0,
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
            wants: self.wants.clone(),
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
        let are_there = async || self.standing().await.is_ok_and(|standing| standing.waiting == waiting);
        if eventually_async(PATIENCE, are_there).await {
            return Ok(());
        }
        let standing = self.standing().await;
        Err(Stop::broken(format!("{waiting} should be in the queue, and it is {standing:?}")))
    }

    /// How the lock stands that the workers that are started next want first.
    pub(super) async fn standing(&self) -> Result<Standing, Stop> {
        self.standing_of(&self.wants[0]).await
    }

    pub(super) async fn standing_of(&self, want: &Want) -> Result<Standing, Stop> {
        want.standing(&self.observer, LOCK).await.map_err(Stop::Trouble)
    }

    /// Nobody wants it any more: it must be free in time, also of what the dead had.
    pub(super) async fn becomes_free(&mut self, bound: Duration) {
        let bound = bound + self.allowance;
        let is_free = async || self.standing().await.is_ok_and(|standing| standing == Standing::FREE);
        if !eventually_async(bound, is_free).await {
            let standing = self.standing().await;
            self.broken.push(format!("not free after {bound:?} without anybody who wants it: {standing:?}"));
        }
    }

    /// What all workers have written down so far.
    pub(super) fn history(&self) -> Result<History, Stop> {
        Ok(History::read_folder(self.folder.path())?)
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
        let shares = shares::judge(self.folder.path())?;
        self.broken.extend(shares.violations);
        if shares.at_once < self.shared_by {
            self.broken.push(format!("shared by {}, and not by {}", shares.at_once, self.shared_by));
        }
        if verdict.is_empty() && shares.holds == 0 {
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
            operations: verdict.judged.operations + shares.holds,
            violations: self.broken,
        })
    }
}
