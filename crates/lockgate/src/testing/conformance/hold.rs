//! What putting aside must do. What becomes of a hold is in `hold_settling.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::stock::{JOURNAL, LONG_HOLD, MOMENT, hold, is_refused, limited, settlement_of, terms, unopened};
use super::{Home, name, nasty_names, pass};
use crate::clock::Timestamp;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, CampaignOpen, HoldId, HoldPlace, HoldSettle, HoldState, Issue,
    JournalChange, MAX_BATCH, MAX_HOLD, MAX_QUANTITY, Purchase, Revoke, Sending, Settlement, UserShare,
};

/// [`Store::hold_place`](crate::store::Store::hold_place)
pub async fn hold_place(home: &Home) {
    let _kept = JOURNAL.read().await;
    what_is_held_is_off_the_shelf(home).await;
    the_same_hold_again_is_told_the_same(home).await;
    a_hold_id_with_another_content_is_not_the_same(home).await;
    the_first_reason_to_deny_is_told(home).await;
    a_hold_waits_for_its_window(home).await;
    a_coupon_is_held_once_per_user(home).await;
    holds_count_towards_the_limit(home).await;
    a_hold_whose_time_is_over_goes_back_once(home).await;
    whoever_comes_next_finds_it_on_the_shelf(home).await;
    one_batch_may_hold_of_several_campaigns(home).await;
    holds_that_make_no_sense_are_refused(home).await;
    the_largest_quantity_can_be_held(home).await;
    users_may_be_called_anything(home).await;
    a_crowd_holds_what_there_is(home).await;
    a_batch_that_is_sent_again_is_held_once(home).await;
    pass::a_pass_is_demanded(home, pass::Way::HoldCoupon).await;
    pass::a_pass_is_demanded(home, pass::Way::HoldDeal).await;
}

/// The answer's time and what is left.
pub(super) fn held(answer: HoldPlace) -> (Timestamp, u64) {
    match answer {
        HoldPlace::Held { expires_at, remaining } => (expires_at, remaining),
        other => panic!("not held: {other:?}"),
    }
}

async fn deal(home: &Home, quantity: u64) -> Campaign {
    home.opened(CampaignKind::Deal, terms(quantity)).await
}

async fn what_is_held_is_off_the_shelf(home: &Home) {
    for kind in [CampaignKind::Deal, CampaignKind::Sku] {
        let campaign = home.opened(kind, terms(5)).await;
        let (id, before) = (HoldId::random(), home.clock.wall());
        let (expires_at, remaining) = held(home.hold(&campaign, id, "a", 3, LONG_HOLD).await);
        assert_eq!(remaining, 2);
        assert!(expires_at >= before + LONG_HOLD, "{expires_at:?} is early");
        assert!(expires_at <= home.clock.wall() + LONG_HOLD, "{expires_at:?} is late");
        let denied = home.hold(&campaign, HoldId::random(), "b", 3, LONG_HOLD).await;
        assert_eq!(denied, HoldPlace::SoldOut { remaining: 2 });
        let status = home.status(&campaign).await;
        assert_eq!((status.granted, status.held, status.seq, status.rev), (0, 3, 0, 2));
        let noted = JournalChange::Held { id, user: name("a"), quantity: 3, expires_at, pass: None };
        assert_eq!(home.journal_is_whole(&campaign).await[1..], [noted]);
    }
    let deal = deal(home, 5).await;
    home.held(&deal, "a", 3).await;
    assert_eq!(home.buy(&deal, "b", 3).await, Purchase::SoldOut { remaining: 2 });
}

async fn the_same_hold_again_is_told_the_same(home: &Home) {
    for settlement in [None, Some(Settlement::Confirm), Some(Settlement::Cancel)] {
        let (deal, id) = (deal(home, 5).await, HoldId::random());
        let answer = home.hold(&deal, id, "a", 2, LONG_HOLD).await;
        home.held(&deal, "b", 1).await;
        if let Some(settlement) = settlement {
            home.settle(&deal, id, "a", settlement).await;
        }
        home.change(&deal, CampaignChange::Close).await;
        let before = home.status(&deal).await;
        // Another time to live does not make it another hold.
        for ttl in [LONG_HOLD, MOMENT] {
            assert_eq!(home.hold(&deal, id, "a", 2, ttl).await, answer, "{settlement:?}");
        }
        assert_eq!(home.status(&deal).await, before);
        home.journal_is_whole(&deal).await;
    }
}

