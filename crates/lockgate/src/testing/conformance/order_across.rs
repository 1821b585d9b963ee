//! What the parts of orders over several partitions must do, each in its partition.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::stock::{JOURNAL, LONG_HOLD, MOMENT, in_group, is_refused, terms};
use super::{Home, fresh, name, nasty_names};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, HoldId, HoldState, JournalChange, MAX_ORDER_ITEMS, MAX_QUANTITY,
    OrderItem, OrderPart, OrderReserve, OrderSettle, PartItem, Sending, Settlement, Settlement::Cancel,
    Settlement::Confirm, Shortage, Token, UserShare,
};

const SKU: CampaignKind = CampaignKind::Sku;

/// Where the end of time is: what an order has put aside does not go back by itself.
const NEVER: Timestamp = Timestamp::from_micros(MAX_QUANTITY);

/// What a new attempt at an order wants of one partition: of each item its place in the whole order, the article and how many.
fn part(order: &Name, user: &str, items: &[(usize, &Campaign, u64)]) -> OrderPart {
    let item = |(place, sku, quantity): &(usize, &Campaign, u64)| PartItem {
        place: *place,
        item: OrderItem { sku: (*sku).clone(), quantity: *quantity },
        hold: HoldId::random(),
    };
    OrderPart::new(order.clone(), Token::random(), name(user), items.iter().map(item).collect()).unwrap()
}

/// The same for an order that nobody asks for again.
fn new_part(items: &[(usize, &Campaign, u64)]) -> OrderPart {
    part(&fresh("order"), "a", items)
}

impl Home {
    /// Puts a part aside for longer than the test takes.
    async fn reserve(&self, part: &OrderPart) -> OrderReserve {
        self.reserve_for(part, Some(LONG_HOLD)).await
    }

    async fn reserve_for(&self, part: &OrderPart, doubt_after: Option<Duration>) -> OrderReserve {
        self.store.order_reserve(&Sending::once(), part, doubt_after).await.unwrap()
    }

    async fn reserved(&self, items: &[(usize, &Campaign, u64)]) -> OrderPart {
        let part = new_part(items);
        let answer = self.reserve(&part).await;
        assert!(matches!(answer, OrderReserve::Reserved { .. }), "{answer:?}");
        part
    }

    async fn settle_part(&self, part: &OrderPart, settlement: Settlement) -> OrderSettle {
        self.store.order_settle(&Sending::once(), part, settlement).await.unwrap()
    }

    /// Whether the part may be doubted now.
    async fn is_in_doubt(&self, part: &OrderPart) -> bool {
        let partition = self.store.partition_of(part.items()[0].item.sku.home());
        self.store.order_doubts(partition, 10_000).await.unwrap().contains(part)
    }

    async fn granted_and_held(&self, sku: &Campaign) -> (u64, u64) {
        let status = self.status(sku).await;
        (status.granted, status.held)
    }
}

fn confirmed(seqs: &[u64]) -> OrderSettle {
    OrderSettle::Confirmed { seqs: seqs.to_vec() }
}

/// [`Store::order_reserve`](crate::store::Store::order_reserve)
pub async fn order_reserve(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_part_is_put_aside_and_never_goes_back_by_itself(home).await;
    a_part_that_is_short_puts_nothing_aside_and_names_every_shortage(home).await;
    an_article_that_cannot_be_had_denies_the_part(home).await;
    a_part_that_is_only_asked_for_changes_nothing(home).await;
    a_part_that_is_reserved_again_is_put_aside_once(home).await;
    parts_may_be_called_anything(home).await;
    the_largest_part_is_put_aside_whole(home).await;
    a_part_lies_in_one_partition(home).await;
    a_reservation_that_is_sent_again_is_made_once(home).await;
}

