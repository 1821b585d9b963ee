//! The hold operations, in memory.

use super::shelf::{Hold, Place, Shelf};
use super::stock::Stock;
use crate::clock::Timestamp;
use crate::store::{
    Campaign, CampaignKind, CampaignState, HoldId, HoldPlace, HoldSettle, HoldState, HoldStatus, HoldWish,
    JournalChange, SettleWish, Settlement, not_open,
};

pub(super) fn hold_place(stock: &mut Stock<'_>, wishes: &[HoldWish]) -> Vec<HoldPlace> {
    wishes.iter().map(|wish| place(stock, wish)).collect()
}

fn place(stock: &mut Stock<'_>, wish: &HoldWish) -> HoldPlace {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(&wish.campaign, journal, *now) else { return HoldPlace::Unknown };
    if let Some(denied) = replay(shelf, wish).or_else(|| deny(shelf, *now, wish)) {
        return denied;
    }
    let (id, user, quantity, expires_at) = (wish.id, wish.user.clone(), wish.quantity, *now + wish.ttl);
    let pass = shelf.used_pass(wish.pass.as_ref());
    shelf.record(journal, *now, JournalChange::Held { id, user, quantity, expires_at, pass });
    HoldPlace::Held { expires_at, remaining: shelf.remaining() }
}

fn replay(shelf: &Shelf, wish: &HoldWish) -> Option<HoldPlace> {
    let before = shelf.hold(wish.id)?;
    if before.user != wish.user || before.quantity != wish.quantity {
        return Some(HoldPlace::RequestReused);
    }
    Some(HoldPlace::Held { expires_at: before.expires_at, remaining: before.remaining })
}

fn deny(shelf: &Shelf, now: Timestamp, wish: &HoldWish) -> Option<HoldPlace> {
    let denied = match shelf.state(now) {
        CampaignState::Scheduled => HoldPlace::NotOpen { opens_at: not_open(&shelf.terms) },
        CampaignState::Paused => HoldPlace::Paused,
        CampaignState::Closed => HoldPlace::Closed,
        CampaignState::Recovering => HoldPlace::Recovering,
        CampaignState::Open | CampaignState::SoldOut => {
            let denied = deny_who_has_one(shelf, wish)
                .or_else(|| shelf.deny_pass(wish.pass.as_ref(), &wish.user, now).map(HoldPlace::from));
            return denied.or_else(|| deny_for_want(shelf, wish));
        }
    };
    Some(denied)
}

/// Before any pass is looked at: the one that it was had for is used.
fn deny_who_has_one(shelf: &Shelf, wish: &HoldWish) -> Option<HoldPlace> {
    match shelf.place_of(&wish.user) {
        Place::Issued(seq) => Some(HoldPlace::AlreadyIssued { seq }),
        Place::Free | Place::Held => None,
    }
}

fn deny_for_want(shelf: &Shelf, wish: &HoldWish) -> Option<HoldPlace> {
    let share = shelf.share_of(&wish.user);
    let (taken, remaining) = (share.granted + share.held, shelf.remaining());
    let limit = if wish.campaign.kind == CampaignKind::Coupon { Some(1) } else { shelf.terms.per_user };
    match limit {
        Some(per_user) if taken.saturating_add(wish.quantity) > per_user => {
            Some(HoldPlace::LimitExceeded { taken, per_user })
        }
        _ => (remaining < wish.quantity).then_some(HoldPlace::SoldOut { remaining }),
    }
}

pub(super) fn hold_settle(stock: &mut Stock<'_>, wishes: &[SettleWish]) -> Vec<HoldSettle> {
    wishes.iter().map(|wish| settle(stock, wish)).collect()
}

fn settle(stock: &mut Stock<'_>, wish: &SettleWish) -> HoldSettle {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(&wish.campaign, journal, *now) else { return HoldSettle::Unknown };
    shelf.give_back(journal, *now, wish.id);
    let Some(hold) = shelf.hold(wish.id).filter(|hold| hold.user == wish.user) else {
        return HoldSettle::Unknown;
    };
    let Hold { user, quantity, state, .. } = hold.clone();
    match (state, wish.settlement) {
        (HoldState::Held, Settlement::Confirm) => {
            let seq = shelf.counts.seq + 1;
            shelf.record(journal, *now, JournalChange::Confirmed { id: wish.id, seq, user, quantity });
            HoldSettle::Confirmed { seq }
        }
        (HoldState::Held, Settlement::Cancel) => {
            shelf.record(journal, *now, JournalChange::Cancelled { id: wish.id, user, quantity });
            HoldSettle::Cancelled
        }
        (HoldState::Confirmed { seq }, Settlement::Confirm) => HoldSettle::Confirmed { seq },
        (HoldState::Confirmed { seq }, Settlement::Cancel) => HoldSettle::AlreadyConfirmed { seq },
        (HoldState::Cancelled, Settlement::Cancel) => HoldSettle::Cancelled,
        (HoldState::Cancelled, Settlement::Confirm) => HoldSettle::AlreadyCancelled,
        (HoldState::Expired, _) => HoldSettle::Expired,
    }
}

pub(super) fn hold_read(stock: &mut Stock<'_>, campaign: &Campaign, id: HoldId) -> Option<HoldStatus> {
    let Stock { shelves, journal, now, .. } = stock;
    let shelf = shelves.at(campaign, journal, *now)?;
    shelf.give_back(journal, *now, id);
    let Hold { user, quantity, expires_at, state, .. } = shelf.hold(id)?.clone();
    Some(HoldStatus { user, quantity, expires_at, state })
}
