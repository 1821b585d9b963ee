//! A master with replicas that can be made to fail, behind Sentinel or in a cluster.

use lockgate::testing::eventually;
use lockgate::testing::services::{Cluster, Redis, Sentinel};
use tokio::time::sleep;

use super::super::Failure;
use super::super::dice::Dice;
use super::super::hand::PATIENCE;
use super::{Fault, Topology};

/// The key by which the master is found that has all the locks: they are in one partition.
const A_KEY: &str = "lg:{0}:mutex:any";

pub(super) enum Servers {
    Sentinel(Sentinel),
    Cluster(Cluster),
}

/// A fault under way: who is down, and has to come back.
pub(super) struct Down<'a> {
    master: &'a Redis,
    /// Those that died with it.
    others: Vec<&'a Redis>,
    is_silent: bool,
}

impl Servers {
    pub(super) fn start(topology: Topology) -> Result<Self, Failure> {
        Ok(match topology {
            Topology::Sentinel => Servers::Sentinel(Sentinel::start()?),
            Topology::Cluster => Servers::Cluster(Cluster::start()?),
        })
    }

    pub(super) fn url(&self) -> String {
        match self {
            Servers::Sentinel(sentinel) => sentinel.url(),
            Servers::Cluster(cluster) => cluster.url(),
        }
    }

    fn master(&self) -> Option<&Redis> {
        match self {
            Servers::Sentinel(sentinel) => sentinel.master(),
            Servers::Cluster(cluster) => cluster.master_of(A_KEY),
        }
    }

    fn nodes(&self) -> &[Redis] {
        match self {
            Servers::Sentinel(sentinel) => sentinel.nodes(),
            Servers::Cluster(cluster) => cluster.nodes(),
        }
    }

    fn replicas_of(&self, master: &Redis) -> Vec<&Redis> {
        let port = master.port().to_string();
        let is_its =
            |node: &&Redis| node.info("replication", "master_port").as_deref() == Some(port.as_str());
        self.nodes().iter().filter(is_its).collect()
    }

    /// Lets the master fail. Returns as soon as it has.
    pub(super) async fn strike(&self, fault: Fault, dice: &mut Dice) -> Result<Down<'_>, Failure> {
        let master = self.master().ok_or("there is no master to strike")?;
        let replicas = self.replicas_of(master);
        let lagging = match fault {
            Fault::Killed | Fault::Silent => &replicas[..0],
            Fault::KilledUnheard => &replicas[..],
            Fault::KilledWithWitness => &replicas[..1],
        };
        // A replica that is stopped still gets what the kernel has for it when it goes on; so its connection is cut too, and
        // being stopped it cannot make another one. Those that are not stopped do so at once.
        for replica in lagging {
            replica.pause()?;
        }
        if !lagging.is_empty() {
            master.command(&["CLIENT", "KILL", "TYPE", "replica"])?;
            sleep(dice.millis(30, 200)).await;
        }
        let mut down = Down { master, others: Vec::new(), is_silent: fault == Fault::Silent };
        if down.is_silent {
            master.pause()?;
        } else {
            master.kill();
        }
        if fault == Fault::KilledWithWitness {
            down.others = replicas[1..].to_vec();
            down.others.iter().for_each(|witness| witness.kill());
        }
        for replica in lagging {
            replica.resume()?;
        }
        Ok(down)
    }

    /// Has a replica take over. Returns when everybody who decides agrees on it.
    pub(super) fn promote(&self, down: &Down<'_>) -> Result<(), Failure> {
        let old = down.master.port();
        match self {
            Servers::Sentinel(sentinel) => {
                // Refused if it does so by itself already, or if it takes the replicas for gone; then it will by itself.
                let _ = sentinel.replace_master();
                sentinel.wait_for_master_other_than(Some(old))?;
            }
            Servers::Cluster(cluster) => {
                let heir = *self.replicas_of(down.master).first().ok_or("nobody is there to take over")?;
                heir.command(&["CLUSTER", "FAILOVER", "TAKEOVER"])?;
                let has_moved =
                    || cluster.master_of(A_KEY).is_some_and(|master| master.port() == heir.port());
                if !eventually(PATIENCE, has_moved) {
                    return Err("the cluster has not moved to the replica".into());
                }
            }
        }
        Ok(())
    }

    /// Whoever is down comes back as a replica; a silent master lives on for a moment first. Returns when all are in step.
    pub(super) async fn recover(&self, down: Down<'_>, dice: &mut Dice) -> Result<(), Failure> {
        if down.is_silent {
            down.master.resume()?;
            sleep(dice.millis(20, 300)).await;
            down.master.kill();
        }
        let new = self.master().ok_or("there is no new master")?.port().to_string();
        for node in [down.master].iter().chain(&down.others) {
            node.restart()?;
            if matches!(self, Servers::Sentinel(_)) {
                // The Sentinels would tell it too, in a second.
                node.command(&["REPLICAOF", "127.0.0.1", &new])?;
            }
        }
        match self {
            Servers::Sentinel(sentinel) => sentinel.wait_until_settled()?,
            Servers::Cluster(cluster) => {
                let in_step = |node: &Redis| {
                    node.info("replication", "role").as_deref() == Some("slave")
                        && node.info("replication", "master_link_status").as_deref() == Some("up")
                };
                if !eventually(PATIENCE, || in_step(down.master) && cluster.master_of(A_KEY).is_some()) {
                    return Err("the old master has not become a replica".into());
                }
            }
        }
        Ok(())
    }
}