async fn a_hold_id_with_another_content_is_not_the_same(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, limited(9, 3)).await;
    let id = home.held(&deal, "a", 2).await;
    let before = home.status(&deal).await;
    assert_eq!(home.hold(&deal, id, "b", 2, LONG_HOLD).await, HoldPlace::RequestReused);
    assert_eq!(home.hold(&deal, id, "a", 1, LONG_HOLD).await, HoldPlace::RequestReused);
    assert_eq!(home.hold(&deal, id, "a", 8, LONG_HOLD).await, HoldPlace::RequestReused);
    home.settle(&deal, id, "a", Settlement::Cancel).await;
    assert_eq!(home.hold(&deal, id, "b", 2, LONG_HOLD).await, HoldPlace::RequestReused);
    assert_eq!(home.status(&deal).await.rev, before.rev + 1);
}

async fn the_first_reason_to_deny_is_told(home: &Home) {
    let (deal, id) = (unopened(CampaignKind::Deal), HoldId::random());
    assert_eq!(home.hold(&deal, id, "a", 1, LONG_HOLD).await, HoldPlace::Unknown);
    assert_eq!(home.store.campaign_read(&deal).await.unwrap(), None, "asking created it");
    home.open(&deal, limited(3, 2)).await;
    home.buy(&deal, "a", 2).await;
    let exceeded = HoldPlace::LimitExceeded { taken: 2, per_user: 2 };
    assert_eq!(home.hold(&deal, id, "a", 2, LONG_HOLD).await, exceeded, "the limit comes first");
    assert_eq!(home.hold(&deal, id, "b", 2, LONG_HOLD).await, HoldPlace::SoldOut { remaining: 1 });
    let opens_at = home.in_a_moment() + Duration::from_secs(60);
    home.open(&deal, limited(3, 2).between(Some(opens_at), None).unwrap()).await;
    assert_eq!(home.hold(&deal, id, "a", 9, LONG_HOLD).await, HoldPlace::NotOpen { opens_at });
    home.change(&deal, CampaignChange::Pause).await;
    assert_eq!(home.hold(&deal, id, "a", 9, LONG_HOLD).await, HoldPlace::Paused);
    home.change(&deal, CampaignChange::Close).await;
    assert_eq!(home.hold(&deal, id, "a", 9, LONG_HOLD).await, HoldPlace::Closed);
    home.journal_is_whole(&deal).await;
}

async fn a_hold_waits_for_its_window(home: &Home) {
    let (deal, opens_at) = (unopened(CampaignKind::Deal), home.in_a_moment());
    home.open(&deal, terms(9).between(Some(opens_at), None).unwrap()).await;
    let id = HoldId::random();
    assert_eq!(home.hold(&deal, id, "a", 1, LONG_HOLD).await, HoldPlace::NotOpen { opens_at });
    home.wait_until(opens_at).await;
    assert_eq!(held(home.hold(&deal, id, "a", 1, LONG_HOLD).await).1, 8, "a denial was remembered");
}

async fn a_coupon_is_held_once_per_user(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, limited(3, 3)).await;
    home.issue(&coupon, &["a"]).await;
    let already = home.hold(&coupon, HoldId::random(), "a", 1, LONG_HOLD).await;
    assert_eq!(already, HoldPlace::AlreadyIssued { seq: 1 });
    let id = home.held(&coupon, "b", 1).await;
    let twice = home.hold(&coupon, HoldId::random(), "b", 1, LONG_HOLD).await;
    assert_eq!(twice, HoldPlace::LimitExceeded { taken: 1, per_user: 1 });
    home.settle(&coupon, id, "b", Settlement::Confirm).await;
    let confirmed = home.hold(&coupon, HoldId::random(), "b", 1, LONG_HOLD).await;
    assert_eq!(confirmed, HoldPlace::AlreadyIssued { seq: 2 });
    let last = home.hold(&coupon, HoldId::random(), "c", 1, LONG_HOLD).await;
    assert_eq!(held(last).1, 0);
    let late = home.hold(&coupon, HoldId::random(), "d", 1, LONG_HOLD).await;
    assert_eq!(late, HoldPlace::SoldOut { remaining: 0 });
    home.journal_is_whole(&coupon).await;
}

