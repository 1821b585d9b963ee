//! What is checked before a server is trusted with decisions, and what it says of itself.

use std::collections::HashMap;

use redis::{Value, from_redis_value};

use super::link::{Link, Request, explain_no_connection};
use crate::config::RedisConfig;
use crate::error::{OpenError, StoreError};
use crate::key::{Keyspace, LAYOUT_VERSION};
use crate::store::{About, Persistence};

/// The oldest server whose scripts may read the clock and then write, and that knows all commands we use.
const OLDEST_VERSION: (u32, u32) = (6, 2);

/// The sections of `INFO` of one server, as field → value.
struct Info(HashMap<String, String>);

impl Info {
    fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(field, value)| (field.to_owned(), value.trim().to_owned())).collect())
    }

    fn get(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    /// Valkey reports the Redis version that it is compatible with here, which is what matters.
    fn version(&self) -> (u32, u32) {
        let mut numbers = self.get("redis_version").split('.').map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    fn may_evict(&self) -> bool {
        !matches!(self.get("maxmemory_policy"), "noeviction" | "") && self.get("maxmemory") != "0"
    }

    fn persistence(&self, settings: &Settings) -> Persistence {
        match (self.get("aof_enabled"), settings.appendfsync.as_deref(), settings.save.as_deref()) {
            ("1", Some("always"), _) => Persistence::AppendOnlyAlways,
            ("1", Some("no"), _) => Persistence::AppendOnlyUnsynced,
            ("1", ..) => Persistence::AppendOnlyEverySecond,
            (_, _, Some("")) => Persistence::None,
            _ => Persistence::Snapshots,
        }
    }
}

/// What `INFO` does not tell. Managed services may forbid the question; then what is usual there is assumed.
struct Settings {
    appendfsync: Option<String>,
    save: Option<String>,
}

/// Refuses servers that would break the promises; their run ids.
pub(super) async fn check_servers(link: &Link, config: &RedisConfig) -> Result<Vec<String>, OpenError> {
    let url = link.shown_url();
    let infos = infos(link).await.map_err(|why| unasked(url, &why))?;
    for info in &infos {
        let (major, minor) = info.version();
        if (major, minor) < OLDEST_VERSION {
            return Err(OpenError::Unfit(format!(
                "{url} is Redis {}; at least {}.{} is needed, so upgrade it",
                info.get("redis_version"),
                OLDEST_VERSION.0,
                OLDEST_VERSION.1
            )));
        }
        if info.may_evict() && !config.allow_eviction {
            return Err(OpenError::Unfit(format!(
                "{url} may evict keys (maxmemory-policy {}), and an evicted lock has two holders; \
                 run `redis-cli CONFIG SET maxmemory-policy noeviction` there, or use another server",
                info.get("maxmemory_policy")
            )));
        }
        if !link.is_cluster() && info.get("redis_mode") == "cluster" {
            return Err(OpenError::Unfit(format!(
                "{url} is a node of a cluster; write redis+cluster:// instead"
            )));
        }
        if info.get("role") == "slave" {
            return Err(OpenError::Unfit(format!("{url} is a replica; give the address of its master")));
        }
    }
    Ok(runs_in(&infos))
}

/// Writes down, at first use, by which rules names become keys; afterwards insists on them.
pub(super) async fn agree_on_layout(link: &Link, keys: &Keyspace) -> Result<(), OpenError> {
    let ours = [("version", LAYOUT_VERSION.to_string()), ("partitions", keys.partitions().to_string())];
    let (url, key) = (link.shown_url(), keys.layout());
    for (field, our_value) in ours {
        // HSETNX is atomic: of two processes that come first, one sets it and both read the same.
        let claim = redis::cmd("HSETNX").arg(&key).arg(field).arg(&our_value).take();
        link.send(Request::Command(&claim)).await.map_err(|why| unasked(url, &why))?;
        let read = redis::cmd("HGET").arg(&key).arg(field).take();
        let stored = link.send(Request::Command(&read)).await.map_err(|why| unasked(url, &why))?;
        let stored: String = from_redis_value(stored).unwrap_or_default();
        if stored != our_value {
            return Err(OpenError::Unfit(format!(
                "the keys at {url} were written with {field} {stored}, this program uses {our_value} \
                 (see `HGETALL {key}`); use the same program and settings everywhere, or another namespace"
            )));
        }
    }
    Ok(())
}

/// Makes sure that scripts may publish: one that is stopped in the middle of a hand-over would leave a lock to nobody.
pub(super) async fn check_channels(link: &Link, keys: &Keyspace) -> Result<(), OpenError> {
    let publish = redis::cmd("PUBLISH").arg(keys.freed()).arg("").take();
    match link.send(Request::Command(&publish)).await {
        Ok(_) => Ok(()),
        Err(StoreError::Refused(why)) => Err(OpenError::Unfit(format!(
            "{} does not let this user publish ({why}), so no lock could be handed on; \
             run `ACL SETUSER <user> &{}* +publish +subscribe` there",
            link.shown_url(),
            keys.channels()
        ))),
        Err(why) => Err(unasked(link.shown_url(), &why)),
    }
}

/// What the servers behind `link` say of themselves, now.
pub(super) async fn about(link: &Link) -> Result<About, StoreError> {
    // At once, so that all of it takes no longer than one call may.
    let (infos, appendfsync, save) =
        tokio::join!(infos(link), setting(link, "appendfsync"), setting(link, "save"));
    let (infos, settings) = (infos?, Settings { appendfsync, save });
    let Some(first) = infos.first() else { return Err(StoreError::Unavailable("no server answered".into())) };
    let shape =
        if link.is_cluster() { format!("cluster, {} masters", infos.len()) } else { "one master".to_owned() };
    let run_ids = runs_in(&infos);
    let weakest = infos.iter().map(|info| info.persistence(&settings)).min();
    Ok(About {
        description: format!("redis {} ({shape})", first.get("redis_version")),
        persistence: weakest.unwrap_or(Persistence::None),
        run_ids,
    })
}

/// The run ids of the servers behind `link`, sorted.
pub(super) async fn run_ids(link: &Link) -> Result<Vec<String>, StoreError> {
    Ok(runs_in(&infos(link).await?))
}

fn runs_in(infos: &[Info]) -> Vec<String> {
    let mut run_ids: Vec<_> = infos.iter().map(|info| info.get("run_id").to_owned()).collect();
    run_ids.sort();
    run_ids
}

async fn infos(link: &Link) -> Result<Vec<Info>, StoreError> {
    let info = redis::cmd("INFO");
    let texts = match link.send(Request::ToAllMasters(&info)).await? {
        Value::Map(by_node) => by_node.into_iter().map(|(_, text)| text).collect(),
        text => vec![text],
    };
    let texts = texts.into_iter().map(|text| from_redis_value::<String>(text).unwrap_or_default());
    Ok(texts.map(|text| Info::parse(&text)).collect())
}

/// A setting of the first server that answers: servers of one cluster are set up alike.
async fn setting(link: &Link, name: &str) -> Option<String> {
    let question = redis::cmd("CONFIG").arg("GET").arg(name).take();
    let answer = match link.send(Request::ToAllMasters(&question)).await.ok()? {
        Value::Map(mut by_node) if link.is_cluster() => by_node.pop()?.1,
        answer => answer,
    };
    from_redis_value::<HashMap<String, String>>(answer).ok()?.remove(name)
}

/// A server that was there and refused is not one that cannot be reached.
fn unasked(url: &str, why: &StoreError) -> OpenError {
    match why {
        StoreError::Refused(why) if !why.contains("NOAUTH") => OpenError::Unfit(format!(
            "{url} refused the first questions ({why}); let this user run INFO, HSETNX, HGET, EVAL and EVALSHA there"
        )),
        why => explain_no_connection(url, &why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = |text| Info::parse(&format!("# Server\r\nredis_version:{text}\r\n")).version();
        assert!(version("6.0.16") < OLDEST_VERSION);
        assert!(version("6.2.0") >= OLDEST_VERSION);
        assert!(version("10.0.1") >= OLDEST_VERSION);
        assert!(version("garbage") < OLDEST_VERSION);
    }

    #[test]
    fn only_a_server_with_a_limit_and_an_evicting_policy_evicts() {
        let may_evict = |max, policy| {
            Info::parse(&format!("maxmemory:{max}\r\nmaxmemory_policy:{policy}\r\n")).may_evict()
        };
        assert!(may_evict("1000", "allkeys-lru") && may_evict("1000", "volatile-ttl"));
        assert!(!may_evict("1000", "noeviction") && !may_evict("0", "allkeys-lru"));
    }
}
