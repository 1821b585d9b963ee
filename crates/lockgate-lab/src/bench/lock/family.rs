//! The rest of the family, each in one process and beside what people write by hand: readers and writers, permits, several
//! locks at once, a quorum of servers.
//!
//! The limit of the first three is the same lock inside the process alone (tokio's), which no store is asked for. Each
//! contender starts its turn with connections of its own; whoever is where it may not be is counted as a violation.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use tokio::sync::Mutex;

use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, NAMESPACE};

mod multi;
mod permits;
mod quorum;
mod readers;

/// The cases, with as many tasks in each as the docs report; or so many.
pub(in crate::bench) fn cases(redis: &str, tasks: Option<usize>) -> Vec<Case<'static>> {
    vec![
        readers::case(redis, tasks.unwrap_or(100)),
        permits::case(redis, tasks.unwrap_or(200)),
        multi::case(redis, tasks.unwrap_or(100)),
        quorum::case(tasks.unwrap_or(16)),
    ]
}

/// What our clients send.
const OURS: &[&str] = &["eval", "evalsha", "subscribe", "role"];

/// What clients of the hand-written versions send.
const BY_HAND: &[&str] = &["set", "eval", "evalsha"];

/// The hand-written versions try again after this, and twice that each time, up to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Makes the workers of a turn: so many, and all watched by one.
type Crew = Pin<Box<dyn Future<Output = Result<Vec<Box<dyn Worker>>, Failure>> + Send>>;

/// A contender whose workers are tasks of this process.
struct InOneProcess {
    name: &'static str,
    role: Role,
    commands: &'static [&'static str],
    hire: Box<dyn Fn(usize, Arc<Watch>) -> Crew + Send + Sync>,
    hired: Mutex<Option<Hired>>,
}

/// Who works in the next turn, and who watches them.
struct Hired {
    workers: Vec<Box<dyn Worker>>,
    watch: Arc<Watch>,
}

impl InOneProcess {
    fn boxed(
        name: &'static str,
        role: Role,
        commands: &'static [&'static str],
        hire: impl Fn(usize, Arc<Watch>) -> Crew + Send + Sync + 'static,
    ) -> Box<dyn Contender> {
        Box::new(Self { name, role, commands, hire: Box::new(hire), hired: Mutex::default() })
    }
}

impl Contender for InOneProcess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        self.role
    }

    fn client_commands(&self) -> &'static [&'static str] {
        self.commands
    }

    fn prepare(&self, tasks: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async move {
            let watch = Arc::new(Watch::default());
            let workers = (self.hire)(tasks, Arc::clone(&watch)).await?;
            *self.hired.lock().await = Some(Hired { workers, watch });
            Ok(())
        })
    }

    fn turn(&self, _: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let Some(Hired { workers, watch }) = self.hired.lock().await.take() else {
                return Err("a turn without workers".into());
            };
            let mut tallies = work_in_tasks(workers.into_iter(), length).await?;
            tallies.violations = Some(watch.violations.load(Ordering::SeqCst));
            Ok(tallies)
        })
    }
}

/// Sees who is inside.
#[derive(Default)]
struct Watch {
    inside: AtomicI64,
    violations: AtomicU64,
}

impl Watch {
    /// Comes in with so much, where there is room for so much, and goes out again. A moment passes in between.
    async fn pass(&self, takes: i64, room: i64) {
        if self.inside.fetch_add(takes, Ordering::SeqCst) + takes > room {
            self.violations.fetch_add(1, Ordering::SeqCst);
        }
        tokio::task::coop::consume_budget().await;
        self.inside.fetch_sub(takes, Ordering::SeqCst);
    }
}

async fn gate(redis: &str) -> Result<Gate, Failure> {
    let mut config = Config::default();
    config.namespace = NAMESPACE.into();
    Ok(Gate::open_with(redis, &config).await?)
}

/// Waits before the next try, longer each time, give or take a half.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(PAUSES.0)
    }

    async fn pause(&mut self, seed: &mut u64) {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = f64::from(u32::try_from(*seed >> 33).unwrap_or(0)) / f64::from(u32::MAX >> 1);
        tokio::time::sleep(self.0.mul_f64(0.5 + share)).await;
        self.0 = (self.0 * 2).min(PAUSES.1);
    }
}
