//! What the deal operation must do. Taking back what was bought is in `revoke.rs`.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::stock::{JOURNAL, is_refused, limited, purchase, terms, unopened};
use super::{Home, name, nasty_names, pass};
use crate::store::{
    Campaign, CampaignChange, CampaignKind, JournalChange, MAX_BATCH, MAX_QUANTITY, Purchase, REQUEST_KEPT,
    Revoke, Sending, Settlement, Terms, UserShare,
};

/// [`Store::deal_purchase`](crate::store::Store::deal_purchase)
pub async fn deal_purchase(home: &Home) {
    let _kept = JOURNAL.read().await;
    each_wish_is_met_whole_or_not_at_all(home).await;
    nobody_has_more_than_one_user_may(home).await;
    the_first_reason_to_deny_is_told(home).await;
    a_purchase_waits_for_its_window(home).await;
    a_request_that_is_sent_again_buys_once(home).await;
    a_request_with_another_content_is_not_the_same(home).await;
    a_denial_is_decided_anew(home).await;
    one_batch_may_concern_several_deals(home).await;
    wishes_that_make_no_sense_are_refused(home).await;
    the_largest_quantity_can_be_bought(home).await;
    users_and_requests_may_be_called_anything(home).await;
    a_large_batch_is_sold_whole_and_a_larger_one_refused_whole(home).await;
    a_crowd_buys_what_there_is(home).await;
    a_batch_that_is_sent_again_sells_once(home).await;
    pass::a_pass_is_demanded(home, pass::Way::Buy).await;
    pass::a_request_is_answered_again_whatever_is_shown(home).await;
}

const fn bought(seq: u64, purchased: u64, remaining: u64) -> Purchase {
    Purchase::Bought { seq, purchased, remaining }
}

const fn already(seq: u64, purchased: u64, remaining: u64) -> Purchase {
    Purchase::AlreadyBought { seq, purchased, remaining }
}

async fn deal(home: &Home, terms: Terms) -> Campaign {
    home.opened(CampaignKind::Deal, terms).await
}

async fn each_wish_is_met_whole_or_not_at_all(home: &Home) {
    let deal = deal(home, terms(10)).await;
    assert_eq!(home.buy(&deal, "alice", 4).await, bought(1, 4, 6));
    assert_eq!(home.buy(&deal, "bob", 7).await, Purchase::SoldOut { remaining: 6 });
    assert_eq!(home.buy(&deal, "alice", 1).await, bought(2, 5, 5));
    assert_eq!(home.buy(&deal, "bob", 5).await, bought(3, 5, 0));
    assert_eq!(home.buy(&deal, "bob", 1).await, Purchase::SoldOut { remaining: 0 });
    let status = home.status(&deal).await;
    assert_eq!((status.granted, status.seq, status.rev), (10, 3, 4));
    let bought = |seq, user, quantity| JournalChange::Bought {
        seq,
        user: name(user),
        quantity,
        request: None,
        pass: None,
    };
    assert_eq!(
        home.journal_is_whole(&deal).await[1..],
        [bought(1, "alice", 4), bought(2, "alice", 1), bought(3, "bob", 5)]
    );
    let none = self::deal(home, terms(0)).await;
    assert_eq!(home.buy(&none, "alice", 1).await, Purchase::SoldOut { remaining: 0 });
}

async fn nobody_has_more_than_one_user_may(home: &Home) {
    let deal = deal(home, limited(20, 5)).await;
    let exceeded = |taken| Purchase::LimitExceeded { taken, per_user: 5 };
    assert_eq!(home.buy(&deal, "a", 6).await, exceeded(0));
    assert_eq!(home.buy(&deal, "a", 3).await, bought(1, 3, 17));
    assert_eq!(home.buy(&deal, "a", 3).await, exceeded(3));
    // What is held counts as if it were bought.
    let id = home.held(&deal, "a", 1).await;
    assert_eq!(home.buy(&deal, "a", 2).await, exceeded(4));
    assert_eq!(home.buy(&deal, "a", 1).await, bought(2, 4, 15));
    assert_eq!(home.buy(&deal, "a", 1).await, exceeded(5));
    assert_eq!(home.buy(&deal, "b", 5).await, bought(3, 5, 10));
    home.settle(&deal, id, "a", Settlement::Confirm).await;
    assert_eq!(home.buy(&deal, "a", 1).await, exceeded(5));
    // A limit that is lowered below what somebody has takes nothing away.
    home.open(&deal, limited(20, 2)).await;
    assert_eq!(home.buy(&deal, "a", 1).await, Purchase::LimitExceeded { taken: 5, per_user: 2 });
    home.open(&deal, terms(20)).await;
    assert_eq!(home.buy(&deal, "a", 10).await, bought(5, 15, 0));
    home.journal_is_whole(&deal).await;
}