async fn holds_count_towards_the_limit(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, limited(20, 5)).await;
    home.buy(&deal, "a", 1).await;
    let id = home.held(&deal, "a", 3).await;
    let exceeded = |taken| HoldPlace::LimitExceeded { taken, per_user: 5 };
    assert_eq!(home.hold(&deal, HoldId::random(), "a", 2, LONG_HOLD).await, exceeded(4));
    home.held(&deal, "a", 1).await;
    assert_eq!(home.hold(&deal, HoldId::random(), "a", 1, LONG_HOLD).await, exceeded(5));
    home.settle(&deal, id, "a", Settlement::Cancel).await;
    home.held(&deal, "a", 3).await;
    assert_eq!(home.hold(&deal, HoldId::random(), "a", 1, LONG_HOLD).await, exceeded(5));
}

/// Two holds of one user end together, one of them in a coupon; another one goes on.
async fn a_hold_whose_time_is_over_goes_back_once(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, limited(10, 6)).await;
    home.buy(&deal, "a", 1).await;
    let (short, other) = (HoldId::random(), HoldId::random());
    held(home.hold(&deal, short, "a", 2, MOMENT).await);
    let (expires_at, _) = held(home.hold(&deal, other, "a", 1, MOMENT).await);
    let long = home.held(&deal, "a", 2).await;
    assert_eq!(home.buy(&deal, "a", 1).await, Purchase::LimitExceeded { taken: 6, per_user: 6 });
    home.wait_until(expires_at).await;
    for _ in 0..3 {
        let status = home.status(&deal).await;
        assert_eq!((status.granted, status.held, status.remaining()), (1, 2, 7));
        assert_eq!((status.seq, status.rev), (1, 7));
    }
    assert_eq!(home.share(&deal, "a").await, UserShare { granted: 1, held: 2, seq: None });
    let mut changes = home.journal_is_whole(&deal).await.split_off(5);
    // Both were due: which of them is first is the store's affair.
    changes.sort_by_key(|change| matches!(change, JournalChange::Expired { quantity: 1, .. }));
    let expired = |id, quantity| JournalChange::Expired { id, user: name("a"), quantity };
    assert_eq!(changes, [expired(short, 2), expired(other, 1)]);

    for settlement in [Settlement::Confirm, Settlement::Cancel, Settlement::Confirm] {
        assert_eq!(home.settle(&deal, short, "a", settlement).await, HoldSettle::Expired);
    }
    let state = home.store.hold_read(&deal, &short).await.unwrap().unwrap().state;
    assert_eq!(state, HoldState::Expired);
    assert_eq!(home.settle(&deal, long, "a", Settlement::Confirm).await, HoldSettle::Confirmed { seq: 2 });
    assert_eq!(home.status(&deal).await.remaining(), 7);
    assert_eq!(home.buy(&deal, "a", 3).await, Purchase::Bought { seq: 3, purchased: 6, remaining: 4 });
    home.journal_is_whole(&deal).await;
}

