//! What the operations on campaigns as such must do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::stock::{JOURNAL, in_group, limited, terms, unopened};
use super::{Home, fresh, name, nasty_names, pass};
use crate::error::StoreError;
use crate::store::{
    Campaign, CampaignChange, CampaignChanged, CampaignKind, CampaignOpen, CampaignState, Issue,
    JournalChange, MAX_QUANTITY, Revoke, Sending, Settlement, UserShare,
};

const RESTOCK_FIVE: CampaignChange = CampaignChange::Restock { by: 5 };

/// [`Store::campaign_open`](crate::store::Store::campaign_open)
pub async fn campaign_open(home: &Home) {
    let _kept = JOURNAL.read().await;
    the_first_opening_creates_and_later_ones_change(home).await;
    an_article_has_no_limit_per_user(home).await;
    opening_with_the_same_terms_changes_nothing(home).await;
    a_quantity_below_what_is_granted_and_held_changes_nothing(home).await;
    opening_again_leaves_the_switch_as_it_is(home).await;
    the_smallest_and_the_largest_quantity_are_kept_exactly(home).await;
    every_name_kind_and_group_is_a_campaign_of_its_own(home).await;
    an_opening_that_is_sent_again_is_done_once(home).await;
    pass::the_line_is_one_of_the_terms(home).await;
}

async fn the_first_opening_creates_and_later_ones_change(home: &Home) {
    for kind in CampaignKind::ALL {
        let campaign = unopened(kind);
        let closes_at = home.in_a_moment() + Duration::from_secs(60);
        let limit = (kind != CampaignKind::Sku).then_some(3);
        let windowed = limit.map_or(terms(10), |limit| limited(10, limit));
        let windowed = windowed.between(None, Some(closes_at)).unwrap();

        let CampaignOpen::Created(created) = home.open(&campaign, windowed.clone()).await else {
            panic!("not created")
        };
        assert_eq!((created.quantity, created.granted, created.held), (10, 0, 0));
        assert_eq!((created.seq, created.rev, created.state), (0, 1, CampaignState::Open));
        assert_eq!((created.opens_at, created.closes_at), (None, Some(closes_at)));
        assert_eq!(created.per_user, limit);
        assert_eq!(home.status(&campaign).await, created);

        let CampaignOpen::Changed(changed) = home.open(&campaign, terms(20)).await else {
            panic!("not changed")
        };
        assert_eq!((changed.quantity, changed.rev), (20, 2));
        assert_eq!((changed.closes_at, changed.per_user), (None, None), "opening replaces all terms");
        assert_eq!(home.status(&campaign).await, changed);
        assert_eq!(
            home.journal_is_whole(&campaign).await,
            [JournalChange::Opened { terms: windowed }, JournalChange::Opened { terms: terms(20) }]
        );
    }
}

/// Orders do not look at it, so it must not seem to be kept.
async fn an_article_has_no_limit_per_user(home: &Home) {
    let sku = unopened(CampaignKind::Sku);
    let refused = home.store.campaign_open(&Sending::once(), &sku, &limited(10, 3)).await;
    assert!(matches!(&refused, Err(StoreError::InvalidInput(why)) if why.field == "per_user"), "{refused:?}");
    assert_eq!(home.store.campaign_read(&sku).await.unwrap(), None);
}

async fn opening_with_the_same_terms_changes_nothing(home: &Home) {
    let campaign = unopened(CampaignKind::Deal);
    let opens_at = home.in_a_moment() + Duration::from_secs(60);
    let same = limited(7, 2).between(Some(opens_at), None).unwrap();
    home.open(&campaign, same.clone()).await;
    let before = home.status(&campaign).await;
    for _ in 0..2 {
        assert_eq!(home.open(&campaign, same.clone()).await, CampaignOpen::Changed(before.clone()));
    }
    assert_eq!(home.journal_is_whole(&campaign).await.len(), 1);
    // Each of the terms alone makes a difference.
    let later = opens_at + Duration::from_secs(1);
    let others = [
        limited(8, 2).between(Some(opens_at), None).unwrap(),
        limited(8, 3).between(Some(opens_at), None).unwrap(),
        limited(8, 3).between(Some(later), None).unwrap(),
        limited(8, 3).between(Some(later), Some(later + Duration::from_secs(1))).unwrap(),
        terms(8),
    ];
    for (rev, other) in (2..).zip(others) {
        let answer = home.open(&campaign, other).await;
        assert!(matches!(&answer, CampaignOpen::Changed(status) if status.rev == rev), "{answer:?}");
    }
    home.journal_is_whole(&campaign).await;
}

