//! What happens to a lock, and to a line, when processes, networks and servers fail.
//!
//! **Promise:** every fault here is real. Holders and waiters are processes of their own, ended with `kill -9` and stopped
//! with `SIGSTOP` while they wait, hold or are being handed the lock; connections are cut and replies swallowed between
//! them and a real Redis, which is itself killed, stopped and emptied. Each scenario states its bound and measures it, and
//! all that the processes saw, also the dead ones, goes to a judge that knows nothing of how a lock works
//! ([`lockgate::testing::history`]). Chance comes from a seed, which is printed.
//!
//! **Not promised:** that a seed repeats a failure. It repeats what was done and when, not what the scheduler made of it;
//! a few runs with it usually do.
//!
//! ```text
//! orchestra   run after run until the time is over, and a table
//! arena       one run: a Redis, a register, workers, the judge
//! hand        the orchestrator's end of a worker
//! orders      what a worker is told and what it says
//! worker      a process that works a lock; recipe: of what kind, hold: a lock in its hand, register: what it protects
//! shares      the judge of locks that are shared
//! crowd       processes that work without end
//! holder, waiter, network, server, storm      the scenarios of a mutex
//! sharer, crossing, shared_storm              those of the other locks
//! cancel      waits that are dropped, a hundred thousand times
//! failover    masters that die and are replaced, counted and not only judged
//! line        the same for lines: processes full of people, an auditor, a judge
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use lockgate::testing::services::Persistence;

mod arena;
mod cancel;
mod crossing;
mod crowd;
mod dice;
mod failover;
mod hand;
mod hold;
mod holder;
mod line;
mod network;
mod orchestra;
mod orders;
mod recipe;
mod register;
mod report;
mod server;
mod shared_storm;
mod sharer;
mod shares;
mod stop;
mod storm;
mod waiter;
mod worker;

pub use self::cancel::{Cancellations, cancel};
pub use self::failover::{Mode, Series, SeriesOutcome, SeriesTable, Topology, fail_over};
pub use self::line::{LineOutcome, LinePlan, LineScenario, PeopleOrders, live, perform_lines, run_line};
pub use self::orchestra::{Plan, perform};
pub use self::orders::{Orders, Policy};
pub use self::worker::work;

use self::arena::Arena;
use self::stop::Stop;

/// Why a run could not be done; a broken promise is no such reason.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What is done to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// The holder is killed: the next one has the lock when the lease is over.
    HolderKilled,
    /// The holder is stopped beyond its lease: it is shut out, and knows it as soon as it runs again.
    HolderPaused,
    /// A waiter is killed in the queue: those behind it do not notice.
    WaiterKilled,
    /// A waiter is killed at the moment when it is given the lock: those behind it wait for the claim lease.
    HeirKilled,
    /// A waiter is stopped when it is given the lock: the same, and it does not believe to have it afterwards.
    HeirPaused,
    /// The holder and the first waiter go together.
    HolderAndHeirGone,
    /// The message that gives a waiter the lock is lost.
    MessageLost,
    /// Subscriptions are cut when the lock is released.
    SubscriptionCut,
    /// The lock becomes free at the very moment when somebody begins to wait for it.
    WakeUpRace,
    /// The connection is cut, or a reply lost, while the lock is taken, kept, given back.
    ConnectionCut,
    /// The reply to handing over and queueing again is lost.
    YieldReplyLost,
    /// The message comes when the claim lease is over, or nearly.
    PushDelayed,
    /// Redis is killed and comes back with its data.
    ServerRestarted,
    /// Redis comes back without any data.
    ServerForgets,
    /// Redis forgets the scripts.
    ScriptsFlushed,
    /// Redis is stopped for twice the lease.
    ServerPaused,
    /// Everything at once.
    Storm,
    /// Waits are dropped at random points.
    Cancellation,
    /// A reader among ten is killed, or stopped: a writer has the lock when that reader's lease is over.
    DeadReader,
    /// A holder of permits is killed, or stopped: they come back when its lease is over.
    DeadPermitHolder,
    /// A process with readers lets those of others in, and the answer to that is late.
    LateAnswer,
    /// Locks of several names cross each other, and those who want them are killed.
    Crossing,
    /// Everything at once, on a read-write lock.
    RwStorm,
    /// Everything at once, on a semaphore.
    PermitStorm,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 24] = [
        Scenario::HolderKilled,
        Scenario::HolderPaused,
        Scenario::WaiterKilled,
        Scenario::HeirKilled,
        Scenario::HeirPaused,
        Scenario::HolderAndHeirGone,
        Scenario::MessageLost,
        Scenario::SubscriptionCut,
        Scenario::WakeUpRace,
        Scenario::ConnectionCut,
        Scenario::YieldReplyLost,
        Scenario::PushDelayed,
        Scenario::ServerRestarted,
        Scenario::ServerForgets,
        Scenario::ScriptsFlushed,
        Scenario::ServerPaused,
        Scenario::Storm,
        Scenario::Cancellation,
        Scenario::DeadReader,
        Scenario::DeadPermitHolder,
        Scenario::LateAnswer,
        Scenario::Crossing,
        Scenario::RwStorm,
        Scenario::PermitStorm,
    ];

    /// What it is called on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scenario::HolderKilled => "holder-killed",
            Scenario::HolderPaused => "holder-paused",
            Scenario::WaiterKilled => "waiter-killed",
            Scenario::HeirKilled => "heir-killed",
            Scenario::HeirPaused => "heir-paused",
            Scenario::HolderAndHeirGone => "holder-and-heir-gone",
            Scenario::MessageLost => "message-lost",
            Scenario::SubscriptionCut => "subscription-cut",
            Scenario::WakeUpRace => "wake-up-race",
            Scenario::ConnectionCut => "connection-cut",
            Scenario::YieldReplyLost => "yield-reply-lost",
            Scenario::PushDelayed => "push-delayed",
            Scenario::ServerRestarted => "server-restarted",
            Scenario::ServerForgets => "server-forgets",
            Scenario::ScriptsFlushed => "scripts-flushed",
            Scenario::ServerPaused => "server-paused",
            Scenario::Storm => "storm",
            Scenario::Cancellation => "cancellation",
            Scenario::DeadReader => "dead-reader",
            Scenario::DeadPermitHolder => "dead-permit-holder",
            Scenario::LateAnswer => "late-answer",
            Scenario::Crossing => "crossing",
            Scenario::RwStorm => "rw-storm",
            Scenario::PermitStorm => "permit-storm",
        }
    }

    /// The ways of waiting for which it makes sense.
    #[must_use]
    pub fn policies(self) -> &'static [Policy] {
        match self {
            Scenario::WaiterKilled
            | Scenario::HeirKilled
            | Scenario::HeirPaused
            | Scenario::HolderAndHeirGone
            | Scenario::PushDelayed
            | Scenario::DeadReader
            | Scenario::DeadPermitHolder
            | Scenario::Crossing
            | Scenario::RwStorm
            | Scenario::PermitStorm => &Policy::QUEUED,
            Scenario::MessageLost | Scenario::SubscriptionCut | Scenario::WakeUpRace => {
                &[Policy::Cohort, Policy::Alone, Policy::Notify]
            }
            Scenario::YieldReplyLost | Scenario::LateAnswer => &[Policy::Cohort],
            _ => &Policy::ALL,
        }
    }

    fn persistence(self) -> Persistence {
        match self {
            Scenario::ServerRestarted => Persistence::AofAlways,
            _ => Persistence::Off,
        }
    }
}

