//! What the coupon operations must do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Home, fresh, name, nasty_names};
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    CouponOpen, CouponState, CouponStatus, CouponTerms, Issue, MAX_ISSUE_BATCH, MAX_QUANTITY,
};

/// How far ahead a window opens or closes that is waited for; long enough that a busy machine is not too late.
const MOMENT: Duration = Duration::from_millis(400);

impl Home {
    async fn open(&self, coupon: &Name, terms: CouponTerms) -> CouponOpen {
        self.store.coupon_open(coupon, &terms).await.unwrap()
    }

    async fn issue(&self, coupon: &Name, users: &[&str]) -> Vec<Issue> {
        let users: Vec<_> = users.iter().map(|user| name(user)).collect();
        self.store.coupon_issue(coupon, &users).await.unwrap()
    }

    async fn status(&self, coupon: &Name) -> CouponStatus {
        self.store.coupon_read(coupon).await.unwrap().unwrap()
    }

    /// A new coupon of so many.
    async fn opened(&self, quantity: u64) -> Name {
        let coupon = fresh("coupon");
        assert!(matches!(self.open(&coupon, terms(quantity)).await, CouponOpen::Created(_)));
        coupon
    }

    /// Returns when the store's wall clock shows that time. A few milliseconds more, because it is waited for by another
    /// clock, which may be a little faster.
    async fn wait_until(&self, time: Timestamp) {
        self.let_pass(time.since(self.clock.wall()) + Duration::from_millis(5)).await;
    }

    fn in_a_moment(&self) -> Timestamp {
        // Whole milliseconds, and a little later: what matters is that it lies ahead.
        Timestamp::from_millis((self.clock.wall() + MOMENT).as_millis() + 1)
    }
}

fn terms(quantity: u64) -> CouponTerms {
    CouponTerms::new(quantity).unwrap()
}

/// [`Store::coupon_open`](crate::store::Store::coupon_open)
pub async fn coupon_open(home: &Home) {
    the_first_opening_creates_and_later_ones_change(home).await;
    a_quantity_below_what_is_issued_changes_nothing(home).await;
    the_largest_quantity_is_kept_exactly(home).await;
    every_name_is_a_coupon_of_its_own(home).await;
}

async fn the_first_opening_creates_and_later_ones_change(home: &Home) {
    let coupon = fresh("coupon");
    let closes_at = home.in_a_moment() + Duration::from_secs(60);
    let windowed = terms(10).between(None, Some(closes_at)).unwrap();

    let CouponOpen::Created(created) = home.open(&coupon, windowed).await else { panic!("not created") };
    assert_eq!((created.quantity, created.issued, created.state), (10, 0, CouponState::Open));
    assert_eq!((created.opens_at, created.closes_at), (None, Some(closes_at)));

    home.issue(&coupon, &["alice"]).await;
    let CouponOpen::Changed(changed) = home.open(&coupon, terms(20)).await else { panic!("not changed") };
    assert_eq!((changed.quantity, changed.issued, changed.remaining()), (20, 1, 19));
    assert_eq!(changed.closes_at, None, "opening replaces all terms");
    assert_eq!(home.status(&coupon).await, changed);
}

async fn a_quantity_below_what_is_issued_changes_nothing(home: &Home) {
    let coupon = home.opened(3).await;
    home.issue(&coupon, &["a", "b", "c"]).await;
    let before = home.status(&coupon).await;
    assert_eq!(home.open(&coupon, terms(2)).await, CouponOpen::BelowIssued { issued: 3 });
    assert_eq!(home.status(&coupon).await, before);
    assert!(matches!(home.open(&coupon, terms(3)).await, CouponOpen::Changed(_)));
}

async fn the_largest_quantity_is_kept_exactly(home: &Home) {
    let coupon = home.opened(MAX_QUANTITY).await;
    assert_eq!(home.status(&coupon).await.quantity, MAX_QUANTITY);
    let answer = home.issue(&coupon, &["alice"]).await;
    assert_eq!(answer, [Issue::Issued { seq: 1, remaining: MAX_QUANTITY - 1 }]);
}

