//! A Redis that is watched over: one master, two replicas, three Sentinels, two of which must agree.
//!
//! Ready means settled: every Sentinel sees both replicas in step and the two other Sentinels, so that the first
//! thing a test does may be to kill the master. A dead master is noticed within about a second.

use std::time::Duration;

use super::port::{free_port, retry_on_taken_port};
use super::{Persistence, Redis, Reply, ServiceError};
use crate::testing::eventually;

/// What the Sentinels call the master, and the last part of the URL.
const MASTER_NAME: &str = "lockgate";

const SENTINELS: usize = 3;
const REPLICAS: usize = 2;
const QUORUM: usize = 2;
const DOWN_AFTER_MS: u32 = 900;
const FAILOVER_TIMEOUT_MS: u32 = 2_000;
/// The rhythm of a Sentinel, in milliseconds. By itself it looks at the roles every 10 s, which is when a former
/// master learns that it is a replica now. A Sentinel that is restarted falls back to that.
const QUICK: &[&str] = &[
    "info-period",
    "300",
    // A replica can be chosen only while its last INFO is younger than five of these; and while the master is down,
    // INFO comes once a second, whatever `info-period` says. So it must be well above 200.
    "ping-period",
    "400",
    "ask-period",
    "100",
    "publish-period",
    "200",
    // One that was paused does not trust its own clock for so long, and does nothing meanwhile; by itself for 30 s.
    "tilt-period",
    "1000",
];
const READY_BOUND: Duration = Duration::from_secs(30);
/// A Sentinel gives up an attempt after twice its timeout; this leaves room for several.
const SWITCH_BOUND: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_millis(500);

/// The whole arrangement. Every process in it can be paused, killed and restarted by itself.
#[derive(Debug)]
pub struct Sentinel {
    /// First, so that they are gone before what they watch goes.
    sentinels: Vec<Redis>,
    nodes: Vec<Redis>,
}

impl Sentinel {
    /// Starts all six processes and returns when they have settled.
    ///
    /// # Errors
    ///
    /// When `redis-server` is not installed or something does not come up; the message names the remedy.
    pub fn start() -> Result<Self, ServiceError> {
        let nodes = start_nodes()?;
        let ports: Vec<u16> = nodes.iter().map(|node| node.port()).collect();
        let sentinels = retry_on_taken_port(|| start_sentinels(&ports))?;
        let sentinel = Self { sentinels, nodes };
        sentinel.wait_until_settled()?;
        Ok(sentinel)
    }

    /// `redis+sentinel://127.0.0.1:<port>,127.0.0.1:<port>,127.0.0.1:<port>/lockgate`.
    #[must_use]
    pub fn url(&self) -> String {
        let sentinels: Vec<String> = self.sentinels.iter().map(Redis::address).collect();
        format!("redis+sentinel://{}/{MASTER_NAME}", sentinels.join(","))
    }

    /// The three servers that hold data: at first the master, then its replicas. Roles change, places do not.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The three guardians.
    #[must_use]
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// The master on which all reachable Sentinels agree and which agrees itself; `None` during a switch.
    #[must_use]
    pub fn master(&self) -> Option<&Redis> {
        let mut announced = self.sentinels.iter().filter_map(announced_port);
        let port = announced.next()?;
        if announced.any(|other| other != port) {
            return None;
        }
        self.nodes.iter().find(|node| node.port() == port).filter(|node| is_master(node))
    }

    /// The port of [`Sentinel::master`].
    #[must_use]
    pub fn master_port(&self) -> Option<u16> {
        self.master().map(|master| master.port())
    }

    /// Lets the Sentinels move the mastership to a replica, with everything alive, and waits until it has moved:
    /// all Sentinels announce the same new master, and it is one.
    ///
    /// # Errors
    ///
    /// When there is no master to move from, or nothing moves within a bound.
    pub fn fail_over(&self) -> Result<&Redis, ServiceError> {
        let old = self.wait_for_master_other_than(None)?.port();
        let mut refusal = "they do not see the replicas in step".to_owned();
        // Refused while an earlier switch is under way.
        let accepted = eventually(SWITCH_BOUND, || {
            let mut awake = self.sentinels.iter().filter(|sentinel| answers(sentinel)).peekable();
            let Some(leader) = awake.peek().copied().filter(|_| awake.all(sees_only_good_heirs)) else {
                return false;
            };
            let outcome = leader.command_within(PATIENCE, &["SENTINEL", "FAILOVER", MASTER_NAME]);
            refusal = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
            outcome.is_ok()
        });
        if !accepted {
            return Err(self.not_in_time("willing to fail over", refusal));
        }
        self.wait_for_master_other_than(Some(old))
    }

    /// Tells a Sentinel to replace a master that is dead or silent, without waiting until it has noticed that by itself and the
    /// others agree. It may refuse, for example because it does so already.
    ///
    /// # Errors
    ///
    /// When it refuses, or does not answer.
    pub fn replace_master(&self) -> Result<(), ServiceError> {
        self.sentinels[0].command_within(PATIENCE, &["SENTINEL", "FAILOVER", MASTER_NAME]).map(drop)
    }

    /// Waits until all reachable Sentinels agree on a master other than this one, for example after killing it.
    ///
    /// # Errors
    ///
    /// When they do not agree within a bound.
    pub fn wait_for_master_other_than(&self, old_port: Option<u16>) -> Result<&Redis, ServiceError> {
        let mut found = None;
        let _ = eventually(SWITCH_BOUND, || {
            found = self.master().filter(|master| Some(master.port()) != old_port);
            found.is_some()
        });
        found.ok_or_else(|| self.not_in_time("agreed on a new master", self.views()))
    }

