//! Entering, everybody new.

use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::line::{Entry, Line};
use redis::aio::MultiplexedConnection;
use tokio::sync::Mutex;

use super::gate_at;
use super::hall::{Hall, stands_still};
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::stock::new_users;
use crate::bench::tally::Tallies;
use crate::bench::{Failure, NAMESPACE, patient_connection, remove_our_keys};

/// The places of the contenders in the case.
pub(super) const THREE_COMMANDS: usize = 0;
pub(super) const PIPELINE: usize = 1;
pub(super) const OURS: usize = 2;

pub(super) async fn case(redis: &str, tasks: usize) -> Result<Case<'static>, Failure> {
    let contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(SortedSet::connect(redis, Way::ThreeCommands).await?),
        Box::new(SortedSet::connect(redis, Way::Pipeline).await?),
        Box::new(Ours { name: "lockgate on Redis", url: redis.to_owned(), hall: Mutex::default() }),
        Box::new(Ours { name: "lockgate embedded", url: "memory".into(), hall: Mutex::default() }),
    ];
    Ok(Case { name: "line: entering, every user new".into(), tasks, contenders })
}

/// How the sorted set is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ThreeCommands,
    Pipeline,
}

/// A sorted set by the time of arrival: in, then at which place, then among how many.
struct SortedSet {
    url: String,
    connection: MultiplexedConnection,
    way: Way,
}

impl SortedSet {
    async fn connect(url: &str, way: Way) -> Result<Self, Failure> {
        let connection = patient_connection(url).await?;
        Ok(Self { url: url.to_owned(), connection, way })
    }
}

impl Contender for SortedSet {
    fn name(&self) -> &'static str {
        match self.way {
            Way::ThreeCommands => "ZADD, ZRANK, ZCARD, one after the other",
            Way::Pipeline => "ZADD, ZRANK, ZCARD in one pipeline",
        }
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &["zadd", "zrank", "zcard"]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(remove_our_keys(&self.url))
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| {
            let (connection, clock) = (self.connection.clone(), Clock::system());
            Box::new(SetWorker { connection, clock, way: self.way }) as Box<dyn Worker>
        };
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct SetWorker {
    connection: MultiplexedConnection,
    clock: Clock,
    way: Way,
}

/// Where people write it.
fn set_key() -> String {
    format!("{NAMESPACE}:{{raw}}:queue")
}

impl Worker for SetWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let (user, now_ms) = (new_user(), self.clock.wall().as_millis());
            let commands = [
                redis::cmd("ZADD").arg(set_key()).arg(now_ms).arg(&user).take(),
                redis::cmd("ZRANK").arg(set_key()).arg(&user).take(),
                redis::cmd("ZCARD").arg(set_key()).take(),
            ];
            if self.way == Way::Pipeline {
                let mut pipeline = redis::pipe();
                for command in commands {
                    pipeline.add_command(command);
                }
                let _: (u64, u64, u64) = pipeline.query_async(&mut self.connection).await?;
            } else {
                for command in commands {
                    command.query_async::<u64>(&mut self.connection).await?;
                }
            }
            Ok(1)
        })
    }
}

/// A new line for every turn.
struct Ours {
    name: &'static str,
    url: String,
    hall: Mutex<Option<Hall>>,
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Ours
    }

    fn client_commands(&self) -> &'static [&'static str] {
        if self.url == "memory" { &[] } else { &["eval", "evalsha"] }
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            if let Some(before) = self.hall.lock().await.take() {
                before.gate.shutdown().await;
            }
            if self.url != "memory" {
                remove_our_keys(&self.url).await?;
            }
            let hall = Hall::open(&gate_at(&self.url).await?, "entering", &stands_still()?).await?;
            *self.hall.lock().await = Some(hall);
            Ok(())
        })
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let hall = self.hall.lock().await;
            let line = &hall.as_ref().ok_or("no line was opened")?.line;
            let worker = |_| Box::new(EnterWorker(line.clone())) as Box<dyn Worker>;
            work_in_tasks((0..tasks).map(worker), length).await
        })
    }
}

/// Lets one after the other in, everybody new.
pub(super) struct EnterWorker(pub(super) Line);

impl Worker for EnterWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            match self.0.enter(new_user()).await? {
                Entry::In { is_new: true, .. } => Ok(1),
                other => Err(format!("not let in: {other:?}").into()),
            }
        })
    }
}

fn new_user() -> String {
    new_users(1).next().unwrap_or_default()
}
