//! An order: several articles, all or nothing.

use std::sync::Arc;

use super::campaign::{Handle, campaign_methods};
use super::{Counter, OrderPlace, OrderStatus};
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
        Self { handle: Handle { counter, campaign } }
    }

    campaign_methods!();

    /// What was ordered as `id`, in an order that took from this article's partition; `None` when nothing was, or more than
    /// 24 hours ago.
    ///
    /// # Errors
    ///
    /// When the id is empty or longer than 16 KiB, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn order_status(&self, id: impl AsRef<str>) -> Result<Option<OrderStatus>, StoreError> {
        let id = Name::new("order", id)?;
        self.handle.counter.store().order_read(self.handle.campaign.home(), &id).await
    }
}

/// Several articles, all or nothing. Made by [`Gate::order`](crate::Gate::order).
///
/// Two orders for the same articles in another order cannot block each other: there is no moment at which an order has
/// taken some of its articles and not the others.
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
    /// [`OrderPlace::AlreadyPlaced`] and takes nothing. Only orders that happened are remembered.
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
    /// zero; when the articles do not live in one partition of a cluster (give them one group:
    /// [`Gate::sku_of`](crate::Gate::sku_of)); or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; an order with a [name](Self::named) can be placed again to find out.
    pub async fn place(&self) -> Result<OrderPlace, StoreError> {
        self.counter.ordering.ask(self.wish()?).await
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
        let wish = OrderWish::new(id, self.user.clone(), self.items.clone())?;
        let partition = |item: &OrderItem| self.counter.store().partition_of(&item.sku);
        if wish.items().iter().any(|item| partition(item) != partition(&wish.items()[0])) {
            return Err(not_in_one_partition());
        }
        Ok(wish)
    }
}

fn not_in_one_partition() -> StoreError {
    let problem = "the articles do not live in one partition of the cluster; give them one group";
    StoreError::InvalidInput(crate::error::InvalidInput::new("items", problem))
}
