//! The conformance suite, on every home of the store contract.
//!
//! Each kind of Redis is started once for the whole binary. The kernel ends them with it.

use std::sync::{Arc, OnceLock};

use lockgate::Gate;
use lockgate::testing::conformance::Home;
use lockgate::testing::services::{Cluster, Persistence, Redis, Sentinel};

/// A store at `url`, by the defaults.
async fn home_at(url: String) -> Home {
    Home::on_this_machine(Arc::clone(Gate::open(&url).await.unwrap().store()))
}

mod memory {
    use super::Home;

    lockgate::conformance_suite!(async { Home::embedded() });
}

mod standalone {
    use super::{OnceLock, Persistence, Redis, home_at};

    static REDIS: OnceLock<Redis> = OnceLock::new();

    fn url() -> String {
        REDIS.get_or_init(|| Redis::start(Persistence::Off).unwrap()).url()
    }

    lockgate::conformance_suite!(home_at(url()));
    lockgate::conformance_suite_of_partitions!(home_at(url()));
}

mod sentinel {
    use super::{OnceLock, Sentinel, home_at};

    static SENTINEL: OnceLock<Sentinel> = OnceLock::new();

    fn url() -> String {
        SENTINEL.get_or_init(|| Sentinel::start().unwrap()).url()
    }

    lockgate::conformance_suite!(home_at(url()));
    lockgate::conformance_suite_of_partitions!(home_at(url()));
}

mod cluster {
    use super::{Cluster, OnceLock, home_at};

    static CLUSTER: OnceLock<Cluster> = OnceLock::new();

    fn url() -> String {
        CLUSTER.get_or_init(|| Cluster::start().unwrap()).url()
    }

    lockgate::conformance_suite!(home_at(url()));
    lockgate::conformance_suite_of_partitions!(home_at(url()));
}
