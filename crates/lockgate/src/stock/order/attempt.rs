//! One try to place an order over several partitions: see [`across`](super::across).

use std::collections::BTreeMap;
use std::time::Duration;

use super::across::{complete, confirm_part, placed_but};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    HoldId, OrderDecision, OrderItem, OrderPart, OrderPlace, OrderReserve, OrderVerdict, OrderWish, PartItem,
    Sending, Settlement, Shortage, Store, Token,
};

/// What came of an attempt.
pub(super) enum Outcome<'a> {
    /// It was committed, and all of it is granted. The numbers are to be noted.
    Placed { attempt: Token, seqs: Vec<u64> },
    /// This is to be said, and nothing is left to do.
    Said(OrderPlace),
    /// It will never be committed, because the store did not answer. What it has put aside is to be given back, which may
    /// take as long again: nobody should have to wait for it.
    Failed { attempt: Attempt<'a>, why: StoreError },
}

/// See the [module](self).
pub(super) struct Attempt<'a> {
    store: &'a dyn Store,
    wish: &'a OrderWish,
    name: Token,
    items: Vec<(OrderItem, HoldId)>,
    parts: Vec<OrderPart>,
    /// How many of the parts may be put aside.
    tried: usize,
    doubt_after: Duration,
    /// All its calls are sent from one slot. So in each partition, what comes later makes what got stuck on its way a late
    /// copy: a reservation cannot come after its own cancellation.
    next_number: u64,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        wish: &'a OrderWish,
        doubt_after: Duration,
    ) -> Result<Self, StoreError> {
        let name = Token::random();
        let items: Vec<_> = wish.items().iter().map(|item| (item.clone(), HoldId::random())).collect();
        let parts = parts_of(store, &wish.id, name, &wish.user, &items)?;
        Ok(Self { store, wish, name, items, parts, tried: 0, doubt_after, next_number: 1 })
    }

    fn sending(&mut self) -> Sending {
        let number = self.next_number;
        self.next_number += 1;
        Sending { process: self.name, slot: 0, number }
    }

    pub(super) async fn run(mut self) -> Result<Outcome<'a>, StoreError> {
        match self.reserve().await {
            Ok(Ok(reserved_at)) => self.commit(reserved_at).await,
            Ok(Err(denied)) => {
                self.give_back().await;
                Ok(Outcome::Said(denied))
            }
            Err(why) => Ok(self.failed(&why)),
        }
    }

    /// Puts everything aside, partition by partition, and says when the first of it was; or what denies it. Once something
    /// denies it, the other partitions are only asked, so that the answer is that of one step.
    async fn reserve(&mut self) -> Result<Result<Timestamp, OrderPlace>, StoreError> {
        let (mut reserved_at, mut denials) = (Timestamp::from_micros(u64::MAX), Denials::default());
        for part in self.parts.clone() {
            let doubt_after = denials.is_empty().then_some(self.doubt_after);
            self.tried += usize::from(doubt_after.is_some());
            match self.store.order_reserve(&self.sending(), &part, doubt_after).await? {
                OrderReserve::Reserved { at } => reserved_at = reserved_at.min(at),
                OrderReserve::Available => {}
                denied => denials.add(denied),
            }
        }
        Ok(denials.into_answer().map_or(Ok(reserved_at), Err))
    }

    async fn commit(mut self, reserved_at: Timestamp) -> Result<Outcome<'a>, StoreError> {
        let (user, items) = (self.wish.user.clone(), self.items.clone());
        match self.decide(&OrderDecision::Commit { user, items, reserved_at }).await {
            Ok(verdict) => self.carry_out(verdict).await,
            // It may have been committed all the same: only its record knows.
            Err(why) => match self.decide(&OrderDecision::Abort).await {
                Ok(OrderVerdict::Aborted) => Ok(self.failed(&why)),
                Ok(verdict) => self.carry_out(verdict).await,
                Err(_) => Err(why),
            },
        }
    }

    async fn decide(&mut self, decision: &OrderDecision) -> Result<OrderVerdict, StoreError> {
        self.store.order_decide(&self.sending(), &self.wish.id, self.name, decision).await
    }

    async fn carry_out(mut self, verdict: OrderVerdict) -> Result<Outcome<'a>, StoreError> {
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
    pub(super) async fn give_back(&mut self) {
        for place in 0..self.tried {
            let sending = self.sending();
            let _ = self.store.order_settle(&sending, &self.parts[place], Settlement::Cancel).await;
        }
    }

    /// Of an attempt that nobody will commit.
    fn failed(self, why: &StoreError) -> Outcome<'a> {
        Outcome::Failed { attempt: self, why: not_placed(why) }
    }
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
            OrderReserve::Recovering { item } => (item, OrderPlace::Recovering { item }),
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
pub(super) fn parts_of(
    store: &dyn Store,
    id: &Name,
    attempt: Token,
    user: &Name,
    items: &[(OrderItem, HoldId)],
) -> Result<Vec<OrderPart>, StoreError> {
    let mut by_partition: BTreeMap<u16, Vec<PartItem>> = BTreeMap::new();
    for (place, (item, hold)) in items.iter().enumerate() {
        let part = by_partition.entry(store.partition_of(item.sku.home())).or_default();
        part.push(PartItem { place, item: item.clone(), hold: *hold });
    }
    let part = |items| OrderPart::new(id.clone(), attempt, user.clone(), items);
    Ok(by_partition.into_values().map(part).collect::<Result<_, _>>()?)
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