async fn the_first_reason_to_deny_is_told(home: &Home) {
    let deal = unopened(CampaignKind::Deal);
    assert_eq!(home.buy_as("r", &deal, "a", 1).await, Purchase::Unknown);
    assert_eq!(home.store.campaign_read(&deal).await.unwrap(), None, "asking created it");
    home.open(&deal, limited(3, 2)).await;
    home.buy_as("r", &deal, "a", 2).await;
    // Over the limit and too few left: the limit comes first.
    assert_eq!(home.buy(&deal, "a", 2).await, Purchase::LimitExceeded { taken: 2, per_user: 2 });
    assert_eq!(home.buy(&deal, "b", 2).await, Purchase::SoldOut { remaining: 1 });
    let opens_at = home.in_a_moment() + Duration::from_secs(60);
    home.open(&deal, limited(3, 2).between(Some(opens_at), None).unwrap()).await;
    assert_eq!(home.buy(&deal, "a", 9).await, Purchase::NotOpen { opens_at });
    home.change(&deal, CampaignChange::Pause).await;
    assert_eq!(home.buy(&deal, "a", 9).await, Purchase::Paused);
    home.change(&deal, CampaignChange::Close).await;
    assert_eq!(home.buy(&deal, "a", 9).await, Purchase::Closed);
    // What happened before comes before all of it.
    assert_eq!(home.buy_as("r", &deal, "a", 2).await, already(1, 2, 1));
    assert_eq!(home.buy_as("r", &deal, "a", 1).await, Purchase::RequestReused);
    assert_eq!(home.buy_as("other", &deal, "a", 1).await, Purchase::Closed);
    home.journal_is_whole(&deal).await;
}

async fn a_purchase_waits_for_its_window(home: &Home) {
    let (deal, opens_at) = (unopened(CampaignKind::Deal), home.in_a_moment());
    let closes_at = opens_at + super::stock::MOMENT;
    home.open(&deal, terms(9).between(Some(opens_at), Some(closes_at)).unwrap()).await;
    assert_eq!(home.buy(&deal, "a", 1).await, Purchase::NotOpen { opens_at });
    home.wait_until(opens_at).await;
    assert_eq!(home.buy(&deal, "a", 1).await, bought(1, 1, 8));
    home.wait_until(closes_at).await;
    assert_eq!(home.buy(&deal, "a", 1).await, Purchase::Closed);
}

async fn a_request_that_is_sent_again_buys_once(home: &Home) {
    let deal = deal(home, terms(10)).await;
    assert_eq!(home.buy_as("r-1", &deal, "a", 2).await, bought(1, 2, 8));
    assert_eq!(home.buy_as("r-2", &deal, "a", 2).await, bought(2, 4, 6));
    let before = home.status(&deal).await;
    for _ in 0..2 {
        assert_eq!(home.buy_as("r-1", &deal, "a", 2).await, already(1, 2, 8), "the numbers of then");
    }
    assert_eq!(home.status(&deal).await, before);
    // Two wishes without a request id are two wishes.
    assert_eq!(home.buy(&deal, "a", 2).await, bought(3, 6, 4));
    assert_eq!(home.buy(&deal, "a", 2).await, bought(4, 8, 2));
    // Revoked, it has still happened.
    assert_eq!(home.revoke(&deal, "a", 1).await, Revoke::Revoked { remaining: 4 });
    assert_eq!(home.buy_as("r-1", &deal, "a", 2).await, already(1, 2, 8));
    let changes = home.journal_is_whole(&deal).await;
    let request = Some(name("r-1"));
    assert_eq!(
        changes[1],
        JournalChange::Bought { seq: 1, user: name("a"), quantity: 2, request, pass: None }
    );

    if home.time_can_be_moved {
        home.let_pass(REQUEST_KEPT).await;
        assert_eq!(home.buy_as("r-1", &deal, "a", 2).await, bought(5, 8, 2), "remembered for ever");
    }
}

