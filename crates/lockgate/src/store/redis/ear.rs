//! Hears what concerns this process: one subscription, on a connection of its own.
//!
//! **Promise:** a subscription that ends comes back by itself, to whoever is the master then; it is noticed within about a
//! second when the other side falls silent. Whenever it is confirmed, also for the first time, the listener hears
//! [`News::Listening`]: what was said before that may be lost. **Not promised:** that every message arrives.
//!
//! On a cluster it is an ordinary subscription with one of the nodes, which pass messages on to each other: messages
//! are few (one per hand-over between processes), and it needs no node of its own per partition.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::lane::Endpoint;
use super::mutex::trusted;
use super::switches::Switches;
use crate::clock::Timestamp;
use crate::config::RedisConfig;
use crate::jitter::jittered;
use crate::key::{Keyspace, Kind};
use crate::store::news::SharedListener;
use crate::store::{EarId, FENCE_BLOCK, Fence, Fences, Hearing, Lock, News, Pool, PoolKind, Token};

/// How often a silent subscription is asked whether it still lives.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// Where one can subscribe.
pub(super) struct Stations {
    endpoints: Vec<Endpoint>,
    settings: AsyncConnectionConfig,
    retry_interval: Duration,
    /// Every node of a cluster hears everything, whatever its role.
    any_node_will_do: bool,
    switches: Switches,
}

impl Stations {
    pub(super) fn new(
        endpoints: Vec<Endpoint>,
        any_node_will_do: bool,
        switches: Switches,
        config: &RedisConfig,
    ) -> Self {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(config.response_timeout));
        Self { endpoints, settings, retry_interval: config.retry_interval, any_node_will_do, switches }
    }
}

/// One listener's subscription, from now on until the answer is dropped.
pub(super) fn listen(
    stations: &Arc<Stations>,
    keys: &Keyspace,
    ear: EarId,
    listener: SharedListener,
) -> Hearing {
    let (tells, is_listening) = watch::channel(false);
    let channels = Arc::new(Channels { mine: format!("{}{ear}", keys.ears()), keys: keys.clone(), listener });
    let task = tokio::spawn(listen_for_ever(Arc::clone(stations), channels, tells));
    Hearing::new(is_listening, AbortWhenDropped(task))
}

/// A task that ends with this.
pub(super) struct AbortWhenDropped(pub(super) tokio::task::JoinHandle<()>);

impl Drop for AbortWhenDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Channels {
    mine: String,
    keys: Keyspace,
    listener: SharedListener,
}

async fn listen_for_ever(stations: Arc<Stations>, channels: Arc<Channels>, tells: watch::Sender<bool>) {
    let mut is_outage = false;
    for endpoint in stations.endpoints.iter().cycle() {
        let switches = stations.switches.so_far();
        match subscribe(endpoint, &stations, &channels).await {
            Ok(subscription) => {
                is_outage = false;
                tells.send_replace(true);
                channels.listener.hear(News::Listening);
                tokio::select! {
                    () = subscription.end(stations.any_node_will_do) => {}
                    () = stations.switches.one_after(switches) => {}
                }
                tells.send_replace(false);
                tracing::warn!("the subscription to Redis ended; subscribing again");
            }
            // Once per outage.
            Err(why) if !is_outage => {
                is_outage = true;
                tracing::warn!(%why, "cannot subscribe at Redis; trying again until it is back");
            }
            Err(_) => {}
        }
        sleep(jittered(stations.retry_interval)).await;
    }
}

/// A subscription that was confirmed.
struct Subscription {
    connection: MultiplexedConnection,
    disconnected: Arc<Notify>,
}

async fn subscribe(
    endpoint: &Endpoint,
    stations: &Stations,
    channels: &Arc<Channels>,
) -> RedisResult<Subscription> {
    let disconnected = Arc::new(Notify::new());
    let (tell, hears) = (Arc::clone(&disconnected), Arc::clone(channels));
    let settings = stations.settings.clone().set_push_sender(move |push: PushInfo| -> Result<(), ()> {
        match push.kind {
            PushKind::Disconnection => tell.notify_one(),
            PushKind::Message => hears.pass_on(&push.data),
            _ => {}
        }
        Ok(())
    });
    let mut connection = endpoint.dial(&settings, &stations.switches).await?;
    connection.subscribe(&[channels.mine.clone(), channels.keys.freed()]).await?;
    Ok(Subscription { connection, disconnected })
}

impl Subscription {
    /// Returns when the subscription is of no more use: cut, silent, or at a server that is no longer the master.
    async fn end(mut self, any_node_will_do: bool) {
        loop {
            tokio::select! {
                () = self.disconnected.notified() => return,
                () = sleep(ASK_AFTER) => if !self.is_alive(any_node_will_do).await { return },
            }
        }
    }

