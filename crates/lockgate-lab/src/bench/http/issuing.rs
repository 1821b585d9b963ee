//! Asking for coupons over many connections, each with one request under way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Method;

use super::caller::Caller;
use super::process::{Process, own_busy_micros};
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
    callers_busy_micros: AtomicU64,
}

impl Server {
    fn new(name: &'static str, role: Role, process: Process) -> Self {
        let (requests, busy_micros, callers_busy_micros) = Default::default();
        Self { name, role, process, requests, busy_micros, callers_busy_micros }
    }

    /// How long it worked for each request, on all cores: that is the same on a machine that is busy otherwise. `None` where the
    /// system does not tell.
    pub(super) fn busy_micros_per_request(&self) -> Option<f64> {
        self.per_request(&self.busy_micros)
    }

    /// The same of those who asked.
    pub(super) fn callers_busy_micros_per_request(&self) -> Option<f64> {
        self.per_request(&self.callers_busy_micros)
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
    fn per_request(&self, micros: &AtomicU64) -> Option<f64> {
        let micros = micros.load(Ordering::Relaxed);
        (micros > 0).then(|| micros as f64 / self.requests.load(Ordering::Relaxed).max(1) as f64)
    }

    /// How many callers have shared a call of the store, on average; embedded, a call is a sync of the disk, or half of one.
    pub(super) async fn callers_per_call(&self) -> Result<Option<f64>, Failure> {
        let scrape =
            Caller::connect(&self.process.address).await?.call(Method::GET, "/metrics", None).await?;
        let scrape = String::from_utf8_lossy(&scrape);
        let of = |end: &str| {
            let name = format!("lockgate_stock_batch_size_{end}{{what=\"coupon\"}} ");
            scrape.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok())
        };
        Ok(of("sum").zip(of("count")).map(|(callers, calls)| callers / calls))
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
            let busy = || [self.process.busy_micros(), own_busy_micros()];
            let before = busy();
            let tallies = work_in_tasks(callers.into_iter(), length).await?;
            self.requests.fetch_add(tallies.operations(), Ordering::Relaxed);
            let sums = [&self.busy_micros, &self.callers_busy_micros];
            for ((before, after), sum) in before.into_iter().zip(busy()).zip(sums) {
                let took = before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before));
                sum.fetch_add(took, Ordering::Relaxed);
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
