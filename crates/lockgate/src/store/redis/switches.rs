//! Hears from the sentinels that another server is the master now.
//!
//! **Promise:** as soon as one of them says so, connections to the old master are given up, also those over which a call is
//! under way: a master that was only silent, or cut off from the sentinels, may still answer, and nothing that it says
//! counts any more. A sentinel that is cut off from the others, and still names the old one, is not believed: it knows of
//! fewer switches. **Not promised:** that it is heard. Who hears nothing notices when the old master fails it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::ear::AbortWhenDropped;
use super::lane::{client, trusted_certificates};
use super::url::{Master, RedisUrl, Topology};
use crate::config::RedisConfig;
use crate::jitter::jittered;

/// The channel on which a sentinel says it: `<name> <old host> <old port> <new host> <new port>`.
const CHANNEL: &str = "+switch-master";

/// How often a sentinel that is silent is asked whether it still lives, and how soon one is tried again that does not.
const ASK_AFTER: Duration = Duration::from_secs(2);

/// See the [module](self). Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Switches(Option<Arc<Hearing>>);

struct Hearing {
    announced: watch::Receiver<Announced>,
    _sentinels: Vec<AbortWhenDropped>,
}

/// Who the master is, as far as is known, and how many there were before it.
#[derive(Debug, Default)]
struct Announced {
    address: String,
    number: u64,
    /// The sentinels' own number of the switch that made it the master, or less: a sentinel that is behind knows a lower one.
    epoch: u64,
}

impl Announced {
    /// A sentinel has been asked. All say the same, but for those that are behind, and those must not be believed: what they
    /// name is the old master. Says whether it is news.
    fn is_told(&mut self, address: String, epoch: u64) -> bool {
        if epoch < self.epoch || (epoch == self.epoch && !self.address.is_empty()) {
            return false;
        }
        self.epoch = epoch;
        self.is_now(address)
    }

    /// A sentinel says that the master is no longer the one but the other. Says whether it is news.
    fn has_switched(&mut self, from: &str, to: String) -> bool {
        if self.address != from {
            // It is behind, or we are: then the next answer tells.
            return false;
        }
        self.epoch += 1;
        self.is_now(to)
    }

    fn is_now(&mut self, address: String) -> bool {
        if self.address == address {
            return false;
        }
        let is_news = !self.address.is_empty();
        self.address = address;
        self.number += u64::from(is_news);
        is_news
    }
}