/// Every operation that concerns a campaign does what is due before it decides.
async fn whoever_comes_next_finds_it_on_the_shelf(home: &Home) {
    let mut all = Vec::new();
    for kind in [CampaignKind::Coupon, CampaignKind::Deal, CampaignKind::Sku] {
        for _ in 0..8 {
            let its_terms = if kind == CampaignKind::Sku { terms(1) } else { limited(1, 1) };
            let campaign = home.opened(kind, its_terms).await;
            let id = HoldId::random();
            all.push((campaign, id));
        }
    }
    // Placed together, so that none of them ends while the others are being made.
    let mut last = Timestamp::from_micros(0);
    for (campaign, id) in &all {
        last = held(home.hold(campaign, *id, "a", 1, MOMENT).await).0;
    }
    home.wait_until(last).await;
    let (coupons, rest) = all.split_at(8);
    let (deals, skus) = rest.split_at(8);

    assert_eq!(home.issue(&coupons[0].0, &["a"]).await, [Issue::Issued { seq: 1, remaining: 0 }]);
    assert_eq!(home.issue(&coupons[1].0, &["b"]).await, [Issue::Issued { seq: 1, remaining: 0 }]);
    let one = Purchase::Bought { seq: 1, purchased: 1, remaining: 0 };
    assert_eq!(home.buy(&deals[0].0, "a", 1).await, one);
    assert_eq!(home.buy(&deals[1].0, "b", 1).await, one);
    let placed = home.order(&super::fresh("o"), "b", &[(&skus[0].0, 1)]).await;
    assert!(matches!(placed, crate::store::OrderPlace::Placed { .. }), "{placed:?}");
    for campaigns in [coupons, deals, skus] {
        home.held(&campaigns[2].0, "a", 1).await;
        let (campaign, id) = &campaigns[3];
        assert_eq!(home.settle(campaign, *id, "a", Settlement::Confirm).await, HoldSettle::Expired);
        let (campaign, id) = &campaigns[4];
        let status = home.store.hold_read(campaign, id).await.unwrap().unwrap();
        assert_eq!(status.state, HoldState::Expired);
        assert_eq!(home.share(&campaigns[5].0, "a").await, UserShare::default());
        assert!(matches!(home.open(&campaigns[6].0, terms(0)).await, CampaignOpen::Changed(_)));
        assert_eq!(home.revoke(&campaigns[7].0, "a", 1).await, Revoke::NotGranted);
    }
    for (campaign, id) in &all {
        let expired = JournalChange::Expired { id: *id, user: name("a"), quantity: 1 };
        assert_eq!(home.journal_is_whole(campaign).await[2], expired, "{campaign:?}");
    }
}

async fn one_batch_may_hold_of_several_campaigns(home: &Home) {
    let [one, two] = home.opened_together(CampaignKind::Sku, [5, 2]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..one.clone() };
    let (first, second) = (HoldId::random(), HoldId::random());
    let wishes = [
        hold(&one, first, "a", 1, LONG_HOLD),
        hold(&two, second, "a", 2, LONG_HOLD),
        hold(&unknown, first, "a", 1, LONG_HOLD),
        hold(&one, first, "a", 1, LONG_HOLD),
        hold(&one, first, "b", 1, LONG_HOLD),
        hold(&two, HoldId::random(), "b", 1, LONG_HOLD),
        hold(&one, HoldId::random(), "b", 4, LONG_HOLD),
    ];
    let answers = home.store.hold_place(&Sending::once(), &wishes).await.unwrap();
    assert_eq!((held(answers[0]).1, held(answers[1]).1, held(answers[6]).1), (4, 0, 0));
    assert_eq!(answers[3], answers[0]);
    let denied = [answers[2], answers[4], answers[5]];
    assert_eq!(denied, [HoldPlace::Unknown, HoldPlace::RequestReused, HoldPlace::SoldOut { remaining: 0 }]);
    home.journal_is_whole(&one).await;
    home.journal_is_whole(&two).await;
    assert_eq!(home.store.hold_place(&Sending::once(), &[]).await.unwrap(), []);
}