async fn a_part_is_put_aside_and_never_goes_back_by_itself(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    let before = home.clock.wall();
    let part = new_part(&[(3, &shirt, 2), (0, &shoe, 5)]);
    let at = match home.reserve(&part).await {
        OrderReserve::Reserved { at } => Some(at),
        _ => None,
    };
    let at = at.unwrap();
    let after = home.clock.wall();
    let slack = Duration::from_millis(100);
    assert!(at + slack >= before && after + slack >= at, "{before:?} {at:?} {after:?}");
    let held = |item: &PartItem| JournalChange::Held {
        id: item.hold,
        user: name("a"),
        quantity: item.item.quantity,
        expires_at: NEVER,
        pass: None,
    };
    home.let_pass(Duration::from_millis(20)).await;
    for (item, (sku, quantity)) in part.items().iter().zip([(&shirt, 2), (&shoe, 5)]) {
        assert_eq!(home.granted_and_held(sku).await, (0, quantity));
        assert_eq!(home.share(sku, "a").await, UserShare { granted: 0, held: quantity, seq: None });
        assert_eq!(home.journal_is_whole(sku).await[1..], [held(item)]);
        let hold = home.store.hold_read(sku, &item.hold).await.unwrap().unwrap();
        assert_eq!((hold.quantity, hold.expires_at, hold.state), (quantity, NEVER, HoldState::Held));
    }
}

async fn a_part_that_is_short_puts_nothing_aside_and_names_every_shortage(home: &Home) {
    let [one, two, three, four] = home.opened_together(SKU, [5, 1, 9, 0]).await;
    home.held(&one, "b", 1).await;
    home.reserved(&[(0, &three, 1)]).await;
    let part = new_part(&[(7, &one, 5), (9, &two, 2), (40, &three, 8), (41, &four, 1)]);
    let short = |item, requested, available| Shortage { item, requested, available };
    let denied = OrderReserve::Short(vec![short(7, 5, 4), short(9, 2, 1), short(41, 1, 0)]);
    assert_eq!(home.reserve(&part).await, denied);
    for (sku, held) in [(&one, 1), (&two, 0), (&three, 1), (&four, 0)] {
        assert_eq!(home.granted_and_held(sku).await, (0, held), "put aside in part");
        home.journal_is_whole(sku).await;
    }
    // The first is there and the last is not.
    let late = home.reserve(&new_part(&[(2, &three, 8), (5, &four, 1)])).await;
    assert_eq!(late, OrderReserve::Short(vec![short(5, 1, 0)]));
    assert_eq!(home.granted_and_held(&three).await, (0, 1), "put aside in part");
    // A denied part is decided anew.
    home.change(&four, CampaignChange::Restock { by: 1 }).await;
    home.change(&two, CampaignChange::Restock { by: 1 }).await;
    home.change(&one, CampaignChange::Restock { by: 1 }).await;
    assert!(matches!(home.reserve(&part).await, OrderReserve::Reserved { .. }));
}

async fn an_article_that_cannot_be_had_denies_the_part(home: &Home) {
    let opens_at = home.in_a_moment() + Duration::from_secs(60);
    let [open, paused, closed, later] = home.opened_together(SKU, [9, 9, 9, 9]).await;
    let unknown = Campaign { name: name("nobody opened this"), ..open.clone() };
    home.change(&paused, CampaignChange::Pause).await;
    home.change(&closed, CampaignChange::Close).await;
    home.open(&later, terms(9).between(Some(opens_at), None).unwrap()).await;
    for (sku, denied) in [
        (&paused, OrderReserve::Paused { item: 12 }),
        (&closed, OrderReserve::Closed { item: 12 }),
        (&later, OrderReserve::NotOpen { item: 12, opens_at }),
        (&unknown, OrderReserve::Unknown { item: 12 }),
    ] {
        for wanted in [1, 10] {
            assert_eq!(home.reserve(&new_part(&[(3, &open, wanted), (12, sku, 1)])).await, denied);
        }
    }
    assert_eq!(home.store.campaign_read(&unknown).await.unwrap(), None, "asking created it");
    for sku in [&open, &paused, &closed, &later] {
        assert_eq!(home.granted_and_held(sku).await, (0, 0), "put aside in part");
        home.journal_is_whole(sku).await;
    }
}