    async fn is_alive(&mut self, any_node_will_do: bool) -> bool {
        // A replica hears everything too, but its subscribers do not count as receivers at the master. Not everybody may
        // ask for the role; an error that the server sends is a sign of life.
        match redis::cmd("ROLE").query_async::<Vec<Value>>(&mut self.connection).await {
            Ok(role) => {
                any_node_will_do || !matches!(role.first(), Some(Value::BulkString(role)) if role == b"slave")
            }
            Err(why) => !(why.is_io_error() || why.is_timeout() || why.is_connection_dropped()),
        }
    }
}

impl Channels {
    fn pass_on(&self, message: &[Value]) {
        let [Value::BulkString(channel), Value::BulkString(payload)] = message else { return };
        let Ok(payload) = std::str::from_utf8(payload) else { return };
        // A process that connects tries whether it may publish.
        if payload.is_empty() {
            return;
        }
        let news = if *channel == self.mine.as_bytes() {
            told_to_one(payload, &self.keys)
        } else {
            told_to_all(payload, &self.keys)
        };
        match news {
            Some(news) => self.listener.hear(news),
            None => tracing::warn!(
                payload,
                "a message was not understood; do all processes run the same version?"
            ),
        }
    }
}

/// Reads the key of a mutex that is free or of a latch that has opened.
fn told_to_all(key: &str, keys: &Keyspace) -> Option<News> {
    let freed = keys.name_in(Kind::Mutex, key).map(News::Freed);
    freed.or_else(|| keys.name_in(Kind::Latch, key).map(News::Opened))
}

/// Reads a token that should ask, or `<token> <last fence> <granted at, µs> <claim lease, ms> <key>`, as
/// `shared/hand_over.lua` and `shared/pool.lua` write it.
fn told_to_one(payload: &str, keys: &Keyspace) -> Option<News> {
    let Some((token, grant)) = payload.split_once(' ') else { return Token::parse(payload).map(News::Ask) };
    let token = Token::parse(token)?;
    let mut words = grant.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (last, granted_at, claim_ms) = (number()?, number()?, number()?);
    let fences = Fences { first: Fence::new(last.checked_sub(FENCE_BLOCK - 1)?), last: Fence::new(last) };
    let lease = trusted(i64::try_from(claim_ms.checked_mul(1_000)?).ok()?);
    let lock = lock_at(words.next()?, keys)?;
    Some(News::Granted { lock, token, fences, granted_at: Timestamp::from_micros(granted_at), lease })
}

fn lock_at(key: &str, keys: &Keyspace) -> Option<Lock> {
    let pool = |kind, at| keys.name_in(at, key).map(|name| Lock::Pool(Pool { kind, name }));
    let mutex = keys.name_in(Kind::Mutex, key).map(Lock::Mutex);
    let mutex_or_rw = mutex.or_else(|| pool(PoolKind::RwLock, Kind::RwLock));
    mutex_or_rw.or_else(|| pool(PoolKind::Semaphore, Kind::Semaphore))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Name;

    #[test]
    fn what_a_script_says_is_understood_and_nonsense_is_not() {
        let (token, keys) = (Token::random(), Keyspace::new("lg", 1).unwrap());
        let name = Name::new("lock", "order {7}").unwrap();
        let pool = |kind| Lock::Pool(Pool { kind, name: name.clone() });
        for (kind, lock) in [
            (Kind::Mutex, Lock::Mutex(name.clone())),
            (Kind::RwLock, pool(PoolKind::RwLock)),
            (Kind::Semaphore, pool(PoolKind::Semaphore)),
        ] {
            let expected = News::Granted {
                lock,
                token,
                fences: Fences { first: Fence::new(1_000), last: Fence::new(1_063) },
                granted_at: Timestamp::from_micros(5_000_000),
                lease: Duration::from_millis(999),
            };
            let key = keys.key(kind, &name);
            assert_eq!(told_to_one(&format!("{token} 1063 5000000 1000 {key}"), &keys), Some(expected));
        }
        for nonsense in ["", "x", "1063 5 1000", "7 1 1 k", "1063 -1 1 k", "1063 1 1 k", "1063 1 1"] {
            assert_eq!(told_to_one(&format!("{token} {nonsense}"), &keys), None, "{nonsense}");
        }
        assert_eq!(told_to_one(&token.to_string(), &keys), Some(News::Ask(token)));
        assert_eq!(told_to_one("nobody", &keys), None);
    }

    #[test]
    fn all_are_told_of_free_mutexes_and_open_latches() {
        let keys = Keyspace::new("lg", 1).unwrap();
        let name = Name::new("lock", "order {7}").unwrap();
        let told = |kind| told_to_all(&keys.key(kind, &name), &keys);
        assert_eq!(told(Kind::Mutex), Some(News::Freed(name.clone())));
        assert_eq!(told(Kind::Latch), Some(News::Opened(name.clone())));
        assert_eq!(told(Kind::Semaphore), None);
    }
}