async fn a_request_with_another_content_is_not_the_same(home: &Home) {
    let deal = deal(home, limited(10, 5)).await;
    home.buy_as("r", &deal, "a", 2).await;
    let before = home.status(&deal).await;
    assert_eq!(home.buy_as("r", &deal, "b", 2).await, Purchase::RequestReused);
    assert_eq!(home.buy_as("r", &deal, "a", 1).await, Purchase::RequestReused);
    assert_eq!(home.buy_as("r", &deal, "a", 100).await, Purchase::RequestReused, "the limit came first");
    assert_eq!(home.status(&deal).await, before);
    assert_eq!(home.buy_as("r", &deal, "a", 2).await, already(1, 2, 8));
}

async fn a_denial_is_decided_anew(home: &Home) {
    let deal = deal(home, limited(1, 3)).await;
    assert_eq!(home.buy_as("r", &deal, "a", 2).await, Purchase::SoldOut { remaining: 1 });
    assert_eq!(home.buy_as("r", &deal, "a", 4).await, Purchase::LimitExceeded { taken: 0, per_user: 3 });
    home.change(&deal, CampaignChange::Pause).await;
    assert_eq!(home.buy_as("r", &deal, "b", 1).await, Purchase::Paused);
    home.change(&deal, CampaignChange::Resume).await;
    home.change(&deal, CampaignChange::Restock { by: 1 }).await;
    assert_eq!(home.buy_as("r", &deal, "a", 2).await, bought(1, 2, 0));
}

async fn one_batch_may_concern_several_deals(home: &Home) {
    let [many, few] = home.opened_together(CampaignKind::Deal, [10, 2]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..many.clone() };
    let wishes = [
        purchase(&many, "a", 1, Some("r")),
        purchase(&few, "a", 2, None),
        purchase(&unknown, "a", 1, None),
        purchase(&many, "a", 1, Some("r")),
        purchase(&many, "a", 2, Some("r")),
        purchase(&few, "b", 1, None),
        purchase(&many, "a", 3, None),
        purchase(&many, "b", 3, None),
    ];
    assert_eq!(
        home.store.deal_purchase(&Sending::once(), &wishes).await.unwrap(),
        [
            bought(1, 1, 9),
            bought(1, 2, 0),
            Purchase::Unknown,
            already(1, 1, 9),
            Purchase::RequestReused,
            Purchase::SoldOut { remaining: 0 },
            bought(2, 4, 6),
            bought(3, 3, 3),
        ]
    );
    home.journal_is_whole(&many).await;
    home.journal_is_whole(&few).await;
    assert_eq!(home.store.deal_purchase(&Sending::once(), &[]).await.unwrap(), []);
}

async fn wishes_that_make_no_sense_are_refused(home: &Home) {
    let deal = deal(home, terms(10)).await;
    for quantity in [0, MAX_QUANTITY + 1, u64::MAX] {
        let wishes = [purchase(&deal, "a", 1, None), purchase(&deal, "a", quantity, None)];
        is_refused(&home.store.deal_purchase(&Sending::once(), &wishes).await);
    }
    for kind in [CampaignKind::Coupon, CampaignKind::Sku] {
        let other = Campaign { kind, ..deal.clone() };
        let wishes = [purchase(&deal, "a", 1, None), purchase(&other, "a", 1, None)];
        is_refused(&home.store.deal_purchase(&Sending::once(), &wishes).await);
    }
    assert_eq!(home.status(&deal).await.granted, 0, "a refused batch was done in part");
}

