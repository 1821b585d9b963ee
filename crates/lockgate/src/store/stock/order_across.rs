//! Orders whose articles live in several partitions.
//!
//! **Promise:** all or nothing, whoever dies at whatever step, whatever answer gets lost, however many place the same order
//! at once.
//!
//! No step can touch two partitions, so each try to place such an order is an **attempt** with a name of its own:
//!
//! ```text
//! order_reserve   in each partition: what the order wants there is put aside, all of it or nothing
//! order_decide    in the partition of the order's id: the attempt is committed, or aborted, for ever
//! order_settle    in each partition: what was put aside becomes grants, or goes back
//! ```
//!
//! What is put aside never goes back by itself: that would be a decision, and the only place where an attempt is decided is
//! the order's record. When its time is over it is in **doubt**, and whoever sees it asks for the attempt to be aborted;
//! if it was committed by then, the answer says so, and the part is confirmed.

#[cfg(feature = "redis")]
use std::time::Duration;

use super::deal::check_wanted;
use super::{CampaignKind, HoldId, MAX_ORDER_ITEMS, OrderItem, OrderWish, Shortage};
use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;
use crate::store::Token;

/// For how long after its first reservation an attempt can be committed. Far shorter than that an abortion is remembered:
/// so no attempt is committed because its abortion was forgotten.
#[cfg(feature = "redis")]
pub(crate) const COMMIT_WITHIN: Duration = Duration::from_secs(60 * 60);

/// For how long the record of an order is kept that nobody has said to be settled. Far longer than anybody leaves a part in
/// doubt: without the record, a committed part would be taken for an aborted one.
#[cfg(feature = "redis")]
pub(crate) const UNSETTLED_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// One item of an order, and the hold by which it is put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartItem {
    /// Its place in [`OrderWish::items`].
    pub place: usize,
    /// So many of what.
    pub item: OrderItem,
    /// The hold, named by whoever places the order.
    pub hold: HoldId,
}

/// What one attempt to place an order wants of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPart {
    /// The order's name.
    pub order: Name,
    /// Which attempt to place it.
    pub attempt: Token,
    /// For whom.
    pub user: Name,
    /// What: every article once.
    items: Vec<PartItem>,
}

impl OrderPart {
    /// A part of an order.
    ///
    /// # Errors
    ///
    /// When there is nothing in it, more than [`MAX_ORDER_ITEMS`], something that is no article, an article twice or a
    /// quantity of zero.
    pub fn new(order: Name, attempt: Token, user: Name, items: Vec<PartItem>) -> Result<Self, InvalidInput> {
        let mut skus: Vec<_> = items.iter().map(|item| &item.item.sku).collect();
        skus.sort_unstable();
        let is_repeated = skus.windows(2).any(|two| two[0] == two[1]);
        if is_repeated || skus.iter().any(|sku| sku.kind != CampaignKind::Sku) {
            return Err(InvalidInput::new("items", "must be articles, each once"));
        }
        items.iter().try_for_each(|item| check_wanted(item.item.quantity))?;
        if items.is_empty() || items.len() > MAX_ORDER_ITEMS {
            return Err(InvalidInput::new("items", format!("must be 1 to {MAX_ORDER_ITEMS}")));
        }
        Ok(Self { order, attempt, user, items })
    }

    /// What is wanted, with the places that these items have in the whole order.
    #[must_use]
    pub fn items(&self) -> &[PartItem] {
        &self.items
    }
}

/// What came of putting a part aside. A denial is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderReserve {
    /// All of it is put aside, or was before.
    Reserved {
        /// When, by the store's clock.
        at: Timestamp,
    },
    /// All of it could be put aside; it was only asked.
    Available,
    /// Too few are left of these; nothing was put aside.
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

/// What is to be decided about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderDecision {
    /// It is what was ordered. All of it is put aside.
    Commit {
        /// For whom.
        user: Name,
        /// What, in the order of [`OrderWish::items`], with the holds by which it is put aside.
        items: Vec<(OrderItem, HoldId)>,
        /// When the first of it was put aside.
        reserved_at: Timestamp,
    },
    /// It is to be called off, if it was not committed before.
    Abort,
    /// It was committed, and all of it is granted under these numbers: nothing is left to do about it. From now on the
    /// order is remembered for [`REQUEST_KEPT`](super::REQUEST_KEPT).
    Settled {
        /// In the order of [`OrderWish::items`].
        seqs: Vec<u64>,
    },
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderVerdict {
    /// This attempt is what was ordered. It cannot be called off any more.
    Committed(CommittedOrder),
    /// Nothing comes of this attempt, ever.
    Aborted,
    /// Nor of this, because another attempt has ordered the same before.
    AlreadyCommitted(CommittedOrder),
    /// Nor of this, because something else was ordered under the same id, or by somebody else.
    RequestReused,
    /// There is no record (any more) of the order that is said to be settled.
    Unknown,
}

/// An order that was committed over several partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedOrder {
    /// By which attempt.
    pub attempt: Token,
    /// For whom.
    pub user: Name,
    /// What, in the order of [`OrderWish::items`], with the holds by which it was put aside.
    pub items: Vec<(OrderItem, HoldId)>,
    /// The number of each grant, once somebody has said that all of it is settled.
    pub seqs: Option<Vec<u64>>,
}

impl CommittedOrder {
    /// Whether it is the order that is wanted.
    #[must_use]
    pub fn is(&self, wish: &OrderWish) -> bool {
        self.user == wish.user && self.items.iter().map(|(item, _)| item).eq(wish.items())
    }
}

/// What came of settling a part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderSettle {
    /// All of it is granted, or was before.
    Confirmed {
        /// The number of the grant of each item of the part.
        seqs: Vec<u64>,
    },
    /// All of it is back on the shelf, or was before, or was never put aside.
    Cancelled,
    /// Some of it was confirmed before, so it cannot be cancelled.
    AlreadyConfirmed,
    /// Some of it was cancelled before, so it cannot be confirmed.
    AlreadyCancelled,
    /// Some of it was never put aside (or was settled more than [`REQUEST_KEPT`](super::REQUEST_KEPT) ago), so it cannot
    /// be confirmed.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Campaign;

    fn item(kind: CampaignKind, sku: &str) -> PartItem {
        let sku = Campaign::new(kind, Name::new("sku", sku).unwrap());
        PartItem { place: 0, item: OrderItem { sku, quantity: 1 }, hold: HoldId::random() }
    }

    #[test]
    fn parts_that_make_no_sense_cannot_be_made() {
        let name = |text| Name::new("name", text).unwrap();
        let part = |items| OrderPart::new(name("o"), Token::random(), name("u"), items);
        let sku = |text: &str| item(CampaignKind::Sku, text);
        assert!(part(vec![sku("b"), sku("a")]).is_ok());
        assert!(part(vec![]).is_err());
        assert!(part(vec![sku("a"), sku("b"), sku("a")]).is_err());
        assert!(part(vec![item(CampaignKind::Deal, "a")]).is_err());
        let mut nothing = sku("a");
        nothing.item.quantity = 0;
        assert!(part(vec![nothing]).is_err());
        assert!(part((0..=MAX_ORDER_ITEMS).map(|number| sku(&number.to_string())).collect()).is_err());
    }
}
