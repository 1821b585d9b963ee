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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::doubts::resolve_in;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::stock::Counter;
use crate::store::{
    CommittedOrder, HoldId, OrderDecision, OrderItem, OrderPart, OrderPlace, OrderReserve, OrderSettle,
    OrderVerdict, OrderWish, PartItem, Sending, Settlement, Shortage, Store, Token,
};

/// After what time to come again when too many orders are under way.
const COME_AGAIN: Duration = Duration::from_millis(100);

/// Whether the items of an order live in several partitions.
pub(super) fn is_across(store: &dyn Store, wish: &OrderWish) -> bool {
    let mut partitions = wish.items().iter().map(|item| store.partition_of(&item.sku));
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

/// What one attempt came to.
enum Outcome {
    /// It was committed and all of it is granted.
    Placed { attempt: Token, seqs: Vec<u64> },
    /// Something else is to be said, and nothing is left to do.
    Said(OrderPlace),
}

impl Placing {
    async fn run(
        self,
        answer: oneshot::Sender<Result<OrderPlace, StoreError>>,
        _under_way: OwnedSemaphorePermit,
    ) {
        match self.place().await {
            Ok(Outcome::Said(said)) => drop(answer.send(Ok(said))),
            Err(why) => drop(answer.send(Err(why))),
            Ok(Outcome::Placed { attempt, seqs }) => {
                let _ = answer.send(Ok(OrderPlace::Placed { seqs: seqs.clone() }));
                note(self.store(), &self.wish.id, attempt, seqs).await;
            }
        }
    }

    fn store(&self) -> &dyn Store {
        self.counter.store()
    }

    async fn place(&self) -> Result<Outcome, StoreError> {
        if let Some(said) = self.said_before().await? {
            return Ok(Outcome::Said(said));
        }
        let first = self.attempt().await?;
        let Outcome::Said(OrderPlace::Short(short)) = &first else { return self.unless_placed(first).await };
        if self.gives_back_what_is_short(short).await {
            let second = self.attempt().await?;
            return self.unless_placed(second).await;
        }
        self.unless_placed(first).await
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

    /// A denial may come from what another attempt at the same order has put aside; if that one was committed meanwhile,
    /// the order is placed.
    async fn unless_placed(&self, outcome: Outcome) -> Result<Outcome, StoreError> {
        match &outcome {
            Outcome::Said(OrderPlace::Short(_)) => {
                Ok(self.said_before().await?.map_or(outcome, Outcome::Said))
            }
            _ => Ok(outcome),
        }
    }

    /// Resolves the doubts in the partitions of what is short; whether anything went back on the shelf. Whoever cannot be
    /// asked leaves the denial as it is.
    async fn gives_back_what_is_short(&self, short: &[Shortage]) -> bool {
        let partition = |short: &Shortage| self.wish.items().get(short.item).map(|item| &item.sku);
        let skus = short.iter().filter_map(partition);
        let mut partitions: Vec<_> = skus.map(|sku| self.store().partition_of(sku)).collect();
        partitions.sort_unstable();
        partitions.dedup();
        let mut given_back = 0;
        for partition in partitions {
            given_back += resolve_in(self.store(), partition).await.given_back;
        }
        given_back > 0
    }

    async fn attempt(&self) -> Result<Outcome, StoreError> {
        Attempt::new(self.store(), &self.wish, self.counter.order_deadline)?.run().await
    }
}

/// One try to place an order.
struct Attempt<'a> {
    store: &'a dyn Store,
    wish: &'a OrderWish,
    name: Token,
    items: Vec<(OrderItem, HoldId)>,
    parts: Vec<OrderPart>,
    doubt_after: Duration,
    /// All its calls are sent from one slot. So in each partition, what comes later makes what got stuck on its way a late
    /// copy: a reservation cannot overtake its own cancellation.
    next_number: u64,
}

impl<'a> Attempt<'a> {
    fn new(store: &'a dyn Store, wish: &'a OrderWish, doubt_after: Duration) -> Result<Self, StoreError> {
        let name = Token::random();
        let items: Vec<_> = wish.items().iter().map(|item| (item.clone(), HoldId::random())).collect();
        let parts = parts_of(store, &wish.id, name, &wish.user, &items)?;
        Ok(Self { store, wish, name, items, parts, doubt_after, next_number: 1 })
    }

    fn sending(&mut self) -> Sending {
        let number = self.next_number;
        self.next_number += 1;
        Sending { process: self.name, slot: 0, number }
    }

    async fn run(mut self) -> Result<Outcome, StoreError> {
        match self.reserve().await {
            Ok(Ok(reserved_at)) => self.commit(reserved_at).await,
            Ok(Err(denied)) => {
                self.give_back().await;
                Ok(Outcome::Said(denied))
            }
            Err(why) => {
                self.give_back().await;
                Err(not_placed(&why))
            }
        }
    }

    /// Puts everything aside, partition by partition, and says when the first of it was; or what denies it. Once something
    /// denies it, the other partitions are only asked, so that the answer is that of one step.
    async fn reserve(&mut self) -> Result<Result<Timestamp, OrderPlace>, StoreError> {
        let (mut reserved_at, mut denials) = (None, Denials::default());
        for part in self.parts.clone() {
            let doubt_after = denials.is_empty().then_some(self.doubt_after);
            match self.store.order_reserve(&self.sending(), &part, doubt_after).await? {
                OrderReserve::Reserved { at } => {
                    reserved_at = Some(reserved_at.map_or(at, |first| at.min(first)))
                }
                OrderReserve::Available => {}
                denied => denials.add(denied),
            }
        }
        Ok(denials.into_answer().map_or(Ok(reserved_at.unwrap_or(Timestamp::from_micros(0))), Err))
    }

    async fn commit(&mut self, reserved_at: Timestamp) -> Result<Outcome, StoreError> {
        let (user, items) = (self.wish.user.clone(), self.items.clone());
        match self.decide(&OrderDecision::Commit { user, items, reserved_at }).await {
            Ok(verdict) => self.carry_out(verdict).await,
            // It may have been committed all the same: only its record knows.
            Err(why) => match self.decide(&OrderDecision::Abort).await {
                Ok(OrderVerdict::Aborted) => {
                    self.give_back().await;
                    Err(not_placed(&why))
                }
                Ok(verdict) => self.carry_out(verdict).await,
                Err(_) => Err(why),
            },
        }
    }

    async fn decide(&mut self, decision: &OrderDecision) -> Result<OrderVerdict, StoreError> {
        self.store.order_decide(&self.sending(), &self.wish.id, self.name, decision).await
    }

    async fn carry_out(&mut self, verdict: OrderVerdict) -> Result<Outcome, StoreError> {
        if let OrderVerdict::Committed(_) = verdict {
            let seqs = self.confirm().await.map_err(|why| placed_but(&self.wish.id, &why))?;
            return Ok(Outcome::Placed { attempt: self.name, seqs });
        }
        self.give_back().await;
        match verdict {
            OrderVerdict::AlreadyCommitted(order) => {
                let seqs = complete(self.store, &self.wish.id, &order).await?;
                Ok(Outcome::Said(OrderPlace::AlreadyPlaced { seqs }))
            }
            OrderVerdict::RequestReused => Ok(Outcome::Said(OrderPlace::RequestReused)),
            _ => Err(StoreError::Unavailable(
                "placing the order took so long that it was called off (Config::order_deadline)".into(),
            )),
        }
    }

    async fn confirm(&mut self) -> Result<Vec<u64>, StoreError> {
        let mut seqs = vec![0; self.items.len()];
        for part in self.parts.clone() {
            confirm_part(self.store, &self.sending(), &part, &mut seqs).await?;
        }
        Ok(seqs)
    }

    /// Only of an attempt that nobody will commit. What cannot be given back now, somebody does when it is in doubt.
    async fn give_back(&mut self) {
        for part in self.parts.clone() {
            let _ = self.store.order_settle(&self.sending(), &part, Settlement::Cancel).await;
        }
    }
}

/// What denies an order, gathered from its partitions.
#[derive(Default)]
struct Denials {
    short: Vec<Shortage>,
    /// That of the first item which denies it for another reason than stock.
    first: Option<(usize, OrderPlace)>,
}

impl Denials {
    fn is_empty(&self) -> bool {
        self.short.is_empty() && self.first.is_none()
    }

    fn add(&mut self, denied: OrderReserve) {
        let (item, denied) = match denied {
            OrderReserve::Short(short) => return self.short.extend(short),
            OrderReserve::NotOpen { item, opens_at } => (item, OrderPlace::NotOpen { item, opens_at }),
            OrderReserve::Paused { item } => (item, OrderPlace::Paused { item }),
            OrderReserve::Closed { item } => (item, OrderPlace::Closed { item }),
            OrderReserve::Unknown { item } => (item, OrderPlace::Unknown { item }),
            OrderReserve::Reserved { .. } | OrderReserve::Available => return,
        };
        if self.first.as_ref().is_none_or(|(first, _)| item < *first) {
            self.first = Some((item, denied));
        }
    }

    /// As one step would say it: the first item that cannot be had at all, or else everything that is short.
    fn into_answer(mut self) -> Option<OrderPlace> {
        if self.is_empty() {
            return None;
        }
        self.short.sort_unstable_by_key(|short| short.item);
        Some(self.first.map_or(OrderPlace::Short(self.short), |(_, denied)| denied))
    }
}

/// What an attempt wants of each partition, by the number of the partition.
fn parts_of(
    store: &dyn Store,
    id: &Name,
    attempt: Token,
    user: &Name,
    items: &[(OrderItem, HoldId)],
) -> Result<Vec<OrderPart>, StoreError> {
    let mut by_partition: BTreeMap<u16, Vec<PartItem>> = BTreeMap::new();
    for (place, (item, hold)) in items.iter().enumerate() {
        let part = by_partition.entry(store.partition_of(&item.sku)).or_default();
        part.push(PartItem { place, item: item.clone(), hold: *hold });
    }
    let part = |items| OrderPart::new(id.clone(), attempt, user.clone(), items);
    Ok(by_partition.into_values().map(part).collect::<Result<_, _>>()?)
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

async fn confirm_part(
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

/// The error for an order that will never be placed.
fn not_placed(why: &StoreError) -> StoreError {
    match why {
        StoreError::UnknownOutcome(why) => StoreError::Unavailable(format!(
            "the order is not placed, and what was put aside for it goes back ({why})"
        )),
        other => other.clone(),
    }
}

/// The error for an order that is placed, but whose numbers are not known.
fn placed_but(id: &Name, why: &StoreError) -> StoreError {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn short(item: usize) -> Shortage {
        Shortage { item, requested: 2, available: 1 }
    }

    #[test]
    fn shortages_of_all_partitions_are_told_in_the_order_of_the_items() {
        let mut denials = Denials::default();
        denials.add(OrderReserve::Short(vec![short(1), short(4)]));
        denials.add(OrderReserve::Available);
        denials.add(OrderReserve::Short(vec![short(0), short(2)]));
        let told = OrderPlace::Short(vec![short(0), short(1), short(2), short(4)]);
        assert_eq!(denials.into_answer(), Some(told));
    }

    #[test]
    fn the_first_item_that_cannot_be_had_is_told_before_what_is_short() {
        let mut denials = Denials::default();
        denials.add(OrderReserve::Short(vec![short(0)]));
        denials.add(OrderReserve::Closed { item: 3 });
        denials.add(OrderReserve::Paused { item: 2 });
        denials.add(OrderReserve::Unknown { item: 5 });
        assert_eq!(denials.into_answer(), Some(OrderPlace::Paused { item: 2 }));
        assert_eq!(Denials::default().into_answer(), None);
    }
}
