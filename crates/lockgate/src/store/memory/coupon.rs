//! The coupon operations, in memory.

use std::collections::HashMap;

use super::Now;
use crate::key::Name;
use crate::store::{CouponOpen, CouponState, CouponStatus, CouponTerms, Issue};

#[derive(Debug)]
pub(super) struct Coupon {
    terms: CouponTerms,
    issued: u64,
    users: HashMap<Name, u64>,
}

type Coupons = HashMap<Name, Coupon>;

pub(super) fn coupon_open(coupons: &mut Coupons, now: Now, name: &Name, terms: &CouponTerms) -> CouponOpen {
    let Some(coupon) = coupons.get_mut(name) else {
        coupons.insert(name.clone(), Coupon { terms: *terms, issued: 0, users: HashMap::new() });
        return CouponOpen::Created(CouponStatus::at(now.wall, terms, 0));
    };
    if terms.quantity < coupon.issued {
        return CouponOpen::BelowIssued { issued: coupon.issued };
    }
    coupon.terms = *terms;
    CouponOpen::Changed(CouponStatus::at(now.wall, terms, coupon.issued))
}

pub(super) fn coupon_issue(coupons: &mut Coupons, now: Now, name: &Name, users: &[Name]) -> Vec<Issue> {
    let Some(coupon) = coupons.get_mut(name) else { return vec![Issue::Unknown; users.len()] };
    users.iter().map(|user| issue_to(coupon, now, user)).collect()
}

/// One user's turn: replay first, then the window, then the stock.
fn issue_to(coupon: &mut Coupon, now: Now, user: &Name) -> Issue {
    if let Some(seq) = coupon.users.get(user) {
        return Issue::AlreadyIssued { seq: *seq };
    }
    let CouponTerms { quantity, opens_at, closes_at } = coupon.terms;
    match (CouponState::of_window(now.wall, opens_at, closes_at), opens_at) {
        (CouponState::Scheduled, Some(opens_at)) => return Issue::NotOpen { opens_at },
        (CouponState::Closed, _) => return Issue::Closed,
        _ if coupon.issued >= quantity => return Issue::SoldOut,
        _ => {}
    }
    coupon.issued += 1;
    coupon.users.insert(user.clone(), coupon.issued);
    Issue::Issued { seq: coupon.issued, remaining: quantity - coupon.issued }
}

pub(super) fn coupon_read(coupons: &Coupons, now: Now, name: &Name) -> Option<CouponStatus> {
    coupons.get(name).map(|coupon| CouponStatus::at(now.wall, &coupon.terms, coupon.issued))
}
