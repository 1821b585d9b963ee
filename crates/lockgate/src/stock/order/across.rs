//! Orders over several partitions of a cluster.
//!
//! **Promise:** all or nothing, as any other order. It holds when the process that places it dies at any step, when answers
//! get lost, and when several processes place the same named order at once: one of them takes the stock, all are told its
//! numbers.
//! **Not promised:** that it is one step. What is put aside for an order that is then denied, or whose process died, is
//! missing for others meanwhile: for as long as the calls take, or until somebody
//! [resolves the doubt](super::doubts).
//!
//! ```text
//! find     named orders only: what was ordered before takes nothing
//! reserve  partition by partition; a denial gives back what was put aside, for this attempt will never be committed
//! decide   the one step that counts: before it nothing is ordered, after it everything is
//! settle   partition by partition: what was put aside becomes grants
//! note     the numbers of the grants, in the order's record; nobody waits for it
//! ```
//!
//! **Cancel safety:** all of it goes on in a task of its own, so dropping the caller's future stops nothing half way.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::attempt::{Attempt, Outcome, parts_of};
use super::doubts::resolve_in;
use crate::error::StoreError;
use crate::key::Name;
use crate::stock::Counter;
use crate::store::{
    CommittedOrder, OrderDecision, OrderPart, OrderPlace, OrderSettle, OrderWish, Sending, Settlement,
    Shortage, Store, Token,
};

/// After what time to come again when too many orders are under way.
const COME_AGAIN: Duration = Duration::from_millis(100);

/// Whether the items of an order live in several partitions.
pub(super) fn is_across(store: &dyn Store, wish: &OrderWish) -> bool {
    let mut partitions = wish.items().iter().map(|item| store.partition_of(item.sku.home()));
    let first = partitions.next();
    partitions.any(|partition| Some(partition) != first)
}

/// Places an order whose items live in several partitions.
pub(super) async fn place(
    counter: &Arc<Counter>,
    wish: OrderWish,
    is_named: bool,
) -> Result<OrderPlace, StoreError> {
    let runtime = Handle::try_current()
        .map_err(|_| StoreError::Unavailable("there is no tokio runtime to place the order in".into()))?;
    let under_way = Arc::clone(&counter.orders_across).try_acquire_owned();
    let under_way = under_way.map_err(|_| StoreError::Busy { retry_after: COME_AGAIN })?;
    let (answer, receiver) = oneshot::channel();
    let placing = Placing { counter: Arc::clone(counter), wish, is_named };
    runtime.spawn(placing.run(answer, under_way));
    let ended = || StoreError::UnknownOutcome("the order was not finished; has its runtime ended?".into());
    receiver.await.unwrap_or_else(|_| Err(ended()))
}

/// An order that is being placed.
struct Placing {
    counter: Arc<Counter>,
    wish: OrderWish,
    is_named: bool,
}

impl Placing {
    async fn run(
        self,
        answer: oneshot::Sender<Result<OrderPlace, StoreError>>,
        _under_way: OwnedSemaphorePermit,
    ) {
        // The caller may have gone away; what it was given, it finds when it asks again.
        match self.place().await {
            Ok(Outcome::Said(said)) => drop(answer.send(Ok(said))),
            Err(why) => drop(answer.send(Err(why))),
            Ok(Outcome::Placed { attempt, seqs }) => {
                let _ = answer.send(Ok(OrderPlace::Placed { seqs: seqs.clone() }));
                note(self.store(), &self.wish.id, attempt, seqs).await;
            }
            Ok(Outcome::Failed { mut attempt, why }) => {
                let _ = answer.send(Err(why));
                attempt.give_back().await;
            }
        }
    }

    fn store(&self) -> &dyn Store {
        self.counter.store()
    }

