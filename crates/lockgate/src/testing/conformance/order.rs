//! What the operations on orders must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::stock::{JOURNAL, in_group, is_refused, order, terms};
use super::{Home, fresh, name, nasty_names};
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, JournalChange, MAX_BATCH, MAX_QUANTITY, OrderItem, OrderPlace,
    OrderStatus, REQUEST_KEPT, Revoke, Sending, Shortage, UserShare,
};

const SKU: CampaignKind = CampaignKind::Sku;

/// [`Store::order_place`](crate::store::Store::order_place)
pub async fn order_place(home: &Home) {
    let _kept = JOURNAL.read().await;
    an_order_takes_all_of_it(home).await;
    an_order_that_is_short_takes_nothing_and_names_every_shortage(home).await;
    an_article_that_cannot_be_had_denies_the_order(home).await;
    an_order_waits_for_the_window_of_its_articles(home).await;
    an_order_that_is_placed_again_is_placed_once(home).await;
    an_order_with_another_content_is_not_the_same(home).await;
    a_denied_order_is_decided_anew(home).await;
    one_batch_may_place_several_orders(home).await;
    the_largest_quantity_can_be_ordered(home).await;
    orders_may_be_called_anything(home).await;
    a_large_batch_is_placed_whole_and_a_larger_one_refused_whole(home).await;
    a_crowd_orders_what_there_is(home).await;
    a_batch_that_is_sent_again_is_placed_once(home).await;
}

fn placed(seqs: &[u64]) -> OrderPlace {
    OrderPlace::Placed { seqs: seqs.to_vec() }
}

fn already(seqs: &[u64]) -> OrderPlace {
    OrderPlace::AlreadyPlaced { seqs: seqs.to_vec() }
}

async fn an_order_takes_all_of_it(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    let (first, second) = (fresh("order"), fresh("order"));
    assert_eq!(home.order(&first, "a", &[(&shoe, 1), (&shirt, 2), (&shoe, 1)]).await, placed(&[1, 1]));
    assert_eq!(home.order(&second, "b", &[(&shoe, 3)]).await, placed(&[2]));
    let (shirts, shoes) = (home.status(&shirt).await, home.status(&shoe).await);
    assert_eq!((shirts.granted, shirts.seq, shirts.rev), (2, 1, 2));
    assert_eq!((shoes.granted, shoes.seq, shoes.rev), (5, 2, 3));
    assert_eq!(home.share(&shoe, "a").await, UserShare { granted: 2, held: 0, seq: None });
    let bought = |seq, user, quantity, id: &Name| JournalChange::Bought {
        seq,
        user: name(user),
        quantity,
        request: Some(id.clone()),
        pass: None,
    };
    assert_eq!(home.journal_is_whole(&shirt).await[1..], [bought(1, "a", 2, &first)]);
    assert_eq!(
        home.journal_is_whole(&shoe).await[1..],
        [bought(1, "a", 2, &first), bought(2, "b", 3, &second)]
    );
}

async fn an_order_that_is_short_takes_nothing_and_names_every_shortage(home: &Home) {
    let skus = home.opened_together(SKU, [5, 1, 9, 0]).await;
    let wanted: Vec<_> = skus.iter().zip([5, 2, 9, 1]).collect();
    home.held(&skus[0], "b", 1).await;
    let short = |item, requested, available| Shortage { item, requested, available };
    assert_eq!(
        home.order(&fresh("order"), "a", &wanted).await,
        OrderPlace::Short(vec![short(0, 5, 4), short(1, 2, 1), short(3, 1, 0)])
    );
    for sku in &skus {
        assert_eq!((home.status(sku).await.granted, home.status(sku).await.seq), (0, 0), "taken in part");
        home.journal_is_whole(sku).await;
    }
    // The first items are there and the last is not: the order in which they are looked at does not matter.
    let late = home.order(&fresh("order"), "a", &[(&skus[2], 9), (&skus[3], 1)]).await;
    assert_eq!(late, OrderPlace::Short(vec![short(1, 1, 0)]));
    assert_eq!(home.status(&skus[2]).await.granted, 0, "taken in part");
}

