//! What becomes of orders whose process died on the way.
//!
//! **Promise:** whoever resolves a doubt never decides it: the order's record does. An attempt that was committed is made
//! whole, any other is aborted first, for ever, and only then given back. So it does not matter how many resolve the same
//! doubt at once, nor that the process which placed the order is only slow: its commitment is refused from then on.

use super::across::complete;
use crate::error::StoreError;
use crate::store::{MAX_BATCH, OrderDecision, OrderPart, OrderVerdict, Sending, Settlement, Store};

/// How many doubts of one partition are resolved in one go. More than that come again the next time.
const AT_ONCE: usize = MAX_BATCH;

/// What came of the doubts of a partition.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// How many became grants.
    confirmed: u64,
    /// How many went back on the shelf.
    pub(super) given_back: u64,
    /// Why one could not be resolved. Those after it were tried all the same.
    failed: Option<StoreError>,
}

/// Resolves all doubts of all partitions; how many that were.
pub(crate) async fn resolve_all(store: &dyn Store) -> Result<u64, StoreError> {
    let (mut resolved, mut failed) = (0, None);
    // Where there is one partition, no order is ever in doubt.
    for partition in (0..store.partitions()).filter(|_| store.partitions() > 1) {
        let here = resolve_in(store, partition).await;
        resolved += here.confirmed + here.given_back;
        failed = failed.or(here.failed);
    }
    failed.map_or(Ok(resolved), Err)
}

/// Resolves the doubts of one partition.
pub(super) async fn resolve_in(store: &dyn Store, partition: u16) -> Resolved {
    let mut resolved = Resolved::default();
    let doubts = match store.order_doubts(partition, AT_ONCE).await {
        Ok(doubts) => doubts,
        Err(why) => return Resolved { failed: Some(why), ..resolved },
    };
    for part in &doubts {
        match resolve(store, part).await {
            Ok(Settlement::Confirm) => resolved.confirmed += 1,
            Ok(Settlement::Cancel) => resolved.given_back += 1,
            Err(why) => resolved.failed = resolved.failed.or(Some(why)),
        }
    }
    resolved
}

async fn resolve(store: &dyn Store, part: &OrderPart) -> Result<Settlement, StoreError> {
    let (sending, abort) = (Sending::once(), OrderDecision::Abort);
    match store.order_decide(&sending, &part.order, part.attempt, &abort).await? {
        OrderVerdict::Committed(order) => {
            // All of it, because then its record need not be kept for the other parts.
            complete(store, &part.order, &order).await?;
            // A server that took over from another may have lost what the record knows to be settled.
            if order.seqs.is_some() {
                store.order_settle(&Sending::once(), part, Settlement::Confirm).await?;
            }
            Ok(Settlement::Confirm)
        }
        _ => {
            store.order_settle(&Sending::once(), part, Settlement::Cancel).await?;
            Ok(Settlement::Cancel)
        }
    }
}
