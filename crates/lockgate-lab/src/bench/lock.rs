//! Taking a lock and giving it back: alone, and in a crowd of one or several processes.
//!
//! Each contender's turn is done by processes of its own, started anew, that begin at the same moment: the lock is between
//! processes, so it is measured between processes. In a crowd, each holder reads a counter that nothing but the lock protects,
//! holds for as long as the case says, and writes it back plus one; what is missing in the end are violations.
//!
//! ```text
//! lock         the cases
//!  crew        starts the processes, and adds up what they did
//!  locker      how each contender locks (runs in those processes)
//!  notebook    the counter, and when the lock was last given back
//! family       readers, permits, several locks at once, a quorum: each in one process
//! rush         300 who take the lock once each
//! held         100,000 locks at once
//! cost         what waiting costs, by the usual estimate and measured
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::Failure;
use super::frame::{Case, Contender, Doing, Role};
use super::tally::Tallies;

pub(super) mod cost;
mod crew;
pub(super) mod family;
pub(super) mod held;
mod locker;
mod notebook;
pub(super) mod rush;

use self::crew::Crew;
pub(super) use self::crew::serve_in_crew;
use self::notebook::Notebook;

/// A way to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    /// `SET NX PX` and compare-and-delete on a key per task: what Redis can do when nobody has to wait.
    Raw,
    /// The crate `rslock`, with one server.
    Rslock,
    /// `SET NX PX` on the one key, again every 50 ms.
    Every50Ms,
    Spin,
    Notify,
    HandOff,
    HandOffWithCohort,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Way::Raw => "raw SET NX PX + compare-and-delete, a key per task",
            Way::Rslock => "rslock 0.10",
            Way::Every50Ms => "SET NX PX, again every 50 ms",
            Way::Spin => "lockgate, spin",
            Way::Notify => "lockgate, notify",
            Way::HandOff => "lockgate, hand-off without cohort",
            Way::HandOffWithCohort => "lockgate, hand-off with cohort",
        }
    }

    const fn role(self) -> Role {
        match self {
            Way::Raw => Role::Limit,
            Way::Rslock | Way::Every50Ms => Role::Peer,
            _ => Role::Ours,
        }
    }
}

impl Way {
    /// What its clients send. Ours set keys too, but in scripts.
    const fn client_commands(self) -> &'static [&'static str] {
        match self {
            Way::Raw | Way::Rslock | Way::Every50Ms => &["set", "eval", "evalsha", "script|load"],
            _ => &["eval", "evalsha", "subscribe", "role"],
        }
    }
}

/// How big the crowd is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Crowd {
    pub(super) processes: usize,
    /// In each process.
    pub(super) tasks: usize,
    pub(super) hold: Duration,
    /// Whether all want the same lock.
    pub(super) is_contended: bool,
}

/// The points that the docs report.
const POINTS: [Crowd; 7] = [
    alone(1),
    alone(16),
    crowd(1, 100, 0),
    crowd(4, 25, 0),
    crowd(4, 25, 1_000),
    crowd(4, 100, 1_000),
    crowd(4, 250, 1_000),
];

const fn alone(tasks: usize) -> Crowd {
    Crowd { processes: 1, tasks, hold: Duration::ZERO, is_contended: false }
}

const fn crowd(processes: usize, tasks: usize, hold_us: u64) -> Crowd {
    Crowd { processes, tasks, hold: Duration::from_micros(hold_us), is_contended: true }
}

/// What the command line asks for instead of those points.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockPoint {
    /// How many processes.
    pub processes: Option<usize>,
    /// How many tasks in each.
    pub tasks: Option<usize>,
    /// For how long each holds the lock, in microseconds.
    pub hold_us: Option<u64>,
}

impl LockPoint {
    fn is_of_the_docs(self) -> bool {
        self.processes.is_none() && self.tasks.is_none() && self.hold_us.is_none()
    }

    fn points(self) -> Vec<Crowd> {
        let Self { processes, tasks, hold_us } = self;
        if self.is_of_the_docs() {
            return POINTS.to_vec();
        }
        vec![crowd(processes.unwrap_or(1), tasks.unwrap_or(25), hold_us.unwrap_or(0))]
    }
}

/// The program that is also the crew, and the Redis they meet on.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) program: PathBuf,
    pub(super) redis: String,
}

pub(super) fn cases(stage: &Stage, point: LockPoint) -> Vec<Case<'static>> {
    let mut cases: Vec<_> = point.points().into_iter().map(|crowd| case(stage, crowd)).collect();
    if point.is_of_the_docs() {
        cases.extend(family::cases(&stage.redis, None));
    }
    cases
}

fn case(stage: &Stage, crowd: Crowd) -> Case<'static> {
    let Crowd { processes, tasks, hold, is_contended } = crowd;
    let name = if is_contended {
        format!("lock, contended: {processes} × {tasks} tasks on one name, held for {hold:?}")
    } else {
        format!("lock, uncontended: {tasks} tasks, a name for each")
    };
    let ways = [Way::Raw, Way::Rslock, Way::Spin, Way::Notify, Way::HandOff, Way::HandOffWithCohort];
    let contender = |way| Box::new(InCrew::new(stage, way, crowd)) as Box<dyn Contender>;
    Case { name, tasks: processes * tasks, contenders: ways.into_iter().map(contender).collect() }
}

/// One way to lock, by a crew.
struct InCrew {
    stage: Stage,
    way: Way,
    crowd: Crowd,
    waiting: Mutex<Option<(Crew, Notebook)>>,
}

impl InCrew {
    fn new(stage: &Stage, way: Way, crowd: Crowd) -> Self {
        Self { stage: stage.clone(), way, crowd, waiting: Mutex::default() }
    }
}

impl Contender for InCrew {
    fn name(&self) -> &'static str {
        self.way.name()
    }

    fn role(&self) -> Role {
        self.way.role()
    }

    fn client_commands(&self) -> &'static [&'static str] {
        self.way.client_commands()
    }

    fn prepare(&self, _: usize, length: Duration) -> Doing<'_, ()> {
        Box::pin(async move {
            let notebook = Notebook::create()?;
            let crew = Crew::muster(&self.stage, self.way, self.crowd, length, notebook.path()).await?;
            *self.waiting.lock().await = Some((crew, notebook));
            Ok(())
        })
    }

    fn turn(&self, _: usize, _: Duration) -> Doing<'_, Tallies> {
        Box::pin(async {
            let Some((crew, notebook)) = self.waiting.lock().await.take() else {
                return Err("a turn without a crew".into());
            };
            let mut tallies = crew.work().await?;
            let is_protected = self.crowd.is_contended && self.way != Way::Raw;
            if is_protected {
                tallies.violations = Some(tallies.operations().saturating_sub(notebook.read()?.counter));
            }
            Ok(tallies)
        })
    }
}

/// What a process of the crew has to do.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    redis: String,
    way: Way,
    crowd: Crowd,
    length: Duration,
    notebook: PathBuf,
    /// Which of the processes it is.
    process: usize,
}

impl Orders {
    fn for_each_process(
        stage: &Stage,
        way: Way,
        crowd: Crowd,
        length: Duration,
        notebook: &Path,
    ) -> Vec<Self> {
        let orders = |process| Self {
            redis: stage.redis.clone(),
            way,
            crowd,
            length,
            notebook: notebook.to_owned(),
            process,
        };
        (0..crowd.processes).map(orders).collect()
    }
}
