//! What settling and reading holds must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::hold::held;
use super::stock::{JOURNAL, LONG_HOLD, MOMENT, is_refused, limited, settlement_of, terms, unopened};
use super::{Home, name};
use crate::store::{
    Campaign, CampaignChange, CampaignKind, HoldId, HoldSettle, HoldState, HoldStatus, Issue, JournalChange,
    MAX_BATCH, MAX_HOLD, REQUEST_KEPT, Revoke, Sending, Settlement, UserShare,
};

async fn deal(home: &Home, quantity: u64) -> Campaign {
    home.opened(CampaignKind::Deal, terms(quantity)).await
}

/// [`Store::hold_settle`](crate::store::Store::hold_settle)
pub async fn hold_settle(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_confirmed_hold_is_a_grant(home).await;
    a_cancelled_hold_is_back_on_the_shelf(home).await;
    the_first_settlement_counts(home).await;
    nobody_settles_the_hold_of_another(home).await;
    a_hold_is_a_promise_whatever_the_state(home).await;
    what_is_settled_does_not_go_back_when_its_time_is_over(home).await;
    a_held_coupon_is_issued_when_it_is_confirmed(home).await;
    one_batch_may_settle_several_holds(home).await;
    a_settlement_that_is_sent_again_is_done_once(home).await;
}

const CONFIRM: Settlement = Settlement::Confirm;
const CANCEL: Settlement = Settlement::Cancel;

async fn a_confirmed_hold_is_a_grant(home: &Home) {
    let deal = deal(home, 9).await;
    home.buy(&deal, "b", 1).await;
    let id = home.held(&deal, "a", 3).await;
    assert_eq!(home.settle(&deal, id, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 2 });
    let status = home.status(&deal).await;
    assert_eq!((status.granted, status.held, status.seq, status.rev), (4, 0, 2, 4));
    let confirmed = JournalChange::Confirmed { id, seq: 2, user: name("a"), quantity: 3 };
    assert_eq!(home.journal_is_whole(&deal).await.last(), Some(&confirmed));
    assert_eq!(home.revoke(&deal, "a", 2).await, Revoke::Revoked { remaining: 8 });
    assert_eq!(home.settle(&deal, id, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 2 });
    assert_eq!(home.status(&deal).await.granted, 1, "confirmed again after it was revoked");
}

async fn a_cancelled_hold_is_back_on_the_shelf(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, limited(9, 3)).await;
    let id = home.held(&deal, "a", 3).await;
    assert_eq!(home.settle(&deal, id, "a", CANCEL).await, HoldSettle::Cancelled);
    let status = home.status(&deal).await;
    assert_eq!((status.granted, status.held, status.seq, status.rev), (0, 0, 0, 3));
    assert_eq!(home.share(&deal, "a").await, UserShare::default());
    let cancelled = JournalChange::Cancelled { id, user: name("a"), quantity: 3 };
    assert_eq!(home.journal_is_whole(&deal).await.last(), Some(&cancelled));
}

async fn the_first_settlement_counts(home: &Home) {
    let deal = deal(home, 9).await;
    let (kept, left) = (home.held(&deal, "a", 2).await, home.held(&deal, "a", 2).await);
    home.settle(&deal, kept, "a", CONFIRM).await;
    home.settle(&deal, left, "a", CANCEL).await;
    let before = home.status(&deal).await;
    for _ in 0..2 {
        assert_eq!(home.settle(&deal, kept, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 1 });
        assert_eq!(home.settle(&deal, kept, "a", CANCEL).await, HoldSettle::AlreadyConfirmed { seq: 1 });
        assert_eq!(home.settle(&deal, left, "a", CANCEL).await, HoldSettle::Cancelled);
        assert_eq!(home.settle(&deal, left, "a", CONFIRM).await, HoldSettle::AlreadyCancelled);
    }
    assert_eq!(home.status(&deal).await, before);
    home.journal_is_whole(&deal).await;
}

