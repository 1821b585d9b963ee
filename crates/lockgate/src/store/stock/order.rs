//! Orders: several articles, all or nothing.

use super::deal::check_wanted;
use super::{Campaign, CampaignKind};
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// How many different articles one order may have.
pub const MAX_ORDER_ITEMS: usize = 1_000;

/// So many of one article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderItem {
    /// Which.
    pub sku: Campaign,
    /// How many: at least one.
    pub quantity: u64,
}

/// Somebody wants several articles, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderWish {
    /// The order's name, chosen by whoever places it: placed again within [`REQUEST_KEPT`](super::REQUEST_KEPT), it is
    /// answered again and not decided again. Only orders that happened are remembered.
    pub id: Name,
    /// Who.
    pub user: Name,
    /// What: every article once, sorted.
    items: Vec<OrderItem>,
}

impl OrderWish {
    /// An order. What is mentioned several times is added up, and the order of mention does not matter.
    ///
    /// # Errors
    ///
    /// When there is nothing in it, more than [`MAX_ORDER_ITEMS`] different articles, an article that is none, a quantity of
    /// zero or a sum that cannot be counted.
    pub fn new(id: Name, user: Name, items: Vec<OrderItem>) -> Result<Self, InvalidInput> {
        let mut merged: Vec<OrderItem> = Vec::with_capacity(items.len());
        let mut sorted = items;
        sorted.sort_by(|one, other| one.sku.cmp(&other.sku));
        for item in sorted {
            check_wanted(item.quantity)?;
            if item.sku.kind != CampaignKind::Sku {
                return Err(InvalidInput::new(
                    "items",
                    "must be articles: coupons and deals are not ordered",
                ));
            }
            match merged.last_mut().filter(|last| last.sku == item.sku) {
                Some(last) => {
                    last.quantity = last.quantity.saturating_add(item.quantity);
                    check_wanted(last.quantity)?;
                }
                None => merged.push(item),
            }
        }
        match merged.len() {
            0 => Err(InvalidInput::new("items", "must not be empty")),
            1..=MAX_ORDER_ITEMS => Ok(Self { id, user, items: merged }),
            many => {
                let problem =
                    format!("{many} different articles in one order; at most {MAX_ORDER_ITEMS} are allowed");
                Err(InvalidInput::new("items", problem))
            }
        }
    }

    /// What is wanted: every article once, sorted.
    #[must_use]
    pub fn items(&self) -> &[OrderItem] {
        &self.items
    }
}

/// An article of which too few are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Its place in [`OrderWish::items`].
    pub item: usize,
    /// How many were asked for.
    pub requested: u64,
    /// How many are left.
    pub available: u64,
}

/// The answer to one order. A denial is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderPlace {
    /// All of it is the user's now.
    Placed {
        /// The number of the grant of each item, in the order of [`OrderWish::items`].
        seqs: Vec<u64>,
    },
    /// This order was placed before.
    AlreadyPlaced {
        /// The numbers of then.
        seqs: Vec<u64>,
    },
    /// The same id came before with another user or other items.
    RequestReused,
    /// Too few are left of these; nothing was taken.
    Short(Vec<Shortage>),
    /// This item's article opens later.
    NotOpen {
        /// Its place in [`OrderWish::items`].
        item: usize,
        /// When.
        opens_at: Timestamp,
    },
    /// Somebody has paused this item's article.
    Paused {
        /// Its place in [`OrderWish::items`].
        item: usize,
    },
    /// The time of this item's article is over.
    Closed {
        /// Its place in [`OrderWish::items`].
        item: usize,
    },
    /// There is no such article.
    Unknown {
        /// Its place in [`OrderWish::items`].
        item: usize,
    },
    /// The same of this item's article: the server behind the store has changed, and it is being looked at whether
    /// something is missing.
    Recovering {
        /// Its place in [`OrderWish::items`].
        item: usize,
    },
}

/// An order that was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderStatus {
    /// Who placed it.
    pub user: Name,
    /// What was taken, with the number of each grant.
    pub items: Vec<(OrderItem, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(sku: &str, quantity: u64) -> OrderItem {
        let sku = Campaign::new(CampaignKind::Sku, Name::new("sku", sku).unwrap());
        OrderItem { sku, quantity }
    }

    fn order(items: Vec<OrderItem>) -> Result<OrderWish, InvalidInput> {
        OrderWish::new(Name::new("id", "o").unwrap(), Name::new("user", "u").unwrap(), items)
    }

    #[test]
    fn what_is_mentioned_several_times_is_added_up_and_sorted() {
        let five_times = order(vec![item("b", 1), item("a", 2), item("b", 3), item("b", 1), item("b", 1)]);
        assert_eq!(five_times.unwrap().items(), [item("a", 2), item("b", 6)]);
        assert_eq!(
            order(vec![item("2", 1), item("1", 1)]).unwrap(),
            order(vec![item("1", 1), item("2", 1)]).unwrap()
        );
    }

    #[test]
    fn orders_that_make_no_sense_cannot_be_made() {
        assert!(order(vec![]).is_err());
        assert!(order(vec![item("a", 0)]).is_err());
        assert!(order(vec![item("a", super::super::MAX_QUANTITY), item("a", 1)]).is_err());
        assert!(order((0..=MAX_ORDER_ITEMS).map(|sku| item(&sku.to_string(), 1)).collect()).is_err());
        assert!(order((0..10_000).map(|sku| item(&(sku % 1_000).to_string(), 1)).collect()).is_ok());
        let mut coupon = item("a", 1);
        coupon.sku.kind = CampaignKind::Coupon;
        assert!(order(vec![coupon]).is_err());
    }
}