async fn every_name_is_a_coupon_of_its_own(home: &Home) {
    let names = nasty_names(&fresh("coupon"));
    for (quantity, coupon) in (1..).zip(&names) {
        assert!(matches!(home.open(coupon, terms(quantity)).await, CouponOpen::Created(_)), "{coupon:?}");
    }
    for (quantity, coupon) in (1..).zip(&names) {
        assert_eq!(home.status(coupon).await.quantity, quantity, "{coupon:?}");
    }
}

/// [`Store::coupon_issue`](crate::store::Store::coupon_issue)
pub async fn coupon_issue(home: &Home) {
    everybody_gets_one_in_order_until_none_is_left(home).await;
    nobody_gets_two(home).await;
    an_unknown_coupon_is_unknown_to_everybody(home).await;
    the_window_is_kept_by_the_stores_clock(home).await;
    more_can_be_added_to_a_sold_out_coupon(home).await;
    a_user_may_be_called_anything(home).await;
    a_large_batch_is_issued_whole_and_a_larger_one_refused_whole(home).await;
    a_crowd_gets_exactly_what_there_is(home).await;
}

async fn everybody_gets_one_in_order_until_none_is_left(home: &Home) {
    let coupon = home.opened(3).await;
    assert_eq!(home.issue(&coupon, &[]).await, []);
    assert_eq!(
        home.issue(&coupon, &["a", "b"]).await,
        [Issue::Issued { seq: 1, remaining: 2 }, Issue::Issued { seq: 2, remaining: 1 }]
    );
    assert_eq!(
        home.issue(&coupon, &["c", "d"]).await,
        [Issue::Issued { seq: 3, remaining: 0 }, Issue::SoldOut]
    );
    assert_eq!(home.status(&coupon).await.issued, 3);
    assert_eq!(home.issue(&home.opened(0).await, &["a"]).await, [Issue::SoldOut]);
}

async fn nobody_gets_two(home: &Home) {
    let coupon = home.opened(3).await;
    assert_eq!(
        home.issue(&coupon, &["a", "a", "b", "a"]).await,
        [
            Issue::Issued { seq: 1, remaining: 2 },
            Issue::AlreadyIssued { seq: 1 },
            Issue::Issued { seq: 2, remaining: 1 },
            Issue::AlreadyIssued { seq: 1 },
        ]
    );
    assert_eq!(
        home.issue(&coupon, &["b", "c", "d", "a"]).await,
        [
            Issue::AlreadyIssued { seq: 2 },
            Issue::Issued { seq: 3, remaining: 0 },
            Issue::SoldOut,
            Issue::AlreadyIssued { seq: 1 },
        ]
    );
    assert_eq!(home.status(&coupon).await.issued, 3);
}

async fn an_unknown_coupon_is_unknown_to_everybody(home: &Home) {
    let coupon = fresh("coupon");
    assert_eq!(home.issue(&coupon, &["a", "b"]).await, [Issue::Unknown, Issue::Unknown]);
    assert_eq!(home.store.coupon_read(&coupon).await.unwrap(), None, "asking created it");
}

async fn the_window_is_kept_by_the_stores_clock(home: &Home) {
    let (coupon, opens_at) = (fresh("coupon"), home.in_a_moment());
    home.open(&coupon, terms(9).between(Some(opens_at), None).unwrap()).await;
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::NotOpen { opens_at }]);
    home.wait_until(opens_at).await;
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::Issued { seq: 1, remaining: 8 }]);

    let closes_at = home.in_a_moment();
    home.open(&coupon, terms(9).between(None, Some(closes_at)).unwrap()).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::Issued { seq: 2, remaining: 7 }]);
    home.wait_until(closes_at).await;
    assert_eq!(home.issue(&coupon, &["c", "a"]).await, [Issue::Closed, Issue::AlreadyIssued { seq: 1 }]);
}