async fn a_quantity_below_what_is_granted_and_held_changes_nothing(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, terms(5)).await;
    home.buy(&deal, "alice", 2).await;
    let id = home.held(&deal, "bob", 1).await;
    let before = home.status(&deal).await;
    assert_eq!(home.open(&deal, limited(2, 9)).await, CampaignOpen::BelowIssued { issued: 3 });
    assert_eq!(home.open(&deal, terms(0)).await, CampaignOpen::BelowIssued { issued: 3 });
    assert_eq!(home.status(&deal).await, before);
    assert!(
        matches!(home.open(&deal, terms(3)).await, CampaignOpen::Changed(status) if status.remaining() == 0)
    );

    home.settle(&deal, id, "bob", Settlement::Cancel).await;
    assert!(matches!(home.open(&deal, terms(2)).await, CampaignOpen::Changed(_)));
    assert_eq!(home.open(&deal, terms(1)).await, CampaignOpen::BelowIssued { issued: 2 });
    assert_eq!(home.revoke(&deal, "alice", 1).await, Revoke::Revoked { remaining: 2 });
    assert!(matches!(home.open(&deal, terms(0)).await, CampaignOpen::Changed(_)));
    home.journal_is_whole(&deal).await;
}

async fn opening_again_leaves_the_switch_as_it_is(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(1)).await;
    for (change, state) in
        [(CampaignChange::Pause, CampaignState::Paused), (CampaignChange::Close, CampaignState::Closed)]
    {
        home.change(&coupon, change).await;
        for quantity in [5, 6] {
            let answer = home.open(&coupon, terms(quantity)).await;
            assert!(matches!(&answer, CampaignOpen::Changed(status) if status.state == state), "{answer:?}");
        }
    }
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::Closed]);
    home.journal_is_whole(&coupon).await;
}

async fn the_smallest_and_the_largest_quantity_are_kept_exactly(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, limited(MAX_QUANTITY, MAX_QUANTITY)).await;
    let status = home.status(&coupon).await;
    assert_eq!((status.quantity, status.per_user), (MAX_QUANTITY, Some(MAX_QUANTITY)));
    let answer = home.issue(&coupon, &["alice"]).await;
    assert_eq!(answer, [Issue::Issued { seq: 1, remaining: MAX_QUANTITY - 1 }]);
    home.journal_is_whole(&coupon).await;

    let nothing = home.opened(CampaignKind::Deal, terms(0)).await;
    assert_eq!(home.status(&nothing).await.state, CampaignState::SoldOut);
}

async fn every_name_kind_and_group_is_a_campaign_of_its_own(home: &Home) {
    let (prefix, group) = (fresh("campaign"), fresh("group"));
    let names = nasty_names(&prefix);
    let mut campaigns: Vec<_> = CampaignKind::ALL
        .into_iter()
        .flat_map(|kind| names.iter().map(move |name| Campaign::new(kind, name.clone())))
        .collect();
    // The same text, cut into group and name at different places; and a group of an unpleasant name.
    let kind = CampaignKind::Sku;
    campaigns.extend(names.iter().map(|name| in_group(kind, &group, name.as_str())));
    campaigns.push(in_group(kind, &prefix, "a"));
    campaigns.push(in_group(kind, &name(&format!("{prefix}:")), "a"));
    campaigns.push(in_group(kind, &name(&format!("{prefix}/a")), "a"));
    campaigns.push(in_group(kind, &prefix, "a/a"));
    for (quantity, campaign) in (1..).zip(&campaigns) {
        let answer = home.open(campaign, terms(quantity)).await;
        assert!(matches!(answer, CampaignOpen::Created(_)), "{campaign:?}");
    }
    for (quantity, campaign) in (1..).zip(&campaigns) {
        assert_eq!(home.status(campaign).await.quantity, quantity, "{campaign:?}");
    }
    for campaign in campaigns.iter().step_by(7).chain(campaigns.last()) {
        home.journal_is_whole(campaign).await;
    }
}