async fn an_article_that_cannot_be_had_denies_the_order(home: &Home) {
    let opens_at = home.in_a_moment() + Duration::from_secs(60);
    let [open, paused, closed, later] = home.opened_together(SKU, [9, 9, 9, 9]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..open.clone() };
    home.change(&paused, CampaignChange::Pause).await;
    home.change(&closed, CampaignChange::Close).await;
    home.open(&later, terms(9).between(Some(opens_at), None).unwrap()).await;
    for (sku, denied) in [
        (&paused, OrderPlace::Paused { item: 1 }),
        (&closed, OrderPlace::Closed { item: 1 }),
        (&later, OrderPlace::NotOpen { item: 1, opens_at }),
        (&unknown, OrderPlace::Unknown { item: 1 }),
    ] {
        // That it is short of the first item is said only of an order that could be placed at all.
        for wanted in [1, 10] {
            let answer = home.order(&fresh("order"), "a", &[(sku, 1), (&open, wanted)]).await;
            assert_eq!(answer, denied);
        }
    }
    let mixed = home.order(&fresh("order"), "a", &[(&closed, 1), (&paused, 1), (&later, 10)]).await;
    assert_eq!(mixed, OrderPlace::Paused { item: 0 }, "the first item that denies it is told");
    assert_eq!(home.store.campaign_read(&unknown).await.unwrap(), None, "asking created it");
    for sku in [&open, &paused, &closed, &later] {
        assert_eq!(home.status(sku).await.granted, 0, "taken in part");
        home.journal_is_whole(sku).await;
    }
}

async fn an_order_waits_for_the_window_of_its_articles(home: &Home) {
    let [always, later] = home.opened_together(SKU, [9, 9]).await;
    let opens_at = home.in_a_moment();
    home.open(&later, terms(9).between(Some(opens_at), None).unwrap()).await;
    let (id, wanted) = (fresh("order"), [(&always, 1), (&later, 1)]);
    assert_eq!(home.order(&id, "a", &wanted).await, OrderPlace::NotOpen { item: 1, opens_at });
    home.wait_until(opens_at).await;
    assert_eq!(home.order(&id, "a", &wanted).await, placed(&[1, 1]));
}

async fn an_order_that_is_placed_again_is_placed_once(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    let id = fresh("order");
    home.order(&fresh("order"), "b", &[(&shoe, 1)]).await;
    assert_eq!(home.order(&id, "a", &[(&shirt, 2), (&shoe, 2)]).await, placed(&[1, 2]));
    home.change(&shoe, CampaignChange::Close).await;
    let before = (home.status(&shirt).await, home.status(&shoe).await);
    assert_eq!(home.order(&id, "a", &[(&shoe, 2), (&shirt, 2)]).await, already(&[1, 2]));
    assert_eq!(home.order(&id, "a", &[(&shoe, 1), (&shirt, 2), (&shoe, 1)]).await, already(&[1, 2]));
    assert_eq!((home.status(&shirt).await, home.status(&shoe).await), before);
    assert_eq!(home.revoke(&shirt, "a", 1).await, Revoke::Revoked { remaining: 10 });
    assert_eq!(home.order(&id, "a", &[(&shirt, 2), (&shoe, 2)]).await, already(&[1, 2]));
    home.journal_is_whole(&shirt).await;
    home.journal_is_whole(&shoe).await;

    if home.time_can_be_moved {
        home.let_pass(REQUEST_KEPT).await;
        let again = home.order(&id, "a", &[(&shirt, 2)]).await;
        assert_eq!(again, placed(&[2]), "remembered for ever");
    }
}

async fn an_order_with_another_content_is_not_the_same(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    let id = fresh("order");
    home.order(&id, "a", &[(&shirt, 2), (&shoe, 1)]).await;
    let before = (home.status(&shirt).await, home.status(&shoe).await);
    for (user, wanted) in [
        ("b", vec![(&shirt, 2), (&shoe, 1)]),
        ("a", vec![(&shirt, 1), (&shoe, 1)]),
        ("a", vec![(&shirt, 1), (&shoe, 2)]),
        ("a", vec![(&shirt, 2)]),
        ("a", vec![(&shoe, 1)]),
    ] {
        assert_eq!(home.order(&id, user, &wanted).await, OrderPlace::RequestReused, "{user} {wanted:?}");
    }
    let unknown = Campaign { name: name("nobody opened this"), ..shirt.clone() };
    assert_eq!(home.order(&id, "a", &[(&unknown, 1)]).await, OrderPlace::RequestReused);
    assert_eq!((home.status(&shirt).await, home.status(&shoe).await), before);
}

async fn a_denied_order_is_decided_anew(home: &Home) {
    let [shirt] = home.opened_together(SKU, [1]).await;
    let id = fresh("order");
    assert!(matches!(home.order(&id, "a", &[(&shirt, 2)]).await, OrderPlace::Short(_)));
    home.change(&shirt, CampaignChange::Pause).await;
    assert_eq!(home.order(&id, "a", &[(&shirt, 2)]).await, OrderPlace::Paused { item: 0 });
    home.change(&shirt, CampaignChange::Resume).await;
    home.change(&shirt, CampaignChange::Restock { by: 2 }).await;
    assert_eq!(home.order(&id, "b", &[(&shirt, 3)]).await, placed(&[1]));
}