async fn nobody_settles_the_hold_of_another(home: &Home) {
    for kind in CampaignKind::ALL {
        let id = HoldId::random();
        assert_eq!(home.settle(&unopened(kind), id, "a", CONFIRM).await, HoldSettle::Unknown);
        let campaign = home.opened(kind, terms(9)).await;
        assert_eq!(home.settle(&campaign, id, "a", CANCEL).await, HoldSettle::Unknown);
        let id = home.held(&campaign, "a", 1).await;
        let other = home.opened(kind, terms(9)).await;
        assert_eq!(home.settle(&other, id, "a", CONFIRM).await, HoldSettle::Unknown, "of another campaign");
        for settlement in [CONFIRM, CANCEL] {
            assert_eq!(home.settle(&campaign, id, "b", settlement).await, HoldSettle::Unknown);
        }
        assert_eq!(home.status(&campaign).await.held, 1);
        assert_eq!(home.settle(&campaign, id, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 1 });
        assert_eq!(home.settle(&campaign, id, "b", CONFIRM).await, HoldSettle::Unknown);
    }
}

async fn a_hold_is_a_promise_whatever_the_state(home: &Home) {
    for change in [CampaignChange::Pause, CampaignChange::Close] {
        let deal = deal(home, 4).await;
        let (kept, left) = (home.held(&deal, "a", 2).await, home.held(&deal, "b", 2).await);
        home.change(&deal, change).await;
        assert_eq!(home.settle(&deal, kept, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 1 });
        assert_eq!(home.settle(&deal, left, "b", CANCEL).await, HoldSettle::Cancelled);
        home.journal_is_whole(&deal).await;
    }
    // Nor does it matter that its time is over, or that there are no more for others.
    let (deal, closes_at) = (unopened(CampaignKind::Deal), home.in_a_moment());
    home.open(&deal, terms(2).between(None, Some(closes_at)).unwrap()).await;
    let id = home.held(&deal, "a", 2).await;
    home.wait_until(closes_at).await;
    assert_eq!(home.settle(&deal, id, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 1 });
}

async fn what_is_settled_does_not_go_back_when_its_time_is_over(home: &Home) {
    for kind in CampaignKind::ALL {
        let campaign = home.opened(kind, terms(9)).await;
        let (kept, left) = (HoldId::random(), HoldId::random());
        held(home.hold(&campaign, kept, "a", 1, MOMENT).await);
        let (expires_at, _) = held(home.hold(&campaign, left, "b", 1, MOMENT).await);
        home.settle(&campaign, kept, "a", CONFIRM).await;
        home.settle(&campaign, left, "b", CANCEL).await;
        // Held again under another id: what goes back by mistake would be taken from this one.
        home.held(&campaign, "b", 1).await;
        let before = home.status(&campaign).await;
        home.wait_until(expires_at).await;
        assert_eq!(home.status(&campaign).await, before, "{kind:?}");
        assert_eq!(home.settle(&campaign, kept, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 1 });
        assert_eq!(home.settle(&campaign, left, "b", CANCEL).await, HoldSettle::Cancelled);
        assert_eq!((home.share(&campaign, "a").await.granted, home.share(&campaign, "b").await.held), (1, 1));
        home.journal_is_whole(&campaign).await;
    }
}

async fn a_held_coupon_is_issued_when_it_is_confirmed(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(3)).await;
    home.issue(&coupon, &["x"]).await;
    let id = home.held(&coupon, "a", 1).await;
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::Held { hold: id }]);
    assert_eq!(home.settle(&coupon, id, "a", CONFIRM).await, HoldSettle::Confirmed { seq: 2 });
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::AlreadyIssued { seq: 2 }]);
    home.journal_is_whole(&coupon).await;

    // A hold that was given back is none any more, and does not disturb what the user got since.
    let id = home.held(&coupon, "b", 1).await;
    home.settle(&coupon, id, "b", CANCEL).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::Issued { seq: 3, remaining: 0 }]);
    assert_eq!(home.settle(&coupon, id, "b", CANCEL).await, HoldSettle::Cancelled);
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::AlreadyIssued { seq: 3 }]);
    home.journal_is_whole(&coupon).await;
}