async fn an_opening_that_is_sent_again_is_done_once(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, terms(1)).await;
    let (first, later) = (terms(5), terms(6));
    home.is_done_once(
        &deal,
        async |sending| home.store.campaign_open(sending, &deal, &first).await,
        async |sending| home.store.campaign_open(sending, &deal, &later).await,
    )
    .await;
    assert_eq!(home.status(&deal).await.quantity, 6);
}

/// [`Store::campaign_change`](crate::store::Store::campaign_change)
pub async fn campaign_change(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_paused_campaign_grants_nothing_until_it_is_resumed(home).await;
    what_is_closed_does_not_come_back(home).await;
    restocking_adds_up_to_the_largest_quantity(home).await;
    a_change_to_what_is_so_already_changes_nothing(home).await;
    what_was_never_opened_cannot_be_changed(home).await;
    a_restock_that_is_sent_again_is_done_once(home).await;
}

async fn changed_to(home: &Home, campaign: &Campaign, change: CampaignChange) -> CampaignState {
    let answer = home.change(campaign, change).await;
    let CampaignChanged::Now(status) = answer else { panic!("{change:?}: {answer:?}") };
    assert_eq!(home.status(campaign).await, status);
    status.state
}

async fn a_paused_campaign_grants_nothing_until_it_is_resumed(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(2)).await;
    assert_eq!(changed_to(home, &coupon, CampaignChange::Pause).await, CampaignState::Paused);
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::Paused]);
    assert_eq!(changed_to(home, &coupon, CampaignChange::Resume).await, CampaignState::Open);
    assert_eq!(home.issue(&coupon, &["a"]).await, [Issue::Issued { seq: 1, remaining: 1 }]);
    let [_, paused, resumed, _] = &home.journal_is_whole(&coupon).await[..] else { panic!("not four") };
    assert_eq!(*paused, JournalChange::Changed { change: CampaignChange::Pause });
    assert_eq!(*resumed, JournalChange::Changed { change: CampaignChange::Resume });
}

async fn what_is_closed_does_not_come_back(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, terms(2)).await;
    home.change(&deal, CampaignChange::Pause).await;
    assert_eq!(changed_to(home, &deal, CampaignChange::Close).await, CampaignState::Closed);
    let closed = home.status(&deal).await;
    let too_many = CampaignChange::Restock { by: MAX_QUANTITY };
    for change in [CampaignChange::Pause, CampaignChange::Resume, RESTOCK_FIVE, too_many] {
        assert_eq!(home.change(&deal, change).await, CampaignChanged::Closed, "{change:?}");
    }
    assert_eq!(home.change(&deal, CampaignChange::Close).await, CampaignChanged::Now(closed.clone()));
    assert_eq!(home.status(&deal).await, closed);
    let changes = home.journal_is_whole(&deal).await;
    assert_eq!(changes.last(), Some(&JournalChange::Changed { change: CampaignChange::Close }));
}

async fn restocking_adds_up_to_the_largest_quantity(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(1)).await;
    home.issue(&coupon, &["a"]).await;
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::SoldOut]);
    assert_eq!(changed_to(home, &coupon, RESTOCK_FIVE).await, CampaignState::Open);
    assert_eq!(home.issue(&coupon, &["b"]).await, [Issue::Issued { seq: 2, remaining: 4 }]);
    // Also a paused one, and it stays paused.
    home.change(&coupon, CampaignChange::Pause).await;
    assert_eq!(changed_to(home, &coupon, RESTOCK_FIVE).await, CampaignState::Paused);
    let before = home.status(&coupon).await;
    for by in [MAX_QUANTITY - 10, MAX_QUANTITY, MAX_QUANTITY + 1, u64::MAX] {
        let answer = home.change(&coupon, CampaignChange::Restock { by }).await;
        assert_eq!(answer, CampaignChanged::TooMany, "{by}");
    }
    assert_eq!(home.status(&coupon).await, before);
    home.change(&coupon, CampaignChange::Restock { by: MAX_QUANTITY - 11 }).await;
    assert_eq!(home.status(&coupon).await.quantity, MAX_QUANTITY);
    let changes = home.journal_is_whole(&coupon).await;
    let last = CampaignChange::Restock { by: MAX_QUANTITY - 11 };
    assert_eq!(changes.last(), Some(&JournalChange::Changed { change: last }));
}