async fn more_can_be_added_to_a_sold_out_coupon(home: &Home) {
    let coupon = home.opened(1).await;
    home.issue(&coupon, &["a"]).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::SoldOut]);
    home.open(&coupon, terms(2)).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::Issued { seq: 2, remaining: 0 }]);
}

async fn a_user_may_be_called_anything(home: &Home) {
    let users = nasty_names(&name("u"));
    let coupon = home.opened(users.len() as u64).await;
    let answers = home.store.coupon_issue(&coupon, &users).await.unwrap();
    let seqs: Vec<_> = answers.iter().filter_map(issued_seq).collect();
    assert_eq!(seqs, (1..=users.len() as u64).collect::<Vec<_>>());
    let again = home.store.coupon_issue(&coupon, &users).await.unwrap();
    assert_eq!(again, seqs.into_iter().map(|seq| Issue::AlreadyIssued { seq }).collect::<Vec<_>>());
}

async fn a_large_batch_is_issued_whole_and_a_larger_one_refused_whole(home: &Home) {
    let users: Vec<_> = (0..=MAX_ISSUE_BATCH).map(|user| name(&format!("user-{user}"))).collect();
    let coupon = home.opened(users.len() as u64).await;
    let refused = home.store.coupon_issue(&coupon, &users).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(home.status(&coupon).await.issued, 0);
    let answers = home.store.coupon_issue(&coupon, &users[..MAX_ISSUE_BATCH]).await.unwrap();
    assert_eq!(answers.iter().filter_map(issued_seq).count(), MAX_ISSUE_BATCH);
}

/// 300 people, each asking three times in three different crowds, for 100 coupons.
async fn a_crowd_gets_exactly_what_there_is(home: &Home) {
    let coupon = home.opened(100).await;
    let mut crowds = tokio::task::JoinSet::new();
    for crowd in 0..90 {
        let (store, coupon) = (home.store.clone(), coupon.clone());
        let users: Vec<_> =
            (0..10).map(|place| name(&format!("user-{}", (crowd * 10 + place) % 300))).collect();
        crowds.spawn(async move { store.coupon_issue(&coupon, &users).await.unwrap() });
    }
    let answers: Vec<_> = crowds.join_all().await.into_iter().flatten().collect();
    let seqs: Vec<_> = answers.iter().filter_map(issued_seq).collect();
    assert_eq!(seqs.len(), 100, "so many were issued");
    assert_eq!(seqs.into_iter().collect::<BTreeSet<_>>(), (1..=100).collect());
    assert_eq!(home.status(&coupon).await.issued, 100);
}

fn issued_seq(answer: &Issue) -> Option<u64> {
    match answer {
        Issue::Issued { seq, .. } => Some(*seq),
        _ => None,
    }
}

/// [`Store::coupon_read`](crate::store::Store::coupon_read)
pub async fn coupon_read(home: &Home) {
    assert_eq!(home.store.coupon_read(&fresh("coupon")).await.unwrap(), None);
    let (coupon, opens_at) = (fresh("coupon"), home.in_a_moment());
    let closes_at = opens_at + Duration::from_millis(1);
    home.open(&coupon, terms(1).between(Some(opens_at), Some(closes_at)).unwrap()).await;
    let status = home.status(&coupon).await;
    assert_eq!((status.quantity, status.issued, status.remaining()), (1, 0, 1));
    assert_eq!((status.opens_at, status.closes_at), (Some(opens_at), Some(closes_at)));
    assert_eq!(status.state, CouponState::Scheduled);

    home.wait_until(closes_at).await;
    assert_eq!(home.status(&coupon).await.state, CouponState::Closed);

    home.open(&coupon, terms(1)).await;
    assert_eq!(home.status(&coupon).await.state, CouponState::Open);
    home.issue(&coupon, &["a"]).await;
    let status = home.status(&coupon).await;
    assert_eq!((status.issued, status.remaining(), status.state), (1, 0, CouponState::SoldOut));
}
