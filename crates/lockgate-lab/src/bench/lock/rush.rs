//! 300 who take the lock once each and count a number in Redis down, by `GET` and `SET`.

use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::Clock;
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::locker::{self, Locker};
use super::{Crowd, Orders, Way};
use crate::bench::frame::{Case, Contender, Doing, Role};
use crate::bench::tally::{Tallies, Tally};
use crate::bench::{Failure, NAMESPACE, raw_client};

const BUYERS: usize = 300;

/// How often a turn is repeated: one rush is over in no time.
const STOCK: i64 = 300;

pub(in crate::bench) fn case(redis: &str) -> Case<'static> {
    let ways = [Way::Every50Ms, Way::Rslock, Way::Spin, Way::Notify, Way::HandOff, Way::HandOffWithCohort];
    let contender = |way| Box::new(Rush { redis: redis.to_owned(), way }) as Box<dyn Contender>;
    Case {
        name: format!(
            "lock, a rush: {BUYERS} tasks, each takes the lock once and counts down by GET and SET"
        ),
        tasks: BUYERS,
        contenders: ways.into_iter().map(contender).collect(),
    }
}

struct Rush {
    redis: String,
    way: Way,
}

impl Contender for Rush {
    fn name(&self) -> &'static str {
        self.way.name()
    }

    fn role(&self) -> Role {
        // What the others are measured against is here the usual way, not a limit.
        self.way.role()
    }

    fn client_commands(&self) -> &'static [&'static str] {
        // Without `set`, which the buyers use for the number too.
        &["eval", "evalsha", "script|load"]
    }

    fn turn(&self, _: usize, _: Duration) -> Doing<'_, Tallies> {
        Box::pin(async {
            let mut counter = raw_client(&self.redis)?.get_multiplexed_async_connection().await?;
            let key = format!("{NAMESPACE}:stock");
            let () = counter.set(&key, STOCK).await?;
            let mut tallies = self.rush(&counter, &key).await?;
            let left: i64 = counter.get(&key).await?;
            tallies.violations = Some(left.unsigned_abs());
            Ok(tallies)
        })
    }
}

impl Rush {
    async fn rush(&self, counter: &MultiplexedConnection, key: &str) -> Result<Tallies, Failure> {
        let crowd = Crowd { processes: 1, tasks: BUYERS, hold: Duration::ZERO, is_contended: true };
        let (redis, length, notebook) = (self.redis.clone(), Duration::ZERO, "".into());
        let orders = Orders { redis, way: self.way, crowd, length, notebook, process: 0 };
        let lockers = locker::lockers(&orders).await?;
        let (clock, all_there) = (Clock::system(), Arc::new(Barrier::new(BUYERS + 1)));
        let mut buyers = JoinSet::new();
        for locker in lockers {
            let (counter, key, all_there) = (counter.clone(), key.to_owned(), Arc::clone(&all_there));
            buyers.spawn(buy_once(locker, counter, key, clock.clone(), all_there));
        }
        all_there.wait().await;
        let start = clock.monotonic();
        let mut tallies = Tallies::new()?;
        while let Some(tally) = buyers.join_next().await {
            tallies.add(&tally??)?;
        }
        tallies.seconds = Some(clock.monotonic().since(start).as_secs_f64());
        Ok(tallies)
    }
}

async fn buy_once(
    mut locker: Locker,
    mut counter: MultiplexedConnection,
    key: String,
    clock: Clock,
    all_there: Arc<Barrier>,
) -> Result<Tally, Failure> {
    let mut tally = Tally::new()?;
    all_there.wait().await;
    let asked_at = clock.monotonic();
    locker.lock().await?;
    tally.latencies.record(u64::try_from(clock.monotonic().since(asked_at).as_nanos())?)?;
    let left: i64 = counter.get(&key).await?;
    let () = counter.set(&key, left - 1).await?;
    locker.unlock().await?;
    tally.operations = 1;
    Ok(tally)
}