async fn a_part_that_is_only_asked_for_changes_nothing(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [1, 1]).await;
    let before = (home.status(&shirt).await.rev, home.status(&shoe).await.rev);
    let part = new_part(&[(0, &shirt, 1), (1, &shoe, 1)]);
    assert_eq!(home.reserve_for(&part, None).await, OrderReserve::Available);
    let short = vec![Shortage { item: 6, requested: 2, available: 1 }];
    let too_much = new_part(&[(2, &shirt, 1), (6, &shoe, 2)]);
    assert_eq!(home.reserve_for(&too_much, None).await, OrderReserve::Short(short));
    assert_eq!((home.status(&shirt).await.rev, home.status(&shoe).await.rev), before);
    assert_eq!((home.granted_and_held(&shirt).await, home.granted_and_held(&shoe).await), ((0, 0), (0, 0)));
    assert!(!home.is_in_doubt(&part).await);
    assert!(matches!(home.reserve(&part).await, OrderReserve::Reserved { .. }), "asking has taken it");
}

/// Every time in a batch of its own: that the same batch is known is not enough, since batches are forgotten.
async fn a_part_that_is_reserved_again_is_put_aside_once(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [3, 3]).await;
    let part = new_part(&[(0, &shirt, 2), (1, &shoe, 2)]);
    let first = home.reserve(&part).await;
    let once = (home.status(&shirt).await.rev, home.status(&shoe).await.rev);
    home.let_pass(Duration::from_millis(5)).await;
    assert_eq!(home.reserve(&part).await, first);
    home.change(&shoe, CampaignChange::Pause).await;
    assert_eq!(home.reserve(&part).await, first, "although the article is paused by now");
    assert_eq!((home.status(&shirt).await.rev, home.status(&shoe).await.rev), (once.0, once.1 + 1));
    assert_eq!(home.granted_and_held(&shirt).await, (0, 2));
    assert_eq!(home.settle_part(&part, Cancel).await, OrderSettle::Cancelled);
    assert_eq!(home.reserve(&part).await, first, "although it was given back");
    assert_eq!((home.granted_and_held(&shirt).await, home.granted_and_held(&shoe).await), ((0, 0), (0, 0)));

    let other = home.reserved(&[(0, &shirt, 1)]).await;
    home.settle_part(&other, Confirm).await;
    assert!(matches!(home.reserve(&other).await, OrderReserve::Reserved { .. }));
    assert_eq!(home.granted_and_held(&shirt).await, (1, 0), "put aside again after it was granted");
    home.journal_is_whole(&shirt).await;
    home.journal_is_whole(&shoe).await;
}

async fn parts_may_be_called_anything(home: &Home) {
    let (group, names) = (fresh("group"), nasty_names(&fresh("nasty")));
    let skus: Vec<_> = names.iter().map(|sku| in_group(SKU, &group, sku.as_str())).collect();
    for sku in &skus {
        home.open(sku, terms(100)).await;
    }
    let soon = Some(Duration::ZERO);
    for (id, sku) in names.iter().zip(&skus) {
        let part =
            part(id, id.as_str(), &[(0, sku, 1), (1, skus.iter().find(|other| *other != sku).unwrap(), 2)]);
        assert!(matches!(home.reserve_for(&part, soon).await, OrderReserve::Reserved { .. }), "{id:?}");
        assert!(home.is_in_doubt(&part).await, "{id:?}");
        assert!(matches!(home.settle_part(&part, Confirm).await, OrderSettle::Confirmed { .. }), "{id:?}");
        assert!(!home.is_in_doubt(&part).await, "{id:?}");
        assert_eq!(home.share(sku, id.as_str()).await.granted, 1, "{id:?}");
    }
    home.journal_is_whole(&skus[0]).await;
}