impl Switches {
    /// Begins to listen to all sentinels of `url`, if it has some.
    pub(super) fn of(url: &RedisUrl, config: &RedisConfig) -> RedisResult<Self> {
        let Topology::OneMaster(Master::KnownToSentinels { sentinels, name, .. }) = &url.topology else {
            return Ok(Self::default());
        };
        let (tells, announced) = watch::channel(Announced::default());
        let tells = Arc::new(tells);
        let listen = |sentinel| -> RedisResult<AbortWhenDropped> {
            let client = client(sentinel, trusted_certificates(config)?, ProtocolVersion::RESP3)?;
            let listener = Listener { client, name: name.clone(), tells: Arc::clone(&tells) };
            let settings = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(config.connect_timeout))
                .set_response_timeout(Some(config.response_timeout));
            Ok(AbortWhenDropped(tokio::spawn(listener.listen_for_ever(settings))))
        };
        let sentinels = sentinels.iter().map(listen).collect::<RedisResult<_>>()?;
        Ok(Self(Some(Arc::new(Hearing { announced, _sentinels: sentinels }))))
    }

    /// How many masters there were before the present one.
    pub(super) fn so_far(&self) -> u64 {
        self.0.as_ref().map_or(0, |hearing| hearing.announced.borrow().number)
    }

    /// Where the present one is, if it was said.
    pub(super) fn master(&self) -> Option<(String, u16)> {
        let announced = self.0.as_ref()?.announced.borrow();
        let (host, port) = announced.address.split_once(' ')?;
        Some((host.to_owned(), port.parse().ok()?))
    }

    /// Returns when there is another master than when there were `before`.
    pub(super) async fn one_after(&self, before: u64) {
        if let Some(hearing) = &self.0 {
            let mut announced = hearing.announced.clone();
            if announced.wait_for(|announced| announced.number != before).await.is_ok() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// One sentinel's listener.
struct Listener {
    client: Client,
    name: String,
    tells: Arc<watch::Sender<Announced>>,
}

impl Listener {
    async fn listen_for_ever(self, settings: AsyncConnectionConfig) {
        let listener = Arc::new(self);
        loop {
            // The others may be there, and calls find the master without any of them being heard.
            if let Err(why) = Arc::clone(&listener).listen(settings.clone()).await {
                tracing::debug!(%why, "a sentinel is not heard");
            }
            sleep(jittered(ASK_AFTER)).await;
        }
    }

    /// Listens until the sentinel is gone.
    async fn listen(self: Arc<Self>, settings: AsyncConnectionConfig) -> RedisResult<()> {
        let disconnected = Arc::new(Notify::new());
        let (tell, listener) = (Arc::clone(&disconnected), Arc::clone(&self));
        let settings = settings.set_push_sender(move |push: PushInfo| -> Result<(), ()> {
            match push.kind {
                PushKind::Disconnection => tell.notify_one(),
                PushKind::Message => listener.hear(&push.data),
                _ => {}
            }
            Ok(())
        });
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&settings).await?;
        connection.subscribe(CHANNEL).await?;
        loop {
            // What was said before, or was not heard.
            self.ask(&mut connection).await?;
            tokio::select! {
                () = disconnected.notified() => return Ok(()),
                () = sleep(ASK_AFTER) => {}
            }
        }
    }

    async fn ask(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let question = redis::cmd("SENTINEL").arg("MASTER").arg(&self.name).take();
        let answer: HashMap<String, String> = question.query_async(connection).await?;
        let field = |name: &str| answer.get(name).cloned().unwrap_or_default();
        let address = format!("{} {}", field("ip"), field("port"));
        let epoch = field("config-epoch").parse().unwrap_or(0);
        self.announce(|announced| announced.is_told(address, epoch));
        Ok(())
    }

    fn hear(&self, message: &[Value]) {
        let [_, Value::BulkString(payload)] = message else { return };
        let payload = String::from_utf8_lossy(payload);
        let words: Vec<_> = payload.split(' ').collect();
        if let [name, old_host, old_port, host, port] = words[..]
            && name == self.name
        {
            let (from, to) = (format!("{old_host} {old_port}"), format!("{host} {port}"));
            self.announce(|announced| announced.has_switched(&from, to));
        }
    }

    fn announce(&self, what: impl FnOnce(&mut Announced) -> bool) {
        if self.tells.send_if_modified(what) {
            tracing::warn!("the sentinels say that another server is the master now");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_all_sentinels_announce_is_one() {
        let mut announced = Announced::default();
        assert!(!announced.is_told("host 1".into(), 4), "the first is no switch");
        let mut switch = |from, to| announced.has_switched(&format!("host {from}"), format!("host {to}"));
        assert_eq!([switch(1, 2), switch(1, 2), switch(2, 1)], [true, false, true]);
        assert_eq!(announced.number, 2);
    }

    #[test]
    fn a_sentinel_that_is_behind_is_not_believed() {
        let mut announced = Announced::default();
        announced.is_told("host 1".into(), 4);
        assert!(announced.has_switched("host 1", "host 2".into()));
        assert!(!announced.is_told("host 1".into(), 4), "it has not heard of the switch");
        assert!(!announced.has_switched("host 0", "host 1".into()), "nor of the one before");
        assert!(!announced.is_told("host 2".into(), 7), "the same, with its number");
        assert!(!announced.is_told("host 1".into(), 5));
        assert!(announced.is_told("host 3".into(), 8), "one that was not heard of");
        assert_eq!((announced.number, announced.address.as_str()), (2, "host 3"));
    }
}