async fn one_batch_may_place_several_orders(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [4, 2]).await;
    let (one, two, three) = (fresh("order"), fresh("order"), fresh("order"));
    let orders = [
        order(&one, "a", &[(&shirt, 1), (&shoe, 1)]),
        order(&two, "a", &[(&shirt, 1), (&shoe, 2)]),
        order(&one, "a", &[(&shirt, 1), (&shoe, 1)]),
        order(&one, "b", &[(&shirt, 1), (&shoe, 1)]),
        order(&three, "b", &[(&shoe, 1), (&shirt, 3)]),
        order(&two, "a", &[(&shirt, 1)]),
    ];
    let short = |item, requested, available| Shortage { item, requested, available };
    assert_eq!(
        home.store.order_place(&Sending::once(), &orders).await.unwrap(),
        [
            placed(&[1, 1]),
            OrderPlace::Short(vec![short(1, 2, 1)]),
            already(&[1, 1]),
            OrderPlace::RequestReused,
            placed(&[2, 2]),
            OrderPlace::Short(vec![short(0, 1, 0)]),
        ]
    );
    home.journal_is_whole(&shirt).await;
    home.journal_is_whole(&shoe).await;
    assert_eq!(home.store.order_place(&Sending::once(), &[]).await.unwrap(), []);
}

async fn the_largest_quantity_can_be_ordered(home: &Home) {
    let [much, little] = home.opened_together(SKU, [MAX_QUANTITY, MAX_QUANTITY - 1]).await;
    let wanted = [(&much, MAX_QUANTITY), (&little, MAX_QUANTITY)];
    let short = Shortage { item: 1, requested: MAX_QUANTITY, available: MAX_QUANTITY - 1 };
    assert_eq!(home.order(&fresh("order"), "a", &wanted).await, OrderPlace::Short(vec![short]));
    let id = fresh("order");
    assert_eq!(home.order(&id, "a", &wanted[..1]).await, placed(&[1]));
    let status = home.store.order_read(much.home(), &id).await.unwrap().unwrap();
    assert_eq!(status.items[0].0.quantity, MAX_QUANTITY);
    home.journal_is_whole(&much).await;
}

async fn orders_may_be_called_anything(home: &Home) {
    let (group, names) = (fresh("group"), nasty_names(&fresh("nasty")));
    let skus: Vec<_> = names.iter().map(|sku| in_group(SKU, &group, sku.as_str())).collect();
    for sku in &skus {
        home.open(sku, terms(100)).await;
    }
    let wanted: Vec<_> = skus.iter().map(|sku| (sku, 1)).collect();
    for (number, id) in (1..).zip(&names) {
        let answer = home.order(id, id.as_str(), &wanted[..3]).await;
        assert_eq!(answer, placed(&[number; 3]), "{id:?}");
    }
    for (number, id) in (1..).zip(&names) {
        assert_eq!(home.order(id, id.as_str(), &wanted[..3]).await, already(&[number; 3]), "{id:?}");
        let status = home.store.order_read(&group, id).await.unwrap().unwrap();
        assert_eq!(status.user, *id);
    }
    let (id, all) = (fresh("order"), order(&fresh("order"), "a", &wanted));
    assert!(matches!(home.order(&id, "a", &wanted).await, OrderPlace::Placed { .. }));
    let status = home.store.order_read(&group, &id).await.unwrap().unwrap();
    assert_eq!(status.items.into_iter().map(|(item, _)| item).collect::<Vec<_>>(), all.items());
    home.journal_is_whole(&skus[0]).await;
}

