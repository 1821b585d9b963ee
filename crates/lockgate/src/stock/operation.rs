//! The operations whose callers share calls.

use super::metrics::Metrics;
use crate::coalesce::Operation;
use crate::key::Name;
use crate::store::{
    Answer, Campaign, HoldPlace, HoldSettle, HoldWish, Issue, IssueWish, OrderPlace, OrderWish, Purchase,
    PurchaseWish, Revoke, RevokeWish, Sending, SettleWish, Store,
};

macro_rules! operations {
    ($($operation:ident = $number:literal: $wish:ty => $said:ty, $method:ident, $campaign:ident, $meter:ty;)+) => {
        $(
            pub(crate) struct $operation;

            impl Operation for $operation {
                type Wish = $wish;
                type Said = $said;
                type Wanted = Campaign;
                type Meter = $meter;
                const NUMBER: u16 = $number;

                fn wanted(wish: &Self::Wish) -> &Campaign {
                    &wish.$campaign
                }

                fn home(wanted: &Campaign) -> &Name {
                    wanted.home()
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
    Issuing = 0: IssueWish => Issue, coupon_issue, coupon, Metrics<Issue>;
    Purchasing = 1: PurchaseWish => Purchase, deal_purchase, deal, Metrics<Purchase>;
    Holding = 2: HoldWish => HoldPlace, hold_place, campaign, Metrics<HoldPlace>;
    Settling = 3: SettleWish => HoldSettle, hold_settle, campaign, Metrics<HoldSettle>;
    Revoking = 4: RevokeWish => Revoke, grant_revoke, campaign, ();
}

pub(crate) struct Ordering;

impl Operation for Ordering {
    type Wish = OrderWish;
    type Said = OrderPlace;
    type Wanted = Campaign;
    type Meter = Metrics<OrderPlace>;
    const NUMBER: u16 = 5;

    fn wanted(wish: &OrderWish) -> &Campaign {
        // An order without items cannot be made.
        &wish.items()[0].sku
    }

    fn home(wanted: &Campaign) -> &Name {
        wanted.home()
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
