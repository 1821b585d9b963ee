//! A Redis Cluster: three masters that share the slots, each with a replica.
//!
//! Ready means that every node believes that all is well and that every replica is in step. Starting takes a little
//! over two seconds, because a master waits that long before it trusts what it finds at its start; all else is
//! done in advance by writing each node's own view of the cluster (`nodes.conf`) instead of letting them meet.

use std::time::Duration;

use super::port::{free_port, retry_on_taken_port};
use super::redis::value_in;
use super::sentinel::id_of;
use super::{Redis, Reply, ServiceError};
use crate::testing::eventually;

const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;
const SLOTS: usize = 16_384;
/// After this long without an answer a node is believed to be dead, and its replica takes over.
const NODE_TIMEOUT_MS: &str = "1500";
const READY_BOUND: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_millis(500);

/// The whole cluster. Every node can be paused, killed and restarted by itself.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts all six nodes and returns when the cluster serves every slot.
    ///
    /// # Errors
    ///
    /// When `redis-server` is not installed, is older than 7, or something does not come up; the message names the
    /// remedy.
    pub fn start() -> Result<Self, ServiceError> {
        let nodes = retry_on_taken_port(start_nodes)?;
        let cluster = Self { nodes };
        cluster.wait_until_it_is_well()?;
        Ok(cluster)
    }

    /// `redis+cluster://127.0.0.1:<port>,127.0.0.1:<port>,127.0.0.1:<port>`: the first three nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let seeds: Vec<String> = self.nodes[..MASTERS].iter().map(Redis::address).collect();
        format!("redis+cluster://{}", seeds.join(","))
    }

    /// All nodes: at first three masters, then the replica of each in the same order. Roles change, places do not.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The node that serves a key now, as the other nodes see it.
    #[must_use]
    pub fn master_of(&self, key: &str) -> Option<&Redis> {
        let asked = self.nodes.iter().find(|node| node.command_within(PATIENCE, &["PING"]).is_ok())?;
        let slot = asked.command_within(PATIENCE, &["CLUSTER", "KEYSLOT", key]).ok()?.as_int()?;
        let ranges = asked.command_within(PATIENCE, &["CLUSTER", "SLOTS"]).ok()?;
        let range = ranges.parts().iter().find(|range| {
            let bound = |place: usize| range.parts().get(place).and_then(Reply::as_int);
            bound(0) <= Some(slot) && Some(slot) <= bound(1)
        })?;
        let port = range.parts().get(2)?.parts().get(1)?.as_int()?;
        self.nodes.iter().find(|node| i64::from(node.port()) == port)
    }

    fn wait_until_it_is_well(&self) -> Result<(), ServiceError> {
        let well = eventually(READY_BOUND, || {
            self.nodes.iter().all(believes_all_is_well) && self.nodes[MASTERS..].iter().all(is_in_step)
        });
        if well {
            return Ok(());
        }
        let ill = self.nodes.iter().find(|node| !believes_all_is_well(node)).unwrap_or(&self.nodes[MASTERS]);
        let view =
            ill.command(&["CLUSTER", "NODES"]).map_or_else(|why| why.to_string(), |view| view.to_string());
        Err(ill.not_in_time("in a working cluster", READY_BOUND, view))
    }
}

fn start_nodes() -> Result<Vec<Redis>, ServiceError> {
    let members = (0..NODES).map(Member::on_free_ports).collect::<Result<Vec<_>, _>>()?;
    members.iter().map(|member| member.start(&members)).collect()
}

fn believes_all_is_well(node: &Redis) -> bool {
    node.command_within(PATIENCE, &["CLUSTER", "INFO"]).is_ok_and(|info| {
        let info = info.as_str().unwrap_or_default();
        value_in(info, "cluster_state") == Some("ok")
            && value_in(info, "cluster_known_nodes") == Some(NODES.to_string().as_str())
            && value_in(info, "cluster_slots_ok") == Some(SLOTS.to_string().as_str())
    })
}

fn is_in_step(replica: &Redis) -> bool {
    replica.info("replication", "master_link_status").as_deref() == Some("up")
}

/// What one node is to be.
struct Member {
    place: usize,
    port: u16,
    /// Where the nodes talk among themselves. By default 10,000 above the port, which may be taken, or no port.
    bus_port: u16,
}

impl Member {
    fn on_free_ports(place: usize) -> Result<Self, ServiceError> {
        Ok(Self { place, port: free_port()?, bus_port: free_port()? })
    }

    fn start(&self, members: &[Member]) -> Result<Redis, ServiceError> {
        Redis::builder()
            .config("cluster-enabled", "yes")
            .config("cluster-port", &self.bus_port.to_string())
            .config("cluster-config-file", "nodes.conf")
            .config("cluster-node-timeout", NODE_TIMEOUT_MS)
            // A replica takes over however long it has not heard from its master: tests pause masters for long.
            .config("cluster-replica-validity-factor", "0")
            .config("repl-diskless-sync-delay", "0")
            .start_on(self.port, &[("nodes.conf", &self.view_of(members))])
    }

    /// The cluster as this node knows it, as if it had been in it for long.
    fn view_of(&self, members: &[Member]) -> String {
        let lines: Vec<String> = members.iter().map(|member| member.line(members, self.place)).collect();
        format!("{}\nvars currentEpoch {MASTERS} lastVoteEpoch 0\n", lines.join("\n"))
    }

    /// `id address flags master ping-sent pong-received epoch link-state [slots]`.
    fn line(&self, members: &[Member], viewer: usize) -> String {
        let (id, port, bus_port) = (id_of(self.port), self.port, self.bus_port);
        let myself = if self.place == viewer { "myself," } else { "" };
        let shard = self.place % MASTERS;
        let epoch = shard + 1;
        let role = if self.place < MASTERS {
            let (first, last) = (SLOTS * shard / MASTERS, SLOTS * (shard + 1) / MASTERS - 1);
            format!("master - 0 0 {epoch} connected {first}-{last}")
        } else {
            format!("slave {} 0 0 {epoch} connected", id_of(members[shard].port))
        };
        format!("{id} 127.0.0.1:{port}@{bus_port} {myself}{role}")
    }
}
