//! The operations whose callers share calls.

use crate::store::{
    Answer, Campaign, HoldPlace, HoldSettle, HoldWish, Issue, IssueWish, OrderPlace, OrderWish, Purchase,
    PurchaseWish, Revoke, RevokeWish, Sending, SettleWish, Store,
};

/// One operation of the store that takes many wishes at once.
pub(super) trait Operation: Send + Sync + 'static {
    type Wish: Send + Sync + 'static;
    type Said: Send + 'static;
    /// Tells its slots from those of the other operations.
    const NUMBER: u16;

    /// Whose turn it is: callers of one campaign do not crowd out those of another.
    fn campaign(wish: &Self::Wish) -> &Campaign;

    /// As how many it counts in a batch.
    fn weight(_: &Self::Wish) -> usize {
        1
    }

    fn call<'a>(
        store: &'a dyn Store,
        sending: &'a Sending,
        wishes: &'a [Self::Wish],
    ) -> Answer<'a, Vec<Self::Said>>;
}

macro_rules! operations {
    ($($operation:ident = $number:literal: $wish:ty => $said:ty, $method:ident, $campaign:ident;)+) => {
        $(
            pub(super) struct $operation;

            impl Operation for $operation {
                type Wish = $wish;
                type Said = $said;
                const NUMBER: u16 = $number;

                fn campaign(wish: &Self::Wish) -> &Campaign {
                    &wish.$campaign
                }

                fn call<'a>(
                    store: &'a dyn Store,
                    sending: &'a Sending,
                    wishes: &'a [Self::Wish],
                ) -> Answer<'a, Vec<Self::Said>> {
                    store.$method(sending, wishes)
                }
            }
        )+
    };
}

operations! {
    Issuing = 0: IssueWish => Issue, coupon_issue, coupon;
    Purchasing = 1: PurchaseWish => Purchase, deal_purchase, deal;
    Holding = 2: HoldWish => HoldPlace, hold_place, campaign;
    Settling = 3: SettleWish => HoldSettle, hold_settle, campaign;
    Revoking = 4: RevokeWish => Revoke, grant_revoke, campaign;
}

pub(super) struct Ordering;

impl Operation for Ordering {
    type Wish = OrderWish;
    type Said = OrderPlace;
    const NUMBER: u16 = 5;

    fn campaign(wish: &OrderWish) -> &Campaign {
        // An order without items cannot be made.
        &wish.items()[0].sku
    }

    fn weight(wish: &OrderWish) -> usize {
        wish.items().len()
    }

    fn call<'a>(
        store: &'a dyn Store,
        sending: &'a Sending,
        wishes: &'a [OrderWish],
    ) -> Answer<'a, Vec<OrderPlace>> {
        store.order_place(sending, wishes)
    }
}