async fn a_large_batch_is_placed_whole_and_a_larger_one_refused_whole(home: &Home) {
    let group = fresh("group");
    let skus: Vec<_> = (0..MAX_BATCH).map(|sku| in_group(SKU, &group, &format!("{sku:04}"))).collect();
    let few = &skus[..10];
    for sku in few {
        home.open(sku, terms(1_000)).await;
    }
    let wanted: Vec<_> = few.iter().map(|sku| (sku, 1)).collect();
    let orders: Vec<_> = (0..=MAX_BATCH / 10).map(|_| order(&fresh("order"), "a", &wanted)).collect();
    is_refused(&home.store.order_place(&Sending::once(), &orders).await);
    assert_eq!(home.status(&few[0]).await.granted, 0);
    let answers = home.store.order_place(&Sending::once(), &orders[1..]).await.unwrap();
    assert_eq!(answers.last(), Some(&placed(&[MAX_BATCH as u64 / 10; 10])));
    home.journal_is_whole(&few[9]).await;

    // One order of as many articles as there may be; the last of them is not there.
    for sku in &skus[10..MAX_BATCH - 1] {
        home.open(sku, terms(1)).await;
    }
    let wanted: Vec<_> = skus.iter().map(|sku| (sku, 1)).collect();
    let (id, last) = (fresh("order"), MAX_BATCH - 1);
    assert_eq!(home.order(&id, "a", &wanted).await, OrderPlace::Unknown { item: last });
    home.open(&skus[last], terms(1)).await;
    assert!(
        matches!(home.order(&id, "a", &wanted).await, OrderPlace::Placed { seqs } if seqs.len() == MAX_BATCH)
    );
    assert_eq!(home.status(&skus[last]).await.granted, 1);
}

/// 60 people order two articles crosswise, twice each; there is enough for 40.
async fn a_crowd_orders_what_there_is(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [40, 40]).await;
    let mut crowd = tokio::task::JoinSet::new();
    for user in 0..60 {
        let id = fresh("order");
        for _ in 0..2 {
            let (store, shirt, shoe, id) = (home.store.clone(), shirt.clone(), shoe.clone(), id.clone());
            crowd.spawn(async move {
                let mut wanted = [(&shirt, 1), (&shoe, 1)];
                wanted.rotate_left(user % 2);
                let orders = [order(&id, &format!("user-{user}"), &wanted)];
                store.order_place(&Sending::once(), &orders).await.unwrap().remove(0)
            });
        }
    }
    let answers = crowd.join_all().await;
    let placed = answers.iter().filter(|answer| matches!(answer, OrderPlace::Placed { .. })).count();
    assert_eq!(placed, 40);
    for sku in [&shirt, &shoe] {
        assert_eq!((home.status(sku).await.granted, home.status(sku).await.seq), (40, 40));
        home.journal_is_whole(sku).await;
    }
}

async fn a_batch_that_is_sent_again_is_placed_once(home: &Home) {
    let [shirt] = home.opened_together(SKU, [9]).await;
    let first = [order(&fresh("order"), "a", &[(&shirt, 2)])];
    let later = [order(&fresh("order"), "a", &[(&shirt, 1)])];
    home.is_done_once(
        &shirt,
        async |sending| home.store.order_place(sending, &first).await,
        async |sending| home.store.order_place(sending, &later).await,
    )
    .await;
    assert_eq!(home.status(&shirt).await.granted, 3);
}

/// [`Store::order_read`](crate::store::Store::order_read)
pub async fn order_read(home: &Home) {
    let _kept = JOURNAL.read().await;
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    let (group, id) = (shirt.home().clone(), fresh("order"));
    assert_eq!(home.store.order_read(&group, &id).await.unwrap(), None);
    home.order(&id, "a", &[(&shoe, 99)]).await;
    assert_eq!(home.store.order_read(&group, &id).await.unwrap(), None, "it was denied");
    home.order(&fresh("order"), "b", &[(&shoe, 1)]).await;
    home.order(&id, "a", &[(&shoe, 2), (&shirt, 3)]).await;
    let item = |sku: &Campaign, quantity| OrderItem { sku: sku.clone(), quantity };
    let status = OrderStatus { user: name("a"), items: vec![(item(&shirt, 3), 1), (item(&shoe, 2), 2)] };
    assert_eq!(home.store.order_read(&group, &id).await.unwrap(), Some(status.clone()));
    // What becomes of the grants afterwards does not change what was ordered.
    home.revoke(&shirt, "a", 1).await;
    home.order(&id, "b", &[(&shoe, 1)]).await;
    assert_eq!(home.store.order_read(&group, &id).await.unwrap(), Some(status));

    let alone = home.opened(SKU, terms(3)).await;
    let id = fresh("order");
    home.order(&id, "a", &[(&alone, 3)]).await;
    let status = OrderStatus { user: name("a"), items: vec![(item(&alone, 3), 1)] };
    assert_eq!(home.store.order_read(alone.home(), &id).await.unwrap(), Some(status));
    if home.time_can_be_moved {
        home.let_pass(REQUEST_KEPT).await;
        assert_eq!(home.store.order_read(alone.home(), &id).await.unwrap(), None);
    }
}