async fn the_largest_quantity_can_be_bought(home: &Home) {
    let deal = deal(home, limited(MAX_QUANTITY, MAX_QUANTITY)).await;
    assert_eq!(home.buy(&deal, "a", MAX_QUANTITY - 1).await, bought(1, MAX_QUANTITY - 1, 1));
    assert_eq!(
        home.buy(&deal, "a", MAX_QUANTITY).await,
        Purchase::LimitExceeded { taken: MAX_QUANTITY - 1, per_user: MAX_QUANTITY }
    );
    assert_eq!(home.buy(&deal, "b", 2).await, Purchase::SoldOut { remaining: 1 });
    assert_eq!(home.buy_as("r", &deal, "a", 1).await, bought(2, MAX_QUANTITY, 0));
    assert_eq!(home.buy_as("r", &deal, "a", 1).await, already(2, MAX_QUANTITY, 0));
    home.journal_is_whole(&deal).await;
    assert_eq!(home.revoke(&deal, "a", 1).await, Revoke::Revoked { remaining: MAX_QUANTITY - 1 });
    home.journal_is_whole(&deal).await;
}

async fn users_and_requests_may_be_called_anything(home: &Home) {
    let deal = deal(home, terms(10_000)).await;
    let texts = nasty_names(&name("u"));
    let wish = |(quantity, text): (u64, &crate::key::Name)| {
        purchase(&deal, text.as_str(), quantity, Some(text.as_str()))
    };
    let wishes: Vec<_> = (1..).zip(&texts).map(wish).collect();
    let answers = home.store.deal_purchase(&Sending::once(), &wishes).await.unwrap();
    let again = home.store.deal_purchase(&Sending::once(), &wishes).await.unwrap();
    let mut left = 10_000;
    for (number, (first, second)) in (1..).zip(answers.iter().zip(&again)) {
        left -= number;
        assert_eq!((*first, *second), (bought(number, number, left), already(number, number, left)));
    }
    for (wish, change) in wishes.iter().zip(&home.journal_is_whole(&deal).await[1..]) {
        let said = matches!(change, JournalChange::Bought { user, request, .. }
            if *user == wish.user && *request == wish.request);
        assert!(said, "{change:?} instead of {wish:?}");
    }
}

async fn a_large_batch_is_sold_whole_and_a_larger_one_refused_whole(home: &Home) {
    let deal = deal(home, terms(MAX_BATCH as u64)).await;
    let wishes: Vec<_> = (0..=MAX_BATCH).map(|user| purchase(&deal, &format!("{user}"), 1, None)).collect();
    is_refused(&home.store.deal_purchase(&Sending::once(), &wishes).await);
    assert_eq!(home.status(&deal).await.granted, 0);
    let answers = home.store.deal_purchase(&Sending::once(), &wishes[..MAX_BATCH]).await.unwrap();
    assert_eq!(answers.last(), Some(&bought(MAX_BATCH as u64, 1, 0)));
    home.journal_is_whole(&deal).await;
}

/// 40 people want four, one after the other and twice each request; three are allowed, and there are 100.
async fn a_crowd_buys_what_there_is(home: &Home) {
    let deal = deal(home, limited(100, 3)).await;
    let mut crowd = tokio::task::JoinSet::new();
    for user in 0..40 {
        for _ in 0..2 {
            let (store, deal) = (home.store.clone(), deal.clone());
            crowd.spawn(async move {
                for request in 0..4 {
                    let request = format!("{user}-{request}");
                    let wish = purchase(&deal, &format!("user-{user}"), 1, Some(&request));
                    store.deal_purchase(&Sending::once(), &[wish]).await.unwrap();
                }
            });
        }
    }
    crowd.join_all().await;
    let status = home.status(&deal).await;
    assert_eq!((status.granted, status.seq, status.rev), (100, 100, 101));
    let mut all = 0;
    for user in 0..40 {
        let UserShare { granted, held: 0, .. } = home.share(&deal, &format!("user-{user}")).await else {
            unreachable!("nothing is held")
        };
        assert!(granted <= 3, "user {user} has {granted}");
        all += granted;
    }
    assert_eq!(all, 100);
    home.journal_is_whole(&deal).await;
}

async fn a_batch_that_is_sent_again_sells_once(home: &Home) {
    let deal = deal(home, terms(9)).await;
    let (first, later) = ([purchase(&deal, "a", 2, None)], [purchase(&deal, "b", 1, None)]);
    home.is_done_once(
        &deal,
        async |sending| home.store.deal_purchase(sending, &first).await,
        async |sending| home.store.deal_purchase(sending, &later).await,
    )
    .await;
    assert_eq!(home.status(&deal).await.granted, 3);
}