async fn a_change_to_what_is_so_already_changes_nothing(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(1)).await;
    let no_more = CampaignChange::Restock { by: 0 };
    for (real, idle) in [
        (CampaignChange::Pause, [CampaignChange::Pause, no_more]),
        (CampaignChange::Resume, [CampaignChange::Resume, no_more]),
        (CampaignChange::Close, [CampaignChange::Close, CampaignChange::Close]),
    ] {
        home.change(&coupon, real).await;
        let before = home.status(&coupon).await;
        for change in idle {
            assert_eq!(
                home.change(&coupon, change).await,
                CampaignChanged::Now(before.clone()),
                "{change:?}"
            );
        }
    }
    assert_eq!(home.journal_is_whole(&coupon).await.len(), 4);
}

async fn what_was_never_opened_cannot_be_changed(home: &Home) {
    let deal = unopened(CampaignKind::Deal);
    for change in [CampaignChange::Pause, CampaignChange::Resume, CampaignChange::Close, RESTOCK_FIVE] {
        assert_eq!(home.change(&deal, change).await, CampaignChanged::Unknown);
    }
    assert_eq!(home.store.campaign_read(&deal).await.unwrap(), None, "changing created it");
    assert_eq!(home.journal_of(&deal).await, []);
}

async fn a_restock_that_is_sent_again_is_done_once(home: &Home) {
    let sku = home.opened(CampaignKind::Sku, terms(1)).await;
    home.is_done_once(
        &sku,
        async |sending| home.store.campaign_change(sending, &sku, RESTOCK_FIVE).await,
        async |sending| home.store.campaign_change(sending, &sku, CampaignChange::Restock { by: 1 }).await,
    )
    .await;
    assert_eq!(home.status(&sku).await.quantity, 7);
}

/// [`Store::campaign_read`](crate::store::Store::campaign_read)
pub async fn campaign_read(home: &Home) {
    let _kept = JOURNAL.read().await;
    assert_eq!(home.store.campaign_read(&unopened(CampaignKind::Coupon)).await.unwrap(), None);
    let (coupon, opens_at) = (unopened(CampaignKind::Coupon), home.in_a_moment());
    let closes_at = opens_at + Duration::from_millis(1);
    home.open(&coupon, limited(1, 2).between(Some(opens_at), Some(closes_at)).unwrap()).await;
    let status = home.status(&coupon).await;
    assert_eq!((status.quantity, status.granted, status.held, status.remaining()), (1, 0, 0, 1));
    assert_eq!((status.opens_at, status.closes_at), (Some(opens_at), Some(closes_at)));
    assert_eq!((status.per_user, status.state), (Some(2), CampaignState::Scheduled));
    home.change(&coupon, CampaignChange::Pause).await;
    assert_eq!(home.status(&coupon).await.state, CampaignState::Paused, "paused before it opens");

    home.wait_until(closes_at).await;
    assert_eq!(home.status(&coupon).await.state, CampaignState::Closed);
    home.change(&coupon, CampaignChange::Resume).await;
    assert_eq!(home.status(&coupon).await.state, CampaignState::Closed);

    home.open(&coupon, terms(2)).await;
    assert_eq!(home.status(&coupon).await.state, CampaignState::Open, "only its time was over");
    home.issue(&coupon, &["a"]).await;
    home.held(&coupon, "b", 1).await;
    let status = home.status(&coupon).await;
    assert_eq!((status.granted, status.held, status.remaining()), (1, 1, 0));
    assert_eq!((status.seq, status.rev, status.state), (1, 6, CampaignState::SoldOut));
}

/// [`Store::share_read`](crate::store::Store::share_read)
pub async fn share_read(home: &Home) {
    let _kept = JOURNAL.read().await;
    what_was_never_opened_has_no_shares(home).await;
    of_a_coupon_somebody_has_one_or_a_hold(home).await;
    of_a_deal_somebody_has_grants_and_holds(home).await;
    every_user_has_a_share_of_its_own(home).await;
}

