//! Masters that die and are replaced by a replica, again and again, under processes that work a few locks without end.
//!
//! **Promise:** fences never go back, and the register never takes a write of one that was overtaken: that is judged. How
//! often two believed to hold a lock at once is counted, because asynchronous replication may forget what was
//! acknowledged; what can be done about that is a [`Mode`], and the table shows what it is worth.
//!
//! So that something is lost at all, the replicas' connections are cut some tens of milliseconds before the master dies, in a
//! part of the failovers; in another part the master only falls silent, is replaced, and lives on for a moment. See
//! [`Fault`]. Holders keep their locks for up to their lease, which is longer than a failover takes.

use std::time::Duration;

use lockgate::Gate;
use lockgate::testing::history::{Bounds, check};
use lockgate::testing::history::{History, Violation, Witness};
use lockgate::testing::services::{Persistence, Redis};
use tempfile::TempDir;
use tokio::time::sleep;

mod servers;
mod table;

pub use self::table::SeriesTable;

use self::servers::Servers;
use super::dice::Dice;
use super::hand::{Hand, PATIENCE, nanos, now};
use super::orders::{Caution, Orders, Policy, Toil};
use super::recipe::Want;
use super::stop::Stop;
use super::{Failure, Site};

/// The longest lease of anybody, and so the length of a quarantine.
const LEASE: Duration = Duration::from_secs(2);
const CLAIM: Duration = Duration::from_millis(500);
const LOCKS: u32 = 32;
/// Tasks of each process.
const TASKS: u32 = 10;
/// How the processes wait, and whether a watchdog keeps their locks.
const PROCESSES: [(Policy, bool); 3] =
    [(Policy::Cohort, true), (Policy::Alone, false), (Policy::Cohort, false)];

/// Who decides that a replica takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Three sentinels; a master with two replicas.
    Sentinel,
    /// Three masters, each with one replica.
    Cluster,
}

impl Topology {
    /// Both.
    pub const ALL: [Topology; 2] = [Topology::Sentinel, Topology::Cluster];

    /// What it is called in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Topology::Sentinel => "Sentinel",
            Topology::Cluster => "Cluster",
        }
    }
}

/// What is done about writes that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Async,
    /// One replica must have a lock before it counts.
    Wait,
    /// Nobody is given a lock for the longest lease after the master has changed.
    Quarantine,
    /// Both of it.
    Both,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 4] = [Mode::Async, Mode::Wait, Mode::Quarantine, Mode::Both];

    /// What it is called on the command line and in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Async => "async",
            Mode::Wait => "wait",
            Mode::Quarantine => "quarantine",
            Mode::Both => "both",
        }
    }

    fn caution(self) -> Caution {
        Caution {
            wait_replicas: u32::from(matches!(self, Mode::Wait | Mode::Both)),
            quarantine: matches!(self, Mode::Quarantine | Mode::Both).then_some(LEASE),
        }
    }
}

/// How the master fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// With `kill -9`.
    Killed,
    /// The same, and no replica has heard of what it did in the last 30 to 200 ms.
    KilledUnheard,
    /// One of two replicas has heard of it, and dies too. Behind Sentinel only; elsewhere there is one replica.
    KilledWithWitness,
    /// It is stopped, replaced, goes on for up to 300 ms, and is killed then.
    Silent,
}

impl Fault {
    const ALL: [Fault; 4] = [Fault::Killed, Fault::KilledUnheard, Fault::KilledWithWitness, Fault::Silent];

    fn name(self) -> &'static str {
        match self {
            Fault::Killed => "killed",
            Fault::KilledUnheard => "killed, last writes unheard",
            Fault::KilledWithWitness => "killed with the replica that heard",
            Fault::Silent => "silent, then killed",
        }
    }

    /// Half of them lose something that was not heard.
    fn by_chance(topology: Topology, dice: &mut Dice) -> Self {
        match (dice.below(10), topology) {
            (0..2, _) => Fault::Killed,
            (2..4, _) => Fault::Silent,
            (4..6, Topology::Sentinel) => Fault::KilledWithWitness,
            _ => Fault::KilledUnheard,
        }
    }
}