async fn the_largest_part_is_put_aside_whole(home: &Home) {
    let group = fresh("group");
    let skus: Vec<_> = (0..MAX_ORDER_ITEMS).map(|sku| in_group(SKU, &group, &format!("{sku:04}"))).collect();
    let (last, others) = skus.split_last().unwrap();
    for sku in others {
        home.open(sku, terms(MAX_QUANTITY)).await;
    }
    let wanted: Vec<_> = skus.iter().enumerate().map(|(place, sku)| (place, sku, MAX_QUANTITY)).collect();
    let part = new_part(&wanted);
    assert_eq!(home.reserve(&part).await, OrderReserve::Unknown { item: MAX_ORDER_ITEMS - 1 });
    assert_eq!(home.granted_and_held(&skus[0]).await, (0, 0));
    home.open(last, terms(MAX_QUANTITY)).await;
    assert!(matches!(home.reserve(&part).await, OrderReserve::Reserved { .. }));
    assert_eq!(home.granted_and_held(last).await, (0, MAX_QUANTITY));
    assert_eq!(home.settle_part(&part, Confirm).await, confirmed(&[1; MAX_ORDER_ITEMS]));
    assert_eq!(home.granted_and_held(last).await, (MAX_QUANTITY, 0));
    home.journal_is_whole(last).await;
}

async fn a_part_lies_in_one_partition(home: &Home) {
    let one = home.opened(SKU, terms(1)).await;
    for _ in 0..64 {
        let other = home.opened(SKU, terms(1)).await;
        if home.store.partition_of(other.home()) != home.store.partition_of(one.home()) {
            let across = new_part(&[(0, &one, 1), (1, &other, 1)]);
            is_refused(&home.store.order_reserve(&Sending::once(), &across, Some(LONG_HOLD)).await);
            is_refused(&home.store.order_settle(&Sending::once(), &across, Cancel).await);
            assert_eq!(home.granted_and_held(&one).await, (0, 0));
            return;
        }
    }
    assert_eq!(home.store.partitions(), 1, "no two of 65 names lie in different partitions");
}

async fn a_reservation_that_is_sent_again_is_made_once(home: &Home) {
    let [shirt] = home.opened_together(SKU, [9]).await;
    let (first, later) = (new_part(&[(0, &shirt, 2)]), new_part(&[(0, &shirt, 3)]));
    home.is_done_once(
        &shirt,
        async |sending| home.store.order_reserve(sending, &first, Some(LONG_HOLD)).await,
        async |sending| home.store.order_reserve(sending, &later, Some(LONG_HOLD)).await,
    )
    .await;
    assert_eq!(home.granted_and_held(&shirt).await, (0, 5));
}

/// [`Store::order_settle`](crate::store::Store::order_settle)
pub async fn order_settle(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_part_that_is_confirmed_becomes_grants(home).await;
    a_part_that_is_cancelled_goes_back(home).await;
    a_part_that_was_never_put_aside_cannot_be_confirmed(home).await;
    a_part_can_be_settled_whatever_became_of_its_articles(home).await;
    a_late_reservation_cannot_overtake_its_cancellation(home).await;
    a_settlement_that_is_sent_again_is_made_once(home).await;
}

async fn a_part_that_is_confirmed_becomes_grants(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [10, 5]).await;
    home.order(&fresh("order"), "b", &[(&shoe, 1)]).await;
    let part = new_part(&[(1, &shirt, 2), (0, &shoe, 3)]);
    home.reserve_for(&part, Some(Duration::ZERO)).await;
    assert!(home.is_in_doubt(&part).await);
    assert_eq!(home.settle_part(&part, Confirm).await, confirmed(&[1, 2]));
    assert!(!home.is_in_doubt(&part).await, "in doubt although it is settled");
    let others = (home.status(&shirt).await, home.status(&shoe).await);
    assert_eq!(home.settle_part(&part, Confirm).await, confirmed(&[1, 2]), "again");
    assert_eq!(home.settle_part(&part, Cancel).await, OrderSettle::AlreadyConfirmed);
    assert_eq!((home.status(&shirt).await.rev, home.status(&shoe).await.rev), (others.0.rev, others.1.rev));
    for (item, (sku, seq)) in part.items().iter().zip([(&shirt, 1), (&shoe, 2)]) {
        let (id, quantity) = (item.hold, item.item.quantity);
        let change = JournalChange::Confirmed { id, seq, user: name("a"), quantity };
        assert_eq!(home.journal_is_whole(sku).await.last(), Some(&change));
        assert_eq!(home.share(sku, "a").await, UserShare { granted: quantity, held: 0, seq: None });
    }
    assert_eq!(home.granted_and_held(&shoe).await, (4, 0));
}

