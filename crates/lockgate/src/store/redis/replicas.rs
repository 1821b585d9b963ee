//! Waits until replicas have what the master has done.
//!
//! **Promise:** when the answer is that a token has its lock, then so did the master that was asked, and everything that it had
//! done before the question is on as many replicas as were wanted. It is asked over a connection of its own, because `WAIT`
//! blocks the connection and looks at what *this connection* has written last: so a key is written first, and the order of the
//! replication stream covers all that was written before it, by whomever, also a grant that was pushed. The two must go over
//! one and the same connection, or `WAIT` has nothing to wait for and says so at once.
//!
//! The question whether the token has it comes last, over the same connection: a master that took over in the meantime may
//! have all the replicas in the world, and not have heard of the grant.
//!
//! Callers that come together share a question: one is under way per partition, and later ones gather for the next. On a
//! cluster the partitions of one node share a connection, and take turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Pipeline, Value, from_redis_value};
use tokio::sync::oneshot;

use super::RedisStore;
use super::link::{Link, Request};
use super::script::not_understood;
use super::switches::Switches;
use super::url::RedisUrl;
use crate::clock::{Clock, Timestamp};
use crate::config::RedisConfig;
use crate::error::{OpenError, StoreError};
use crate::key::{Keyspace, Kind};
use crate::store::{Lock, Token};

/// How many callers share a question, at the most.
const TOGETHER: usize = 512;

/// See the [module](self).
pub(super) struct Replicas {
    link: Link,
    keys: Keyspace,
    wanted: u32,
    time: Duration,
    /// One for each partition.
    gatherings: Vec<Mutex<Gathering>>,
}

/// Who waits for the next question in a partition.
#[derive(Default)]
struct Gathering {
    callers: Vec<Caller>,
    is_under_way: bool,
}

struct Caller {
    held: Held,
    token: Token,
    answer: oneshot::Sender<Result<Option<Duration>, StoreError>>,
}

/// Where a master says who holds something, and for how long.
enum Held {
    Mutex { key: String },
    Pool { key: String, holders: String },
}

impl Held {
    fn of(lock: &Lock, keys: &Keyspace) -> Self {
        match lock {
            Lock::Mutex(name) => Held::Mutex { key: keys.key(Kind::Mutex, name) },
            Lock::Pool(pool) => {
                let [key, holders] = super::permit::where_it_is_held(keys, pool);
                Held::Pool { key, holders }
            }
        }
    }

    /// Asks for what `token` has of it: two commands.
    fn ask(&self, token: Token, commands: &mut Pipeline) {
        match self {
            // The state and the token: see shared/hand_over.lua.
            Held::Mutex { key } => {
                commands.cmd("GETRANGE").arg(key).arg(0).arg(32);
                commands.cmd("PTTL").arg(key);
            }
            // See shared/pool_state.lua.
            Held::Pool { key, holders } => {
                commands.cmd("HGET").arg(key).arg(token.to_string());
                commands.cmd("ZSCORE").arg(holders).arg(token.to_string());
            }
        }
    }

    /// For how long `token` still has it, by the answers and the server's time.
    fn lease_left(&self, token: Token, now: Timestamp, answers: &[Value; 2]) -> Option<Duration> {
        let [Value::BulkString(what), end] = answers else { return None };
        let end = from_redis_value::<Option<String>>(end.clone()).ok().flatten()?;
        match self {
            Held::Mutex { .. } => {
                let (b'h' | b'q' | b'w', holder) = what.split_first()? else { return None };
                (holder == token.to_string().as_bytes())
                    .then(|| Duration::from_millis(end.parse().unwrap_or(0)))
            }
            Held::Pool { .. } if what.starts_with(b"h") => {
                // A sorted set prints a whole number as one, or as 1.79e+15.
                let ends_us = end.parse::<f64>().ok().map(Duration::try_from_secs_f64)?.ok()?.as_secs();
                let left = Timestamp::from_micros(ends_us).since(now);
                (!left.is_zero()).then_some(left)
            }
            Held::Pool { .. } => None,
        }
    }
}

/// A question under way.
pub(super) struct Question(oneshot::Receiver<Result<Option<Duration>, StoreError>>);

impl Question {
    /// Nothing, if the token does not have the mutex.
    pub(super) async fn answer(self) -> Result<Option<Duration>, StoreError> {
        let shutting_down = || StoreError::Unavailable("the runtime is shutting down".into());
        self.0.await.unwrap_or_else(|_| Err(shutting_down()))
    }
}