/// Failovers of one topology in one mode.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// Who decides.
    pub topology: Topology,
    /// What is done.
    pub mode: Mode,
    /// How many.
    pub failovers: u32,
    /// Where chance comes from.
    pub seed: u64,
}

/// What a series came to.
#[derive(Clone, Debug)]
pub struct SeriesOutcome {
    /// What was done.
    pub series: Series,
    /// For each failover: how, how long until a lock could be taken again, and how many overlaps began after it.
    failovers: Vec<Failover>,
    /// How many operations were judged.
    pub operations: u64,
    /// Broken promises: fences that went back, writes of one that was overtaken, and whatever else may be wrong.
    pub violations: Vec<String>,
    regressed: u64,
    stale_writes: u64,
}

#[derive(Clone, Debug)]
struct Failover {
    fault: Fault,
    /// By the clock that all processes of this machine share.
    at: u64,
    back_after: Duration,
    overlaps: u64,
}

impl SeriesOutcome {
    /// How often two believed to hold a lock at once.
    #[must_use]
    pub fn overlaps(&self) -> u64 {
        self.failovers.iter().map(|failover| failover.overlaps).sum()
    }
}

/// Does a series. Says what it does, one line per failover.
///
/// # Errors
///
/// When a service or a worker cannot be started. A broken promise is no error, but part of the outcome.
pub async fn fail_over(site: &Site, series: &Series) -> Result<SeriesOutcome, Failure> {
    let mut stage = Stage::set(site, series).await.map_err(failure)?;
    let mut failovers = Vec::new();
    for number in 0..series.failovers {
        let failover = stage.fail_over(number).await?;
        println!(
            "{} {} {}/{}: {}, back after {:?}",
            series.topology.name(),
            series.mode.name(),
            number + 1,
            series.failovers,
            failover.fault.name(),
            failover.back_after
        );
        failovers.push(failover);
    }
    stage.end(failovers).await
}

fn failure(stop: Stop) -> Failure {
    match stop {
        Stop::Broken(what) => what.into(),
        Stop::Trouble(why) => why,
    }
}

/// Servers, workers, and somebody who looks when a lock can be taken again.
struct Stage {
    series: Series,
    dice: Dice,
    /// First, so that they are gone before what they work on goes.
    hands: Vec<Hand>,
    observer: Gate,
    servers: Servers,
    _register: Redis,
    folder: TempDir,
}

impl Stage {
    async fn set(site: &Site, series: &Series) -> Result<Self, Stop> {
        let mut dice = Dice::new(series.seed);
        let servers = Servers::start(series.topology).map_err(Stop::Trouble)?;
        let register = Redis::start(Persistence::Off)?;
        let folder = tempfile::Builder::new().prefix("lockgate-failover-").tempdir()?;
        let orders = |number: usize, (policy, is_kept): (Policy, bool), dice: &mut Dice| Orders {
            name: format!("worker-{number}"),
            store: servers.url(),
            register: register.url(),
            folder: folder.path().to_owned(),
            lock: "till".to_owned(),
            policy,
            lease: LEASE,
            is_kept,
            claim: CLAIM,
            wants: vec![Want::Mutex],
            seed: dice.below(u64::MAX),
            toil: Toil { locks: LOCKS, longest_hold: Some(LEASE) },
            caution: series.mode.caution(),
        };
        let mut hands = Vec::new();
        for (number, kind) in PROCESSES.into_iter().enumerate() {
            let mut hand = Hand::start(&site.program, &orders(number, kind, &mut dice))?;
            hand.says(0, &["ready"]).await?;
            hand.tell(&format!("work {TASKS}"))?;
            hands.push(hand);
        }
        let observer = orders(PROCESSES.len(), PROCESSES[0], &mut dice);
        let observer = Gate::open_with(&observer.store, &observer.config()).await?;
        let stage = Self { series: *series, dice, hands, observer, servers, _register: register, folder };
        // A quarantine begins with the first use.
        stage.lock_works("at first", now()).await?;
        sleep(LEASE).await;
        Ok(stage)
    }

