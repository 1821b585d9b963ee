//! The order operations, in memory.

use std::collections::{BTreeSet, HashMap};

use super::stock::Stock;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    CampaignState, JournalChange, OrderItem, OrderPlace, OrderStatus, OrderWish, REQUEST_KEPT, Shortage,
    not_open,
};

/// The orders that were placed lately.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Orders {
    known: HashMap<Name, Placed>,
    due: BTreeSet<(Timestamp, Name)>,
}

#[derive(Clone, Debug)]
struct Placed {
    user: Name,
    items: Vec<(OrderItem, u64)>,
    forget_at: Timestamp,
}

impl Orders {
    pub(in crate::store::memory) fn forget_old_ones(&mut self, now: Timestamp) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            // The same id may have been used again since.
            if let Some((at, id)) = self.due.pop_first()
                && self.known.get(&id).is_some_and(|placed| placed.forget_at == at)
            {
                self.known.remove(&id);
            }
        }
    }

    /// One item of an order was granted; all items come in one step.
    pub(in crate::store::memory) fn note(
        &mut self,
        at: Timestamp,
        id: &Name,
        user: &Name,
        item: OrderItem,
        seq: u64,
    ) {
        let forget_at = at + REQUEST_KEPT;
        let new = || Placed { user: user.clone(), items: Vec::new(), forget_at };
        let placed = self.known.entry(id.clone()).or_insert_with(new);
        if placed.forget_at != forget_at {
            *placed = new();
        }
        placed.items.push((item, seq));
        self.due.insert((forget_at, id.clone()));
    }
}

pub(super) fn order_place(stock: &mut Stock<'_>, orders: &[OrderWish]) -> Vec<OrderPlace> {
    stock.orders.forget_old_ones(stock.now);
    orders.iter().map(|order| place(stock, order)).collect()
}

fn place(stock: &mut Stock<'_>, order: &OrderWish) -> OrderPlace {
    if let Some(before) = stock.orders.known.get(&order.id) {
        return replay(before, order);
    }
    if let Some(denied) = deny(stock, order) {
        return denied;
    }
    let seqs = order.items().iter().map(|item| take(stock, order, item)).collect();
    OrderPlace::Placed { seqs }
}

fn replay(before: &Placed, order: &OrderWish) -> OrderPlace {
    let is_same = before.user == order.user && before.items.iter().map(|(item, _)| item).eq(order.items());
    if !is_same {
        return OrderPlace::RequestReused;
    }
    OrderPlace::AlreadyPlaced { seqs: before.items.iter().map(|(_, seq)| *seq).collect() }
}

fn deny(stock: &mut Stock<'_>, order: &OrderWish) -> Option<OrderPlace> {
    let Stock { shelves, journal, now, .. } = stock;
    let mut short = Vec::new();
    for (item, wanted) in order.items().iter().enumerate() {
        let Some(shelf) = shelves.at(&wanted.sku, journal, *now) else {
            return Some(OrderPlace::Unknown { item });
        };
        match shelf.state(*now) {
            CampaignState::Scheduled => {
                return Some(OrderPlace::NotOpen { item, opens_at: not_open(&shelf.terms) });
            }
            CampaignState::Paused => return Some(OrderPlace::Paused { item }),
            CampaignState::Closed => return Some(OrderPlace::Closed { item }),
            CampaignState::Recovering => return Some(OrderPlace::Recovering { item }),
            CampaignState::Open | CampaignState::SoldOut => {}
        }
        if shelf.remaining() < wanted.quantity {
            short.push(Shortage { item, requested: wanted.quantity, available: shelf.remaining() });
        }
    }
    (!short.is_empty()).then_some(OrderPlace::Short(short))
}

/// Takes one item; that it is there was checked for all of them before.
fn take(stock: &mut Stock<'_>, order: &OrderWish, item: &OrderItem) -> u64 {
    let Stock { shelves, journal, now, orders, .. } = stock;
    let Some(shelf) = shelves.at(&item.sku, journal, *now) else { return 0 };
    let (seq, user) = (shelf.counts.seq + 1, order.user.clone());
    let (quantity, request) = (item.quantity, Some(order.id.clone()));
    shelf.record(journal, *now, JournalChange::Bought { seq, user, quantity, request, pass: None });
    orders.note(*now, &order.id, &order.user, item.clone(), seq);
    seq
}

/// One partition holds everything here, so an order is found by its id alone.
pub(super) fn order_read(stock: &mut Stock<'_>, _home: &Name, id: &Name) -> Option<OrderStatus> {
    stock.orders.forget_old_ones(stock.now);
    let Placed { user, items, .. } = stock.orders.known.get(id)?.clone();
    Some(OrderStatus { user, items })
}