async fn one_batch_may_settle_several_holds(home: &Home) {
    let [one, two] = home.opened_together(CampaignKind::Sku, [5, 5]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..one.clone() };
    let (first, second) = (home.held(&one, "a", 1).await, home.held(&two, "a", 2).await);
    let wishes = [
        settlement_of(&one, first, "a", CONFIRM),
        settlement_of(&two, second, "a", CANCEL),
        settlement_of(&unknown, first, "a", CONFIRM),
        settlement_of(&one, first, "a", CANCEL),
        settlement_of(&two, second, "a", CONFIRM),
        settlement_of(&one, second, "a", CONFIRM),
    ];
    assert_eq!(
        home.store.hold_settle(&Sending::once(), &wishes).await.unwrap(),
        [
            HoldSettle::Confirmed { seq: 1 },
            HoldSettle::Cancelled,
            HoldSettle::Unknown,
            HoldSettle::AlreadyConfirmed { seq: 1 },
            HoldSettle::AlreadyCancelled,
            HoldSettle::Unknown,
        ]
    );
    home.journal_is_whole(&one).await;
    home.journal_is_whole(&two).await;
    assert_eq!(home.store.hold_settle(&Sending::once(), &[]).await.unwrap(), []);
    is_refused(&home.store.hold_settle(&Sending::once(), &vec![wishes[0].clone(); MAX_BATCH + 1]).await);
}

async fn a_settlement_that_is_sent_again_is_done_once(home: &Home) {
    let deal = deal(home, 9).await;
    let (one, two) = (home.held(&deal, "a", 2).await, home.held(&deal, "a", 2).await);
    let (first, later) =
        ([settlement_of(&deal, one, "a", CONFIRM)], [settlement_of(&deal, two, "a", CANCEL)]);
    home.is_done_once(
        &deal,
        async |sending| home.store.hold_settle(sending, &first).await,
        async |sending| home.store.hold_settle(sending, &later).await,
    )
    .await;
    let status = home.status(&deal).await;
    assert_eq!((status.granted, status.held), (2, 0));
}

/// [`Store::hold_read`](crate::store::Store::hold_read)
pub async fn hold_read(home: &Home) {
    let _kept = JOURNAL.read().await;
    for kind in CampaignKind::ALL {
        let id = HoldId::random();
        assert_eq!(home.store.hold_read(&unopened(kind), &id).await.unwrap(), None);
        let campaign = home.opened(kind, terms(9)).await;
        assert_eq!(home.store.hold_read(&campaign, &id).await.unwrap(), None);
        for (settlement, state) in [
            (None, HoldState::Held),
            (Some(CONFIRM), HoldState::Confirmed { seq: 1 }),
            (Some(CANCEL), HoldState::Cancelled),
        ] {
            let (id, user) = (HoldId::random(), format!("user of {settlement:?}\n"));
            let (expires_at, _) = held(home.hold(&campaign, id, &user, 1, LONG_HOLD).await);
            if let Some(settlement) = settlement {
                home.settle(&campaign, id, &user, settlement).await;
            }
            let status = HoldStatus { user: name(&user), quantity: 1, expires_at, state };
            assert_eq!(home.store.hold_read(&campaign, &id).await.unwrap(), Some(status));
        }
    }
    if home.time_can_be_moved {
        a_settled_hold_is_forgotten_in_the_end(home).await;
    }
}

async fn a_settled_hold_is_forgotten_in_the_end(home: &Home) {
    let deal = deal(home, 9).await;
    let (kept, left) = (home.held(&deal, "a", 1).await, HoldId::random());
    home.settle(&deal, kept, "a", CONFIRM).await;
    held(home.hold(&deal, left, "a", 1, MAX_HOLD).await);
    home.let_pass(REQUEST_KEPT - Duration::from_secs(1)).await;
    assert!(home.store.hold_read(&deal, &kept).await.unwrap().is_some());
    home.let_pass(Duration::from_secs(1)).await;
    assert_eq!(home.store.hold_read(&deal, &kept).await.unwrap(), None);
    assert_eq!(home.settle(&deal, kept, "a", CONFIRM).await, HoldSettle::Unknown);
    let state = home.store.hold_read(&deal, &left).await.unwrap().unwrap().state;
    assert_eq!(state, HoldState::Expired, "it has ended only now");
    assert_eq!(home.status(&deal).await.granted, 1, "the grant was forgotten too");
}