async fn holds_that_make_no_sense_are_refused(home: &Home) {
    let (deal, coupon) = (deal(home, 5).await, home.opened(CampaignKind::Coupon, terms(5)).await);
    let id = HoldId::random();
    for nonsense in [
        hold(&deal, id, "a", 0, LONG_HOLD),
        hold(&deal, id, "a", MAX_QUANTITY + 1, LONG_HOLD),
        hold(&deal, id, "a", 1, Duration::ZERO),
        hold(&deal, id, "a", 1, Duration::from_micros(999)),
        hold(&deal, id, "a", 1, MAX_HOLD + Duration::from_millis(1)),
        hold(&coupon, id, "a", 2, LONG_HOLD),
    ] {
        is_refused(&home.store.hold_place(&Sending::once(), &[nonsense]).await);
    }
    let wishes = vec![hold(&deal, id, "a", 1, LONG_HOLD); MAX_BATCH + 1];
    is_refused(&home.store.hold_place(&Sending::once(), &wishes).await);
    assert_eq!(home.status(&deal).await.held, 0);
    let answers = home.store.hold_place(&Sending::once(), &wishes[1..]).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(held(home.hold(&deal, HoldId::random(), "a", 1, MAX_HOLD).await).1, 3);
    home.journal_is_whole(&deal).await;
}

async fn the_largest_quantity_can_be_held(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, limited(MAX_QUANTITY, MAX_QUANTITY)).await;
    let id = HoldId::random();
    assert_eq!(held(home.hold(&deal, id, "a", MAX_QUANTITY, LONG_HOLD).await).1, 0);
    let denied = home.hold(&deal, HoldId::random(), "a", MAX_QUANTITY, LONG_HOLD).await;
    assert_eq!(denied, HoldPlace::LimitExceeded { taken: MAX_QUANTITY, per_user: MAX_QUANTITY });
    let status = home.store.hold_read(&deal, &id).await.unwrap().unwrap();
    assert_eq!(status.quantity, MAX_QUANTITY);
    assert_eq!(home.settle(&deal, id, "a", Settlement::Confirm).await, HoldSettle::Confirmed { seq: 1 });
    assert_eq!(home.share(&deal, "a").await, UserShare { granted: MAX_QUANTITY, held: 0, seq: None });
    home.journal_is_whole(&deal).await;
}

async fn users_may_be_called_anything(home: &Home) {
    for kind in [CampaignKind::Coupon, CampaignKind::Deal] {
        let campaign = home.opened(kind, limited(1_000, 1)).await;
        for (seq, user) in (1..).zip(nasty_names(&name("u"))) {
            let id = home.held(&campaign, user.as_str(), 1).await;
            let status = home.store.hold_read(&campaign, &id).await.unwrap().unwrap();
            assert_eq!((status.user.clone(), status.state), (user.clone(), HoldState::Held));
            let settled = home.settle(&campaign, id, user.as_str(), Settlement::Confirm).await;
            assert_eq!(settled, HoldSettle::Confirmed { seq }, "{user:?}");
        }
        home.journal_is_whole(&campaign).await;
    }
}

/// 60 people hold one of 40 each; every third confirms, every third cancels.
async fn a_crowd_holds_what_there_is(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(40)).await;
    let mut crowd = tokio::task::JoinSet::new();
    for user in 0..60 {
        let (store, coupon) = (home.store.clone(), coupon.clone());
        crowd.spawn(async move {
            let (id, user_name) = (HoldId::random(), format!("user-{user}"));
            let wish = hold(&coupon, id, &user_name, 1, LONG_HOLD);
            store.hold_place(&Sending::once(), &[wish]).await.unwrap();
            let settlement = if user % 3 == 0 { Settlement::Confirm } else { Settlement::Cancel };
            if user % 3 < 2 {
                let wish = settlement_of(&coupon, id, &user_name, settlement);
                store.hold_settle(&Sending::once(), &[wish]).await.unwrap();
            }
        });
    }
    crowd.join_all().await;
    let status = home.status(&coupon).await;
    assert!(status.granted + status.held <= 40 && status.granted == status.seq, "{status:?}");
    home.journal_is_whole(&coupon).await;
}

async fn a_batch_that_is_sent_again_is_held_once(home: &Home) {
    let deal = deal(home, 9).await;
    let first = [hold(&deal, HoldId::random(), "a", 2, LONG_HOLD)];
    let later = [hold(&deal, HoldId::random(), "b", 1, LONG_HOLD)];
    home.is_done_once(
        &deal,
        async |sending| home.store.hold_place(sending, &first).await,
        async |sending| home.store.hold_place(sending, &later).await,
    )
    .await;
    assert_eq!(home.status(&deal).await.held, 3);
}