async fn a_part_that_is_cancelled_goes_back(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [2, 3]).await;
    let part = new_part(&[(0, &shirt, 2), (1, &shoe, 3)]);
    home.reserve_for(&part, Some(Duration::ZERO)).await;
    assert_eq!(home.settle_part(&part, Cancel).await, OrderSettle::Cancelled);
    assert!(!home.is_in_doubt(&part).await, "in doubt although it is settled");
    assert_eq!(home.settle_part(&part, Cancel).await, OrderSettle::Cancelled, "again");
    assert_eq!(home.settle_part(&part, Confirm).await, OrderSettle::AlreadyCancelled);
    for (item, sku) in part.items().iter().zip([&shirt, &shoe]) {
        let change =
            JournalChange::Cancelled { id: item.hold, user: name("a"), quantity: item.item.quantity };
        assert_eq!(home.journal_is_whole(sku).await[2..], [change]);
        assert_eq!(home.granted_and_held(sku).await, (0, 0));
        assert_eq!(home.share(sku, "a").await, UserShare::default());
    }
    assert!(matches!(
        home.reserve(&new_part(&[(0, &shirt, 2), (1, &shoe, 3)])).await,
        OrderReserve::Reserved { .. }
    ));
}

async fn a_part_that_was_never_put_aside_cannot_be_confirmed(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [2, 2]).await;
    let part = new_part(&[(0, &shirt, 1), (1, &shoe, 1)]);
    assert_eq!(home.settle_part(&part, Confirm).await, OrderSettle::Unknown);
    assert_eq!(home.settle_part(&part, Cancel).await, OrderSettle::Cancelled);
    let unopened = Campaign { name: name("nobody opened this"), ..shirt.clone() };
    assert_eq!(home.settle_part(&new_part(&[(0, &unopened, 1)]), Confirm).await, OrderSettle::Unknown);
    assert_eq!((home.status(&shirt).await.rev, home.status(&shoe).await.rev), (1, 1));
}

async fn a_part_can_be_settled_whatever_became_of_its_articles(home: &Home) {
    let [paused, closed] = home.opened_together(SKU, [2, 2]).await;
    let wanted = [(0, &paused, 1), (1, &closed, 1)];
    let (kept, given_back) = (home.reserved(&wanted).await, home.reserved(&wanted).await);
    home.change(&paused, CampaignChange::Pause).await;
    home.change(&closed, CampaignChange::Close).await;
    assert_eq!(home.settle_part(&kept, Confirm).await, confirmed(&[1, 1]));
    assert_eq!(home.settle_part(&given_back, Cancel).await, OrderSettle::Cancelled);
    assert_eq!(home.granted_and_held(&closed).await, (1, 0));
}

/// Whoever sends both from one slot knows that what was cancelled stays so, even if the reservation was stuck on its way.
async fn a_late_reservation_cannot_overtake_its_cancellation(home: &Home) {
    let [shirt] = home.opened_together(SKU, [2]).await;
    let part = new_part(&[(0, &shirt, 1)]);
    let sent = |number| Sending { process: part.attempt, slot: 0, number };
    assert_eq!(home.store.order_settle(&sent(2), &part, Cancel).await.unwrap(), OrderSettle::Cancelled);
    let late = home.store.order_reserve(&sent(1), &part, Some(LONG_HOLD)).await;
    assert!(matches!(late, Err(StoreError::Refused(_))), "{late:?}");
    assert_eq!(home.granted_and_held(&shirt).await, (0, 0));
}