impl Replicas {
    /// Nothing, when no replica has to have anything.
    pub(super) async fn wanted(
        url: &RedisUrl,
        config: &RedisConfig,
        keys: &Keyspace,
        clock: Clock,
        switches: &Switches,
    ) -> Result<Option<Arc<Self>>, OpenError> {
        let (wanted, time) = (config.wait_replicas, config.wait_replicas_for.max(Duration::from_millis(1)));
        if wanted == 0 {
            return Ok(None);
        }
        let mut patient = config.clone();
        patient.connections = 1;
        patient.response_timeout += time;
        patient.call_timeout += time;
        let link = Link::open(url, &patient, clock, switches).await?;
        let gatherings = (0..keys.partitions()).map(|_| Mutex::default()).collect();
        Ok(Some(Arc::new(Self { link, keys: keys.clone(), wanted, time, gatherings })))
    }

    /// Asks for how long `token` still has `lock`, once that is on enough replicas. The question goes out whether or not its
    /// answer is waited for, for whoever else shares it.
    pub(super) fn ask(self: &Arc<Self>, lock: &Lock, token: Token) -> Question {
        let partition = self.keys.partition_of(lock.name());
        let (answer, arrives) = oneshot::channel();
        let mut gathering = self.gathering(partition);
        gathering.callers.push(Caller { held: Held::of(lock, &self.keys), token, answer });
        let must_ask = !std::mem::replace(&mut gathering.is_under_way, true);
        drop(gathering);
        if must_ask {
            tokio::spawn(Arc::clone(self).ask_for_all(partition));
        }
        Question(arrives)
    }

    fn gathering(&self, partition: u16) -> MutexGuard<'_, Gathering> {
        self.gatherings[usize::from(partition)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks until nobody waits any more.
    async fn ask_for_all(self: Arc<Self>, partition: u16) {
        loop {
            let callers = {
                let mut gathering = self.gathering(partition);
                if gathering.callers.is_empty() {
                    gathering.is_under_way = false;
                    return;
                }
                let some = gathering.callers.len().min(TOGETHER);
                gathering.callers.drain(..some).collect::<Vec<_>>()
            };
            let answers = self.question(partition, &callers).await;
            for (place, caller) in callers.into_iter().enumerate() {
                // Those who have gone away need not be told.
                let _ = caller.answer.send(answers.as_ref().map(|left| left[place]).map_err(Clone::clone));
            }
        }
    }

    async fn question(
        &self,
        partition: u16,
        callers: &[Caller],
    ) -> Result<Vec<Option<Duration>>, StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("SET").arg(self.keys.replicated(partition)).arg("");
        commands.cmd("WAIT").arg(self.wanted).arg(millis(self.time));
        commands.cmd("TIME");
        callers.iter().for_each(|caller| caller.held.ask(caller.token, &mut commands));
        let reply = self.link.send(Request::InARow(&commands)).await.map_err(explain)?;
        let Value::Array(replies) = &reply else { return Err(not_understood(&reply)) };
        let [_, Value::Int(replicas), time, found @ ..] = &replies[..] else {
            return Err(not_understood(&reply));
        };
        let Ok((seconds, micros)) = from_redis_value::<(u64, u64)>(time.clone()) else {
            return Err(not_understood(&reply));
        };
        let now = Timestamp::from_micros(seconds * 1_000_000 + micros);
        if found.len() != 2 * callers.len() {
            return Err(not_understood(&reply));
        }
        if *replicas < i64::from(self.wanted) {
            return Err(self.too_few(*replicas));
        }
        let read = |(caller, found): (&Caller, &[Value; 2])| caller.held.lease_left(caller.token, now, found);
        Ok(callers.iter().zip(found.as_chunks().0).map(read).collect())
    }

    fn too_few(&self, replicas: i64) -> StoreError {
        StoreError::Unavailable(format!(
            "{replicas} of the {} replicas that `wait_replicas` asks for had it within {:?}, so the lock was given back; \
             look after the replicas (`redis-cli INFO replication`), or ask for fewer",
            self.wanted, self.time
        ))
    }
}

/// A master that is made a replica at this moment says so to those who wait; the next one may have the answer.
fn explain(why: StoreError) -> StoreError {
    match why {
        StoreError::Refused(why) if why.contains("UNBLOCKED") => StoreError::Unavailable(why),
        why => why,
    }
}

pub(super) async fn replicated(store: &RedisStore, lock: &Lock, token: &Token) -> Result<bool, StoreError> {
    let Some(replicas) = &store.caution.replicas else { return Ok(true) };
    Ok(replicas.ask(lock, *token).answer().await?.is_some())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