/// One run of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What is done.
    pub scenario: Scenario,
    /// Where chance comes from.
    pub seed: u64,
    /// How is waited; the seed decides when nothing is said.
    pub policy: Option<Policy>,
}

/// What is the same for all runs.
#[derive(Clone, Debug)]
pub struct Site {
    /// The program with the hidden modes: `lockgate-faults`.
    pub program: PathBuf,
    /// What every bound is extended by, for a machine that has other things to do.
    pub allowance: Duration,
    /// How many waits a run of [`Scenario::Cancellation`] drops.
    pub cancellations: u64,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was done.
    pub scenario: Scenario,
    /// With this seed.
    pub seed: u64,
    /// In this way.
    pub policy: Policy,
    /// How many faults were injected.
    pub faults: u64,
    /// How many operations were judged.
    pub operations: u64,
    /// Broken promises.
    pub violations: Vec<String>,
}

/// Does one run.
///
/// # Errors
///
/// When a service or a worker cannot be started. A broken promise is no error, but part of the outcome.
pub async fn run(site: &Site, run: &Run) -> Result<Outcome, Failure> {
    if run.scenario == Scenario::Cancellation {
        return cancel::scenario(site, run).await;
    }
    let mut arena = Arena::open(site, run, run.scenario.persistence()).await?;
    let ended = play(run.scenario, &mut arena).await;
    arena.judge(run, ended)
}

async fn play(scenario: Scenario, arena: &mut Arena) -> Result<(), Stop> {
    match scenario {
        Scenario::HolderKilled => holder::killed(arena).await,
        Scenario::HolderPaused => holder::paused(arena).await,
        Scenario::WaiterKilled => waiter::killed_in_the_queue(arena).await,
        Scenario::HeirKilled => waiter::killed_as_heir(arena).await,
        Scenario::HeirPaused => waiter::paused_as_heir(arena).await,
        Scenario::HolderAndHeirGone => waiter::gone_with_the_holder(arena).await,
        Scenario::MessageLost => network::message_lost(arena).await,
        Scenario::SubscriptionCut => network::subscription_cut(arena).await,
        Scenario::WakeUpRace => network::wake_up_race(arena).await,
        Scenario::ConnectionCut => network::connection_cut(arena).await,
        Scenario::YieldReplyLost => network::yield_reply_lost(arena).await,
        Scenario::PushDelayed => network::push_delayed(arena).await,
        Scenario::ServerRestarted => server::restarted(arena).await,
        Scenario::ServerForgets => server::forgets(arena).await,
        Scenario::ScriptsFlushed => server::scripts_flushed(arena).await,
        Scenario::ServerPaused => server::paused(arena).await,
        Scenario::Storm => storm::storm(arena).await,
        Scenario::DeadReader => sharer::dead_reader(arena).await,
        Scenario::DeadPermitHolder => sharer::dead_permit_holder(arena).await,
        Scenario::LateAnswer => sharer::late_answer(arena).await,
        Scenario::Crossing => crossing::crossing(arena).await,
        Scenario::RwStorm => shared_storm::of_readers_and_writers(arena).await,
        Scenario::PermitStorm => shared_storm::of_permits(arena).await,
        // It has no workers, and therefore no arena.
        Scenario::Cancellation => Ok(()),
    }
}
