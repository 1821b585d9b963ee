//! What taking grants back must do, of any kind of campaign.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use super::stock::{JOURNAL, is_refused, limited, terms, unopened};
use super::{Home, fresh, name, nasty_names};
use crate::store::{
    Campaign, CampaignChange, CampaignKind, HoldPlace, Issue, JournalChange, MAX_BATCH, OrderPlace, Purchase,
    Revoke, RevokeWish, Sending, Settlement, Terms, UserShare,
};

const fn bought(seq: u64, purchased: u64, remaining: u64) -> Purchase {
    Purchase::Bought { seq, purchased, remaining }
}

async fn deal(home: &Home, terms: Terms) -> Campaign {
    home.opened(CampaignKind::Deal, terms).await
}

/// [`Store::grant_revoke`](crate::store::Store::grant_revoke)
pub async fn grant_revoke(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_revoked_purchase_can_be_had_again(home).await;
    a_revoked_coupon_can_be_issued_again_under_a_new_number(home).await;
    only_the_users_own_grant_is_revoked_and_once(home).await;
    every_kind_of_grant_can_be_revoked_in_every_state(home).await;
    one_batch_may_revoke_from_several_campaigns(home).await;
    a_revocation_that_is_sent_again_is_done_once(home).await;
}

async fn a_revoked_purchase_can_be_had_again(home: &Home) {
    let deal = deal(home, limited(5, 3)).await;
    home.buy(&deal, "a", 3).await;
    home.buy(&deal, "b", 2).await;
    assert_eq!(home.revoke(&deal, "a", 1).await, Revoke::Revoked { remaining: 3 });
    assert_eq!(home.share(&deal, "a").await, UserShare::default());
    assert_eq!(home.buy(&deal, "a", 2).await, bought(3, 2, 1), "a number was used again");
    assert_eq!(home.buy(&deal, "b", 1).await, bought(4, 3, 0));
    let changes = home.journal_is_whole(&deal).await;
    assert_eq!(changes[3], JournalChange::Revoked { seq: 1, user: name("a"), quantity: 3 });
}

async fn a_revoked_coupon_can_be_issued_again_under_a_new_number(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(2)).await;
    home.issue(&coupon, &["a", "b"]).await;
    assert_eq!(home.issue(&coupon, &["c"]).await, [Issue::SoldOut]);
    assert_eq!(home.revoke(&coupon, "b", 2).await, Revoke::Revoked { remaining: 1 });
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::Issued { seq: 3, remaining: 0 }]);
    assert_eq!(home.revoke(&coupon, "b", 2).await, Revoke::NotGranted);
    let status = home.status(&coupon).await;
    assert_eq!((status.granted, status.seq), (2, 3));
    let changes = home.journal_is_whole(&coupon).await;
    assert_eq!(changes[2], JournalChange::Revoked { seq: 2, user: name("b"), quantity: 1 });
}

async fn only_the_users_own_grant_is_revoked_and_once(home: &Home) {
    for kind in CampaignKind::ALL {
        assert_eq!(home.revoke(&unopened(kind), "a", 1).await, Revoke::Unknown);
        let campaign = home.opened(kind, terms(9)).await;
        for user in ["a", "b"] {
            let id = home.held(&campaign, user, 1).await;
            home.settle(&campaign, id, user, Settlement::Confirm).await;
        }
        home.held(&campaign, "c", 1).await;
        let before = home.status(&campaign).await;
        for (user, seq) in [("a", 2), ("b", 1), ("c", 1), ("c", 0), ("c", 3), ("a", u64::MAX), ("nobody", 1)]
        {
            assert_eq!(home.revoke(&campaign, user, seq).await, Revoke::NotGranted, "{user} {seq}");
        }
        assert_eq!(home.status(&campaign).await, before);
        assert_eq!(home.revoke(&campaign, "a", 1).await, Revoke::Revoked { remaining: 7 });
        assert_eq!(home.revoke(&campaign, "a", 1).await, Revoke::NotGranted);
        assert_eq!(home.share(&campaign, "b").await.granted, 1);
        home.journal_is_whole(&campaign).await;
    }
}

async fn every_kind_of_grant_can_be_revoked_in_every_state(home: &Home) {
    for change in [CampaignChange::Pause, CampaignChange::Close] {
        for user in nasty_names(&name("u")).iter().map(crate::key::Name::as_str).step_by(3) {
            let deal = deal(home, terms(4)).await;
            home.buy(&deal, user, 4).await;
            home.change(&deal, change).await;
            assert_eq!(home.revoke(&deal, user, 1).await, Revoke::Revoked { remaining: 4 });
        }
    }
    let sku = home.opened(CampaignKind::Sku, terms(4)).await;
    assert_eq!(home.order(&fresh("o"), "a", &[(&sku, 4)]).await, OrderPlace::Placed { seqs: vec![1] });
    assert_eq!(home.revoke(&sku, "a", 1).await, Revoke::Revoked { remaining: 4 });
    let again = home.hold(&sku, crate::store::HoldId::random(), "a", 4, super::stock::LONG_HOLD).await;
    assert!(matches!(again, HoldPlace::Held { remaining: 0, .. }), "{again:?}");
}

async fn one_batch_may_revoke_from_several_campaigns(home: &Home) {
    let [one, two] = home.opened_together(CampaignKind::Deal, [5, 5]).await;
    home.buy(&one, "a", 2).await;
    home.buy(&two, "a", 3).await;
    let unknown = Campaign { name: name("nobody opened this"), ..one.clone() };
    let wishes: Vec<_> = [&one, &two, &one, &unknown]
        .into_iter()
        .map(|campaign| RevokeWish { campaign: campaign.clone(), user: name("a"), seq: 1 })
        .collect();
    let five = Revoke::Revoked { remaining: 5 };
    assert_eq!(
        home.store.grant_revoke(&Sending::once(), &wishes).await.unwrap(),
        [five, five, Revoke::NotGranted, Revoke::Unknown]
    );
    assert_eq!(home.store.grant_revoke(&Sending::once(), &[]).await.unwrap(), []);
    is_refused(&home.store.grant_revoke(&Sending::once(), &vec![wishes[0].clone(); MAX_BATCH + 1]).await);
}

async fn a_revocation_that_is_sent_again_is_done_once(home: &Home) {
    let deal = deal(home, terms(9)).await;
    home.buy(&deal, "a", 2).await;
    home.buy(&deal, "a", 2).await;
    let revoke = |seq| [RevokeWish { campaign: deal.clone(), user: name("a"), seq }];
    let (first, later) = (revoke(1), revoke(2));
    home.is_done_once(
        &deal,
        async |sending| home.store.grant_revoke(sending, &first).await,
        async |sending| home.store.grant_revoke(sending, &later).await,
    )
    .await;
    assert_eq!(home.status(&deal).await.granted, 0);
}