    async fn fail_over(&mut self, number: u32) -> Result<Failover, Failure> {
        let Self { series, dice, observer, servers, .. } = self;
        let fault = Fault::by_chance(series.topology, dice);
        let down = servers.strike(fault, dice).await?;
        let at = now();
        let looking = tokio::spawn(lock_works(observer.clone(), format!("after-{number}"), at));
        servers.promote(&down)?;
        servers.recover(down, dice).await?;
        let back_after = looking.await??;
        // So that everybody is at work again, with locks that the last failover has not touched.
        let next = at + nanos(back_after + dice.millis(1_000, 1_500));
        sleep(Duration::from_nanos(next.saturating_sub(now()))).await;
        Ok(Failover { fault, at, back_after, overlaps: 0 })
    }

    async fn lock_works(&self, name: &str, since: u64) -> Result<Duration, Stop> {
        lock_works(self.observer.clone(), name.to_owned(), since).await.map_err(Stop::Trouble)
    }

    async fn end(mut self, mut failovers: Vec<Failover>) -> Result<SeriesOutcome, Failure> {
        let mut violations = Vec::new();
        for hand in &mut self.hands {
            hand.tell("rest").map_err(failure)?;
        }
        for hand in &mut self.hands {
            if let Err(Stop::Broken(what)) = hand.says(0, &["resting"]).await {
                violations.push(what);
            }
        }
        let verdict = check(&History::read_folder(self.folder.path())?, &Bounds::default());
        let (mut regressed, mut stale_writes) = (0, 0);
        for violation in &verdict.violations {
            match violation {
                Violation::TwoHolders { first, second, .. } => count_overlap(&mut failovers, first, second),
                Violation::FenceWentBack { .. } | Violation::FenceGivenTwice { .. } => regressed += 1,
                Violation::StaleWriteAccepted { .. } => stale_writes += 1,
                _ => {}
            }
            if !matches!(violation, Violation::TwoHolders { .. }) {
                violations.push(violation.to_string());
            }
        }
        if verdict.is_empty() {
            violations.push("nothing was written down, so nothing was judged".to_owned());
        }
        if !violations.is_empty() {
            let kept = self.folder.keep();
            violations.push(format!("(what the processes wrote down is in {})", kept.display()));
        }
        let operations = verdict.judged.operations;
        Ok(SeriesOutcome { series: self.series, failovers, operations, violations, regressed, stale_writes })
    }
}

/// An overlap belongs to the last failover before it began.
fn count_overlap(failovers: &mut [Failover], first: &Witness, second: &Witness) {
    let began = first.ended.max(second.ended).unwrap_or(0);
    let place = failovers.iter().rposition(|failover| failover.at <= began).unwrap_or(0);
    if let Some(failover) = failovers.get_mut(place) {
        failover.overlaps += 1;
    }
}

/// Returns when a lock that nobody holds can be taken, with how long that took.
async fn lock_works(observer: Gate, name: String, since: u64) -> Result<Duration, Failure> {
    loop {
        let taken = observer.mutex(&name)?.lease(LEASE)?.wait(PATIENCE).lock().await;
        let took = Duration::from_nanos(now() - since);
        match taken {
            Ok(guard) => {
                // Whether it can be given back does not matter here: nobody else wants it.
                let _ = guard.release().await;
                return Ok(took);
            }
            Err(why) if took > PATIENCE => return Err(format!("no lock within {took:?}: {why}").into()),
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}