    /// Waits until every Sentinel sees two replicas in step and the other Sentinels: the next switch-over may come.
    ///
    /// # Errors
    ///
    /// When it does not come to that within a bound.
    pub fn wait_until_settled(&self) -> Result<(), ServiceError> {
        let settled = eventually(READY_BOUND, || self.sentinels.iter().all(sees_everybody));
        if settled { Ok(()) } else { Err(self.not_in_time("settled", self.views())) }
    }

    fn views(&self) -> String {
        let views = self.sentinels.iter().map(|sentinel| (sentinel.port(), announced_port(sentinel)));
        format!("(Sentinel, its master): {:?}", views.collect::<Vec<_>>())
    }

    fn not_in_time(&self, goal: &'static str, why: String) -> ServiceError {
        self.sentinels[0].not_in_time(goal, SWITCH_BOUND, why)
    }
}

fn start_nodes() -> Result<Vec<Redis>, ServiceError> {
    // Replicas need not wait for others that may want the same snapshot.
    let node = Redis::builder()
        .persistence(Persistence::Off)
        .config("repl-diskless-sync-delay", "0")
        .config("repl-ping-replica-period", "1");
    let master = node.start()?;
    let replica = node.config("replicaof", &format!("127.0.0.1 {}", master.port()));
    let mut nodes = vec![master];
    for _ in 0..REPLICAS {
        nodes.push(replica.start()?);
    }
    Ok(nodes)
}

fn start_sentinels(nodes: &[u16]) -> Result<Vec<Redis>, ServiceError> {
    let ports: Vec<u16> = (0..SENTINELS).map(|_| free_port()).collect::<Result<_, _>>()?;
    ports.iter().map(|port| start_sentinel(*port, &ports, nodes)).collect()
}

/// Everybody is introduced to everybody in advance; finding each other by themselves would take them seconds.
fn start_sentinel(port: u16, sentinels: &[u16], nodes: &[u16]) -> Result<Redis, ServiceError> {
    let (master, replicas) = (nodes[0], &nodes[1..]);
    let mut sentinel = Redis::builder()
        .sentinel()
        .config("sentinel", &format!("myid {}", id_of(port)))
        .config("sentinel", &format!("monitor {MASTER_NAME} 127.0.0.1 {master} {QUORUM}"))
        .config("sentinel", &format!("down-after-milliseconds {MASTER_NAME} {DOWN_AFTER_MS}"))
        .config("sentinel", &format!("failover-timeout {MASTER_NAME} {FAILOVER_TIMEOUT_MS}"))
        .config("sentinel", &format!("parallel-syncs {MASTER_NAME} {REPLICAS}"));
    for replica in replicas {
        sentinel = sentinel.config("sentinel", &format!("known-replica {MASTER_NAME} 127.0.0.1 {replica}"));
    }
    for other in sentinels.iter().filter(|other| **other != port) {
        let introduction = format!("known-sentinel {MASTER_NAME} 127.0.0.1 {other} {}", id_of(*other));
        sentinel = sentinel.config("sentinel", &introduction);
    }
    let sentinel = sentinel.start_on(port, &[])?;
    // Redis before 7 does not know this command; its Sentinels are only slower then.
    let _ = sentinel.command(&[&["SENTINEL", "DEBUG"], QUICK].concat());
    Ok(sentinel)
}

/// Forty hexadecimal digits, which is what Redis wants an id to be.
pub(super) fn id_of(port: u16) -> String {
    format!("{port:040x}")
}

fn announced_port(sentinel: &Redis) -> Option<u16> {
    let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME];
    let reply = sentinel.command_within(PATIENCE, &question).ok()?;
    reply.parts().get(1)?.as_str()?.parse().ok()
}

fn is_master(node: &Redis) -> bool {
    let role = node.command_within(PATIENCE, &["ROLE"]).ok();
    role.and_then(|role| Some(role.parts().first()?.as_str()? == "master")).unwrap_or(false)
}

fn answers(redis: &Redis) -> bool {
    redis.command_within(PATIENCE, &["PING"]).is_ok()
}

/// Whether every replica that this Sentinel could choose is one, and it knows. Right after a switch, the former
/// master is in the list too. A Sentinel that promoted it would wait in vain for it to become what it still is; and
/// one that last saw it as a master would undo its next promotion, taking it for a master that has come back.
fn sees_only_good_heirs(sentinel: &Redis) -> bool {
    let is_up = |replica: &&Reply| replica.field("flags").is_some_and(|flags| !flags.contains("down"));
    let replicas = sentinel.command_within(PATIENCE, &["SENTINEL", "REPLICAS", MASTER_NAME]);
    replicas.is_ok_and(|replicas| {
        let mut up = replicas.parts().iter().filter(is_up).peekable();
        up.peek().is_some() && up.all(is_in_step)
    })
}

fn is_in_step(replica: &Reply) -> bool {
    replica.field("flags") == Some("slave")
        && replica.field("role-reported") == Some("slave")
        && replica.field("master-link-status") == Some("ok")
}

fn sees_everybody(sentinel: &Redis) -> bool {
    let awake = |other: &Reply| other.field("flags") == Some("sentinel");
    let list = |what| sentinel.command_within(PATIENCE, &["SENTINEL", what, MASTER_NAME]);
    list("REPLICAS").is_ok_and(|replicas| all_of(&replicas, REPLICAS, is_in_step))
        && list("SENTINELS").is_ok_and(|others| all_of(&others, SENTINELS - 1, awake))
        && list("CKQUORUM").is_ok()
}

fn all_of(list: &Reply, count: usize, condition: impl Fn(&Reply) -> bool) -> bool {
    list.parts().len() == count && list.parts().iter().all(condition)
}
