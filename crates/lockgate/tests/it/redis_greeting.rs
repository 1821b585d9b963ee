//! What is checked and learnt when a store connects to Redis.

use std::sync::Arc;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::error::OpenError;
use lockgate::key::{Keyspace, Kind, Name, crc16};
use lockgate::store::Persistence as Survives;
use lockgate::testing::eventually_async;
use lockgate::testing::services::{Cluster, Persistence, Redis, Reply};

async fn open_error(url: &str, config: &Config) -> OpenError {
    Gate::open_with(url, config).await.expect_err("it must not open")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_knows_how_durable_its_redis_is() {
    let modes = [
        (Persistence::Off, Survives::None),
        (Persistence::AofEverysec, Survives::AppendOnlyEverySecond),
        (Persistence::AofAlways, Survives::AppendOnlyAlways),
    ];
    for (mode, survives) in modes {
        let redis = Redis::start(mode).unwrap();
        let about = Gate::open(&redis.url()).await.unwrap().store().about().await.unwrap();
        assert_eq!(about.persistence, survives, "{mode:?}");
        assert!(about.description.starts_with("redis "), "{about:?}");
    }
    let unsynced =
        Redis::builder().persistence(Persistence::AofEverysec).config("appendfsync", "no").start().unwrap();
    let about = Gate::open(&unsynced.url()).await.unwrap().store().about().await.unwrap();
    assert_eq!(about.persistence, Survives::AppendOnlyUnsynced);
    let snapshots = Redis::builder().config("save", "3600 1").start().unwrap();
    let about = Gate::open(&snapshots.url()).await.unwrap().store().about().await.unwrap();
    assert_eq!(about.persistence, Survives::Snapshots);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_has_another_run_id() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let store = Arc::clone(Gate::open(&redis.url()).await.unwrap().store());
    let before = store.about().await.unwrap().run_ids;
    assert_eq!(before.len(), 1);
    redis.restart().unwrap();
    let after = store.about().await.unwrap().run_ids;
    assert!(after.len() == 1 && after != before, "{before:?} then {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forbids_channels_is_refused_with_the_remedy() {
    let redis = Redis::start(Persistence::Off).unwrap();
    redis.command(&["ACL", "SETUSER", "default", "resetchannels"]).unwrap();
    let why = open_error(&redis.url(), &Config::default()).await;
    assert!(matches!(&why, OpenError::Unfit(text) if text.contains("&lg:*")), "{why}");
    redis.command(&["ACL", "SETUSER", "default", "&lg:*"]).unwrap();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let guard = gate.mutex("m").unwrap().lock().await.unwrap();
    let mutex = gate.mutex("m").unwrap().cohort(None);
    let waiter = tokio::spawn(async move { mutex.lock().await });
    // In the queue, so that only the channel can tell it.
    let is_queued = async || gate.mutex("m").unwrap().status().await.unwrap().waiting == 1;
    assert!(eventually_async(std::time::Duration::from_secs(10), is_queued).await);
    drop(guard);
    drop(waiter.await.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicting_server_is_refused_unless_that_is_wanted() {
    let redis = Redis::builder()
        .config("maxmemory", "100mb")
        .config("maxmemory-policy", "volatile-lru")
        .start()
        .unwrap();
    let mut config = Config::default();
    let why = open_error(&redis.url(), &config).await;
    assert!(matches!(&why, OpenError::Unfit(text) if text.contains("noeviction")), "{why}");
    config.redis.allow_eviction = true;
    Gate::open_with(&redis.url(), &config).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forbids_the_questions_is_not_said_to_be_away() {
    let redis = Redis::start(Persistence::Off).unwrap();
    redis.command(&["ACL", "SETUSER", "default", "-info"]).unwrap();
    let why = open_error(&redis.url(), &Config::default()).await;
    assert!(matches!(&why, OpenError::Unfit(text) if text.contains("let this user run INFO")), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_refused() {
    let (master, replica) =
        (Redis::start(Persistence::Off).unwrap(), Redis::start(Persistence::Off).unwrap());
    replica.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).unwrap();
    let why = open_error(&replica.url(), &Config::default()).await;
    assert!(matches!(&why, OpenError::Unfit(text) if text.contains("its master")), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_processes_of_a_cluster_must_agree_on_the_partitions_for_ever() {
    let cluster = Cluster::start().unwrap();
    let mut config = Config::default();
    let mut firsts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = cluster.url();
        firsts.spawn(async move { Gate::open(&url).await.map(|_| ()) });
    }
    assert!(firsts.join_all().await.iter().all(Result::is_ok));
    config.redis.cluster_partitions = 32;
    let why = open_error(&cluster.url(), &config).await;
    assert!(
        matches!(&why, OpenError::Unfit(text) if text.contains("partitions 64") && text.contains("uses 32")),
        "{why}"
    );
    config.namespace = "other".into();
    Gate::open_with(&cluster.url(), &config).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_namespaces_do_not_see_each_other() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let mut config = Config::default();
    let one = Gate::open_with(&redis.url(), &config).await.unwrap();
    config.namespace = "two".into();
    let two = Gate::open_with(&redis.url(), &config).await.unwrap();
    one.coupon("c").unwrap().open(&lockgate::stock::Terms::new(1).unwrap()).await.unwrap();
    assert_eq!(two.coupon("c").unwrap().status().await.unwrap(), None);
}

/// The property tests in `key.rs` prove it by our CRC16; here the server itself is asked.
#[tokio::test(flavor = "multi_thread")]
async fn redis_itself_puts_every_key_into_the_slot_of_its_partition() {
    let cluster = Cluster::start().unwrap();
    let keys = Keyspace::new("lg", 64).unwrap();
    for text in ["a", "{", "}{", "{0}", "{}x", ":", "\0", "🎟", "a b", &"{".repeat(10_240)] {
        let name = Name::new("name", text).unwrap();
        let partition = keys.partition_of(&name).to_string();
        for kind in Kind::ALL {
            let slot = cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", &keys.key(kind, &name)]).unwrap();
            assert_eq!(slot, Reply::Int(i64::from(crc16(partition.as_bytes()) % 16_384)), "{text:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_needs_a_certificate_that_is_trusted() {
    let redis = Redis::builder().tls().start().unwrap();
    assert!(redis.url().starts_with("rediss://"), "{}", redis.url());
    let mut config = Config::default();
    let why = open_error(&redis.url(), &config).await;
    assert!(matches!(&why, OpenError::Unreachable(text) if text.contains("certificate")), "{why}");
    config.redis.ca_file = redis.ca_file().map(Into::into);
    let gate = Gate::open_with(&redis.url(), &config).await.unwrap();
    gate.store().about().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_connections_serve_one_store() {
    let redis = Redis::start(Persistence::Off).unwrap();
    let mut config = Config::default();
    config.redis.connections = 3;
    let gate = Gate::open_with(&redis.url(), &config).await.unwrap();
    gate.coupon("c").unwrap().open(&lockgate::stock::Terms::new(1).unwrap()).await.unwrap();
    let clients = redis.info("clients", "connected_clients").unwrap();
    // One more is the harness that asks.
    assert_eq!(clients, "4");
}
