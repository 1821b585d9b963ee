//! The stock's side of a gate: where its callers are [served together](crate::coalesce).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::operation::{Holding, Issuing, Ordering, Purchasing, Revoking, Settling};
use crate::coalesce::{Queues, Rules};
use crate::config::Config;
use crate::store::Store;

/// See the [module](self).
pub(crate) struct Counter {
    store: Arc<dyn Store>,
    pub(crate) issuing: Queues<Issuing>,
    pub(super) purchasing: Queues<Purchasing>,
    pub(super) holding: Queues<Holding>,
    pub(super) settling: Queues<Settling>,
    pub(super) revoking: Queues<Revoking>,
    pub(super) ordering: Queues<Ordering>,
    /// As many more orders over several partitions may be under way.
    pub(super) orders_across: Arc<Semaphore>,
    /// See [`Config::order_deadline`].
    pub(super) order_deadline: Duration,
}

impl Counter {
    pub(crate) fn new(store: Arc<dyn Store>, config: &Config) -> Arc<Self> {
        let Config { max_waiting, order_deadline, .. } = config;
        let rules = Rules::of(config);
        Arc::new(Self {
            issuing: Queues::new(&store, &rules),
            purchasing: Queues::new(&store, &rules),
            holding: Queues::new(&store, &rules),
            settling: Queues::new(&store, &rules),
            revoking: Queues::new(&store, &rules),
            ordering: Queues::new(&store, &rules),
            orders_across: Arc::new(Semaphore::new((*max_waiting).min(Semaphore::MAX_PERMITS))),
            order_deadline: *order_deadline,
            store,
        })
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("store", &self.store).finish_non_exhaustive()
    }
}
