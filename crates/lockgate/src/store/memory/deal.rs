//! The deal operations, in memory.

use super::shelf::Shelf;
use super::stock::Stock;
use crate::clock::Timestamp;
use crate::store::{
    CampaignState, JournalChange, Purchase, PurchaseWish, Revoke, RevokeWish, UserShare, not_open,
};

pub(super) fn deal_purchase(stock: &mut Stock<'_>, wishes: &[PurchaseWish]) -> Vec<Purchase> {
    wishes.iter().map(|wish| purchase(stock, wish)).collect()
}

fn purchase(stock: &mut Stock<'_>, wish: &PurchaseWish) -> Purchase {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(&wish.deal, journal, *now) else { return Purchase::Unknown };
    if let Some(denied) = replay(shelf, wish).or_else(|| deny(shelf, *now, wish)) {
        return denied;
    }
    let seq = shelf.counts.seq + 1;
    let (user, quantity, request) = (wish.user.clone(), wish.quantity, wish.request.clone());
    let pass = shelf.used_pass(wish.pass.as_ref());
    shelf.record(journal, *now, JournalChange::Bought { seq, user, quantity, request, pass });
    let purchased = shelf.share_of(&wish.user).granted;
    Purchase::Bought { seq, purchased, remaining: shelf.remaining() }
}

fn replay(shelf: &Shelf, wish: &PurchaseWish) -> Option<Purchase> {
    let before = shelf.request(wish.request.as_ref()?)?;
    if before.user != wish.user || before.quantity != wish.quantity {
        return Some(Purchase::RequestReused);
    }
    let (seq, purchased, remaining) = (before.seq, before.purchased, before.remaining);
    Some(Purchase::AlreadyBought { seq, purchased, remaining })
}

fn deny(shelf: &Shelf, now: Timestamp, wish: &PurchaseWish) -> Option<Purchase> {
    let denied = match shelf.state(now) {
        CampaignState::Scheduled => Purchase::NotOpen { opens_at: not_open(&shelf.terms) },
        CampaignState::Paused => Purchase::Paused,
        CampaignState::Closed => Purchase::Closed,
        CampaignState::Recovering => Purchase::Recovering,
        CampaignState::Open | CampaignState::SoldOut => {
            let denied = shelf.deny_pass(wish.pass.as_ref(), &wish.user, now).map(Purchase::from);
            return denied.or_else(|| deny_for_want(shelf, wish));
        }
    };
    Some(denied)
}

fn deny_for_want(shelf: &Shelf, wish: &PurchaseWish) -> Option<Purchase> {
    let UserShare { granted, held, .. } = shelf.share_of(&wish.user);
    let (taken, remaining) = (granted + held, shelf.remaining());
    match shelf.terms.per_user {
        Some(per_user) if taken.saturating_add(wish.quantity) > per_user => {
            Some(Purchase::LimitExceeded { taken, per_user })
        }
        _ => (remaining < wish.quantity).then_some(Purchase::SoldOut { remaining }),
    }
}

pub(super) fn grant_revoke(stock: &mut Stock<'_>, wishes: &[RevokeWish]) -> Vec<Revoke> {
    wishes.iter().map(|wish| revoke(stock, wish)).collect()
}

fn revoke(stock: &mut Stock<'_>, wish: &RevokeWish) -> Revoke {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(&wish.campaign, journal, *now) else { return Revoke::Unknown };
    let Some(quantity) = shelf.granted_to(&wish.user, wish.seq) else { return Revoke::NotGranted };
    shelf.record(journal, *now, JournalChange::Revoked { seq: wish.seq, user: wish.user.clone(), quantity });
    Revoke::Revoked { remaining: shelf.remaining() }
}