async fn what_was_never_opened_has_no_shares(home: &Home) {
    for kind in CampaignKind::ALL {
        assert_eq!(home.store.share_read(&unopened(kind), &name("a")).await.unwrap(), None);
        let campaign = home.opened(kind, terms(1)).await;
        assert_eq!(home.share(&campaign, "a").await, UserShare::default());
    }
}

fn share(granted: u64, held: u64, seq: Option<u64>) -> UserShare {
    UserShare { granted, held, seq }
}

async fn of_a_coupon_somebody_has_one_or_a_hold(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(5)).await;
    home.issue(&coupon, &["x", "a"]).await;
    let id = home.held(&coupon, "b", 1).await;
    assert_eq!(home.share(&coupon, "a").await, share(1, 0, Some(2)));
    assert_eq!(home.share(&coupon, "b").await, share(0, 1, None));
    home.settle(&coupon, id, "b", Settlement::Confirm).await;
    assert_eq!(home.share(&coupon, "b").await, share(1, 0, Some(3)));
    home.revoke(&coupon, "a", 2).await;
    assert_eq!(home.share(&coupon, "a").await, UserShare::default());
}

async fn of_a_deal_somebody_has_grants_and_holds(home: &Home) {
    for kind in [CampaignKind::Deal, CampaignKind::Sku] {
        let campaign = home.opened(kind, terms(50)).await;
        let first = home.held(&campaign, "a", 2).await;
        let second = home.held(&campaign, "a", 3).await;
        assert_eq!(home.share(&campaign, "a").await, share(0, 5, None));
        home.settle(&campaign, first, "a", Settlement::Confirm).await;
        assert_eq!(home.share(&campaign, "a").await, share(2, 3, None));
        if kind == CampaignKind::Deal {
            home.buy(&campaign, "a", 10).await;
        } else {
            home.order(&fresh("order"), "a", &[(&campaign, 10)]).await;
        }
        assert_eq!(home.share(&campaign, "a").await, share(12, 3, None));
        home.settle(&campaign, second, "a", Settlement::Cancel).await;
        home.revoke(&campaign, "a", 1).await;
        assert_eq!(home.share(&campaign, "a").await, share(10, 0, None));
        home.revoke(&campaign, "a", 2).await;
        assert_eq!(home.share(&campaign, "a").await, UserShare::default());
    }
}

async fn every_user_has_a_share_of_its_own(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, terms(10_000)).await;
    let users = nasty_names(&name("u"));
    for (quantity, user) in (1..).zip(&users) {
        home.buy(&deal, user.as_str(), quantity).await;
    }
    for (quantity, user) in (1..).zip(&users) {
        assert_eq!(home.share(&deal, user.as_str()).await, share(quantity, 0, None), "{user:?}");
    }
}

/// [`Store::campaign_list`](crate::store::Store::campaign_list)
pub async fn campaign_list(home: &Home) {
    let group = fresh("group");
    let mut ours: Vec<_> = nasty_names(&name("listed"))
        .into_iter()
        .map(|nasty| Campaign { group: Some(group.clone()), ..Campaign::new(CampaignKind::Sku, nasty) })
        .collect();
    for sku in &ours {
        home.open(sku, terms(1)).await;
        home.open(sku, terms(2)).await;
    }
    let partition = home.store.partition_of(ours[0].home());
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = home.store.campaign_list(partition, after.as_ref(), 7).await.unwrap();
        assert!(page.len() <= 7);
        let Some(last) = page.last().cloned() else { break };
        after = Some(last);
        found.extend(page);
    }
    let unknown = Campaign::new(CampaignKind::Coupon, fresh("unknown"));
    assert_eq!(home.store.campaign_read(&unknown).await.unwrap(), None);
    assert!(!found.contains(&unknown), "it was asked for, and never opened");
    found.retain(|campaign| campaign.group.as_ref() == Some(&group));
    found.sort();
    ours.sort();
    assert_eq!(found, ours, "each once");
    assert_eq!(home.store.campaign_list(partition, None, 0).await.unwrap(), []);
}
