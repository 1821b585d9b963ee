//! An order: several articles, all or nothing.

mod across;
mod attempt;
mod doubts;

pub(crate) use self::doubts::resolve_all;

use std::sync::Arc;

use super::campaign::{Handle, campaign_methods};
use super::{Counter, OrderPlace, OrderStatus};
use crate::coalesce::Meter as _;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Campaign, CampaignKind, OrderItem, OrderWish, Token};

/// An article, to be taken in orders. Made by [`Gate::sku`](crate::Gate::sku).
#[derive(Clone, Debug)]
pub struct Sku {
    handle: Handle,
}

impl Sku {
    pub(crate) fn new(counter: Arc<Counter>, name: Name, group: Option<Name>) -> Self {
        let campaign = Campaign { group, ..Campaign::new(CampaignKind::Sku, name) };
        Self { handle: Handle::new(counter, campaign) }
    }

    campaign_methods!();

    /// What was ordered as `id`, in an order that took from this article's partition only, or in one over several partitions
    /// of a cluster; `None` when nothing was, or more than 24 hours ago.
    ///
    /// # Errors
    ///
    /// When the id is empty or longer than 16 KiB, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing but an order over several partitions that was placed by a process which died before it had all its
    /// numbers: it is given them, to the end or not.
    pub async fn order_status(&self, id: impl AsRef<str>) -> Result<Option<OrderStatus>, StoreError> {
        let (store, id) = (self.handle.counter.store(), Name::new("order", id)?);
        let here = store.order_read(self.handle.campaign.home(), &id).await?;
        if here.is_some() || store.partitions() == 1 {
            return Ok(here);
        }
        let Some(order) = store.order_find(&id).await? else { return Ok(None) };
        let seqs = across::complete(store, &id, &order).await?;
        let items = order.items.into_iter().map(|(item, _)| item).zip(seqs).collect();
        Ok(Some(OrderStatus { user: order.user, items }))
    }
}

/// Several articles, all or nothing. Made by [`Gate::order`](crate::Gate::order).
///
/// Two orders for the same articles in another order cannot block each other: nothing waits for anything. Where all articles
/// live in one partition (always, but on a cluster), there is no moment at which an order has taken some of them and not the
/// others. Over several partitions of a cluster an order is all or nothing too, but not one step: it is placed by several
/// calls, and for that time what it wants is put aside. [`Gate::sku_of`](crate::Gate::sku_of) keeps articles together.
///
/// ```
/// use lockgate::{Gate, stock::{OrderPlace, Terms}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let (shirt, socks) = (gate.sku("shirt")?, gate.sku("socks")?);
/// shirt.open(&Terms::new(5)?).await?;
/// socks.open(&Terms::new(1)?).await?;
/// let placed = gate.order("alice")?.item(&shirt, 1).item(&socks, 1).place().await?;
/// assert_eq!(placed, OrderPlace::Placed { seqs: vec![1, 1] });
/// let denied = gate.order("bob")?.item(&socks, 1).item(&shirt, 1).place().await?;
/// assert!(matches!(denied, OrderPlace::Short(_)));
/// assert_eq!(shirt.status().await?.map(|shirt| shirt.remaining()), Some(4), "nothing was taken");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an order does nothing until it is placed"]
pub struct Order {
    counter: Arc<Counter>,
    id: Option<Name>,
    user: Name,
    items: Vec<OrderItem>,
}

impl Order {
    pub(crate) fn new(counter: Arc<Counter>, user: Name) -> Self {
        Self { counter, id: None, user, items: Vec::new() }
    }

    /// So many of one article. What is mentioned several times is added up.
    pub fn item(mut self, sku: &Sku, quantity: u64) -> Self {
        self.items.push(OrderItem { sku: sku.handle.campaign.clone(), quantity });
        self
    }

    /// Gives the order an id of your own (an idempotency key): placed again within 24 hours, it answers
    /// [`OrderPlace::AlreadyPlaced`] and takes nothing. Only orders that happened are remembered. On a cluster, an id is known
    /// in the partition of the order's articles; that of an order over several partitions, to all of that kind.
    ///
    /// # Errors
    ///
    /// When the id is empty or longer than 16 KiB.
    pub fn named(mut self, id: impl AsRef<str>) -> Result<Self, StoreError> {
        self.id = Some(Name::new("order", id)?);
        Ok(self)
    }

    /// Takes all of it, or nothing. The answer speaks of items by their place after sorting and adding up:
    /// [`Order::sorted`] tells which they are.
    ///
    /// # Errors
    ///
    /// When there is nothing in it, more than [`MAX_ORDER_ITEMS`](super::MAX_ORDER_ITEMS) different articles, or a quantity of
    /// zero; or when the store did not answer. Over several partitions of a cluster, also when it took longer than
    /// [`Config::order_deadline`](crate::config::Config::order_deadline) and was called off; and an
    /// [`UnknownOutcome`](StoreError::UnknownOutcome) may say that the order is placed and only its numbers are missing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; an order with a [name](Self::named) can be placed again to find out.
    /// An order over several partitions goes on in a task of its own, so it never stops half way.
    pub async fn place(&self) -> Result<OrderPlace, StoreError> {
        let wish = self.wish()?;
        if across::is_across(self.counter.store(), &wish) {
            let answer = across::place(&self.counter, wish, self.id.is_some()).await?;
            self.counter.ordering.meter().count(std::slice::from_ref(&answer));
            return Ok(answer);
        }
        self.counter.ordering.ask(wish).await
    }

    /// The articles by name, each once, in the order in which the answer speaks of them.
    ///
    /// # Errors
    ///
    /// As [`Order::place`].
    pub fn sorted(&self) -> Result<Vec<(Name, u64)>, StoreError> {
        Ok(self.wish()?.items().iter().map(|item| (item.sku.name.clone(), item.quantity)).collect())
    }

    fn wish(&self) -> Result<OrderWish, StoreError> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => Name::new("order", Token::random().to_string())?,
        };
        Ok(OrderWish::new(id, self.user.clone(), self.items.clone())?)
    }
}