    async fn place(&self) -> Result<Outcome<'_>, StoreError> {
        if let Some(said) = self.said_before().await? {
            return Ok(Outcome::Said(said));
        }
        let mut outcome = self.attempt().await?;
        if let Outcome::Said(OrderPlace::Short(short)) = &outcome
            && self.gives_back_what_is_short(short).await
        {
            outcome = self.attempt().await?;
        }
        // It may be short of what another attempt at the same order has put aside, and that may have been committed since.
        if let Outcome::Said(OrderPlace::Short(_)) = &outcome
            && let Ok(Some(said)) = self.said_before().await
        {
            return Ok(Outcome::Said(said));
        }
        Ok(outcome)
    }

    async fn attempt(&self) -> Result<Outcome<'_>, StoreError> {
        Attempt::new(self.store(), &self.wish, self.counter.order_deadline)?.run().await
    }

    /// What is answered to an order that was placed before under its name.
    async fn said_before(&self) -> Result<Option<OrderPlace>, StoreError> {
        if !self.is_named {
            return Ok(None);
        }
        match self.store().order_find(&self.wish.id).await? {
            None => Ok(None),
            Some(order) if !order.is(&self.wish) => Ok(Some(OrderPlace::RequestReused)),
            Some(order) => {
                let seqs = complete(self.store(), &self.wish.id, &order).await?;
                Ok(Some(OrderPlace::AlreadyPlaced { seqs }))
            }
        }
    }

    /// Resolves the doubts in the partitions of what is short; whether anything went back on the shelf. Whoever cannot be
    /// asked leaves the denial as it is.
    async fn gives_back_what_is_short(&self, short: &[Shortage]) -> bool {
        let partition = |short: &Shortage| self.wish.items().get(short.item).map(|item| &item.sku);
        let skus = short.iter().filter_map(partition);
        let mut partitions: Vec<_> = skus.map(|sku| self.store().partition_of(sku.home())).collect();
        partitions.sort_unstable();
        partitions.dedup();
        let mut given_back = 0;
        for partition in partitions {
            given_back += resolve_in(self.store(), partition).await.given_back;
        }
        given_back > 0
    }
}

/// Makes an order that was committed, by whomever, what it is to be, and tells its numbers.
pub(super) async fn complete(
    store: &dyn Store,
    id: &Name,
    order: &CommittedOrder,
) -> Result<Vec<u64>, StoreError> {
    if let Some(seqs) = &order.seqs {
        return Ok(seqs.clone());
    }
    let mut seqs = vec![0; order.items.len()];
    for part in parts_of(store, id, order.attempt, &order.user, &order.items)? {
        let confirmed = confirm_part(store, &Sending::once(), &part, &mut seqs).await;
        confirmed.map_err(|why| placed_but(id, &why))?;
    }
    note(store, id, order.attempt, seqs.clone()).await;
    Ok(seqs)
}

pub(super) async fn confirm_part(
    store: &dyn Store,
    sending: &Sending,
    part: &OrderPart,
    seqs: &mut [u64],
) -> Result<(), StoreError> {
    let settled = store.order_settle(sending, part, Settlement::Confirm).await?;
    let OrderSettle::Confirmed { seqs: of_part } = settled else { return Err(is_gone(part, &settled)) };
    for (item, seq) in part.items().iter().zip(of_part) {
        if let Some(place) = seqs.get_mut(item.place) {
            *place = seq;
        }
    }
    Ok(())
}

/// Writes the numbers into the order's record. Best effort: until it is done, whoever asks for the order settles it again,
/// which is harmless, and the record is kept for longer.
async fn note(store: &dyn Store, id: &Name, attempt: Token, seqs: Vec<u64>) {
    let _ = store.order_decide(&Sending::once(), id, attempt, &OrderDecision::Settled { seqs }).await;
}

/// The error for an order that is placed, but whose numbers are not known.
pub(super) fn placed_but(id: &Name, why: &StoreError) -> StoreError {
    StoreError::UnknownOutcome(format!(
        "the order {id:?} is placed, but the numbers of its grants could not be read; placing it again under this name, or \
         asking for its status, tells them ({why})"
    ))
}

/// The error for what was put aside, committed, and is not there any more.
fn is_gone(part: &OrderPart, settled: &OrderSettle) -> StoreError {
    tracing::error!(order = %part.order, ?settled, "what was put aside for a committed order is not there any more");
    StoreError::UnknownOutcome(format!(
        "what was put aside for it is not there any more ({settled:?}): it was settled more than a day ago, or the store has \
         lost it"
    ))
}
