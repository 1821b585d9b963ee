//! Asking for coupons over many connections, each with one request under way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::caller::Caller;
use super::process::Process;
use crate::bench::Failure;
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::stock::new_user;
use crate::bench::tally::Tallies;

/// The places of the contenders in the case.
pub(super) const BARE: usize = 0;
pub(super) const EMBEDDED: usize = 1;
pub(super) const ON_REDIS: usize = 2;

pub(super) async fn case(
    program: &Path,
    redis: &str,
    connections: usize,
) -> Result<(Case<'static>, [Arc<Server>; 3]), Failure> {
    let embedded = Process::embedded(program).await?;
    let on_redis = Process::on_redis(program, redis).await?;
    for server in [&embedded, &on_redis] {
        Caller::connect(&server.address).await?.open_coupon().await?;
    }
    let bare = Process::bare(program).await?;
    let servers = [
        Server::new("a bare axum handler", Role::Limit, bare),
        Server::new("lockgate serve, embedded, journal on disk before each answer", Role::Ours, embedded),
        Server::new("lockgate serve on Redis", Role::Ours, on_redis),
    ]
    .map(Arc::new);
    let contenders =
        servers.iter().map(|server| Box::new(Arc::clone(server)) as Box<dyn Contender>).collect();
    let case = Case { name: "http: one coupon each".to_owned(), tasks: connections, contenders };
    Ok((case, servers))
}

pub(super) struct Server {
    name: &'static str,
    role: Role,
    process: Process,
    /// Of all turns.
    requests: AtomicU64,
    busy_micros: AtomicU64,
}

impl Server {
    fn new(name: &'static str, role: Role, process: Process) -> Self {
        Self { name, role, process, requests: AtomicU64::default(), busy_micros: AtomicU64::default() }
    }

    /// How long it worked for each request, on all cores: that is the same on a machine that is busy otherwise. `None` where the
    /// system does not tell.
    #[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
    pub(super) fn busy_micros_per_request(&self) -> Option<f64> {
        let busy = self.busy_micros.load(Ordering::Relaxed);
        (busy > 0).then(|| busy as f64 / self.requests.load(Ordering::Relaxed).max(1) as f64)
    }
}

impl Contender for Arc<Server> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        self.role
    }

    fn client_commands(&self) -> &'static [&'static str] {
        if self.name.contains("Redis") { &["eval", "evalsha"] } else { &[] }
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let mut callers: Vec<Box<dyn Worker>> = Vec::with_capacity(tasks);
            for _ in 0..tasks {
                callers.push(Box::new(IssueWorker(Caller::connect(&self.process.address).await?)));
            }
            let before = self.process.busy_micros();
            let tallies = work_in_tasks(callers.into_iter(), length).await?;
            if let Some((before, after)) = before.zip(self.process.busy_micros()) {
                self.busy_micros.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
                self.requests.fetch_add(tallies.operations(), Ordering::Relaxed);
            }
            Ok(tallies)
        })
    }
}

struct IssueWorker(Caller);

impl Worker for IssueWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            self.0.issue(&new_user()).await?;
            Ok(1)
        })
    }
}