async fn a_settlement_that_is_sent_again_is_made_once(home: &Home) {
    let [shirt] = home.opened_together(SKU, [9]).await;
    let (first, later) = (home.reserved(&[(0, &shirt, 2)]).await, home.reserved(&[(0, &shirt, 3)]).await);
    home.is_done_once(
        &shirt,
        async |sending| home.store.order_settle(sending, &first, Confirm).await,
        async |sending| home.store.order_settle(sending, &later, Confirm).await,
    )
    .await;
    assert_eq!(home.granted_and_held(&shirt).await, (5, 0));
}

/// [`Store::order_doubts`](crate::store::Store::order_doubts)
pub async fn order_doubts(home: &Home) {
    let _kept = JOURNAL.read().await;
    a_part_is_in_doubt_from_its_time_on(home).await;
    the_oldest_doubts_come_first(home).await;
    a_part_that_is_reserved_again_is_doubted_once(home).await;
}

async fn a_part_is_in_doubt_from_its_time_on(home: &Home) {
    let [shirt, shoe] = home.opened_together(SKU, [9, 9]).await;
    let part = part(&fresh("order"), "somebody", &[(4, &shirt, 2), (17, &shoe, 1)]);
    let before = home.clock.wall();
    home.reserve_for(&part, Some(MOMENT)).await;
    let is_in_doubt = home.is_in_doubt(&part).await;
    // On a machine that was busy for that long, it may be in doubt already.
    assert!(!is_in_doubt || home.clock.wall().since(before) >= MOMENT, "too early");
    home.wait_until(home.clock.wall() + MOMENT).await;
    assert!(home.is_in_doubt(&part).await, "not in doubt, or not as it was reserved");
    assert_eq!(home.granted_and_held(&shirt).await, (0, 2), "gone back by itself");
    home.settle_part(&part, Cancel).await;
    assert!(!home.is_in_doubt(&part).await);
}

async fn the_oldest_doubts_come_first(home: &Home) {
    let [shirt] = home.opened_together(SKU, [9]).await;
    let parts: Vec<_> = (0..3).map(|_| new_part(&[(0, &shirt, 1)])).collect();
    for (part, millis) in parts.iter().zip([20, 0, 10]) {
        home.reserve_for(part, Some(Duration::from_millis(millis))).await;
    }
    home.let_pass(Duration::from_millis(30)).await;
    let partition = home.store.partition_of(shirt.home());
    let doubts = home.store.order_doubts(partition, 10_000).await.unwrap();
    let of_ours = |part: &OrderPart| parts.iter().position(|ours| ours == part);
    let first = doubts.iter().find_map(of_ours);
    assert_eq!(first, Some(1), "{doubts:?}");
    assert_eq!(doubts.iter().filter_map(of_ours).count(), 3);
    assert_eq!(home.store.order_doubts(partition, 2).await.unwrap().len(), 2);
    assert_eq!(home.store.order_doubts(partition, 0).await.unwrap(), []);
    for part in &parts {
        home.settle_part(part, Cancel).await;
    }
}

async fn a_part_that_is_reserved_again_is_doubted_once(home: &Home) {
    let [shirt] = home.opened_together(SKU, [9]).await;
    let part = new_part(&[(0, &shirt, 1)]);
    home.reserve_for(&part, Some(Duration::ZERO)).await;
    home.reserve_for(&part, Some(LONG_HOLD)).await;
    assert!(home.is_in_doubt(&part).await, "reserving again has put the doubt off");
    home.settle_part(&part, Confirm).await;
    home.reserve_for(&part, Some(Duration::ZERO)).await;
    assert!(!home.is_in_doubt(&part).await, "doubted although it is settled");
}
