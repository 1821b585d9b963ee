//! Orders over several partitions of a real cluster: all or nothing, whatever happens on the way.
//!
//! A process that dies is a gate whose store refuses every call from some step on; one that is slow, a gate whose calls hang.
//! Every test has a namespace of its own, so that nobody else resolves its doubts.

mod faults;
mod shop;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate::error::StoreError;
use lockgate::key::{Keyspace, Kind, Name};
use lockgate::stock::OrderPlace;
use lockgate::store::JournalChange;
use lockgate::testing::breakable::Break;
use lockgate::testing::eventually_async;
use tokio::task::JoinSet;

use self::shop::{SOON, Shop, WANTED, short};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_takes_from_all_partitions_or_from_none() {
    let shop = Shop::open("whole", 5, Duration::from_secs(10)).await;
    let [one, two, three] = shop.skus(&shop.gate);
    let placed = shop.gate.order("alice").unwrap().item(&three, 1).item(&one, 2).item(&two, 3).place().await;
    assert_eq!(placed.unwrap(), OrderPlace::Placed { seqs: vec![1, 1, 1] });
    assert_eq!(shop.granted().await, [2, 3, 1]);
    let before = shop.journal().await.len();

    let denied = shop.order_of(&shop.gate, "o", "bob", [4, 1, 9]).await.unwrap();
    assert_eq!(
        denied,
        OrderPlace::Short(vec![short(0, 4, 3), short(2, 9, 4)]),
        "all that are short are told"
    );
    let denied = shop.order_of(&shop.gate, "o", "bob", [3, 3, 4]).await.unwrap();
    assert_eq!(denied, OrderPlace::Short(vec![short(1, 3, 2)]));
    two.pause().await.unwrap();
    let denied = shop.order_of(&shop.gate, "o", "bob", [9, 1, 9]).await.unwrap();
    assert_eq!(denied, OrderPlace::Paused { item: 1 });
    three.close().await.unwrap();
    let denied = shop.order_of(&shop.gate, "o", "bob", [1, 1, 1]).await.unwrap();
    assert_eq!(denied, OrderPlace::Paused { item: 1 }, "the first item that denies it is told");
    let unknown = shop.gate.sku("zzz nobody opened this").unwrap();
    let order = shop.gate.order("bob").unwrap().item(&unknown, 1).item(&one, 1);
    assert_eq!(order.place().await.unwrap(), OrderPlace::Unknown { item: 1 });
    assert_eq!((shop.granted().await, shop.held().await), ([2, 3, 1], [0; 3]), "taken in part");
    assert_eq!(shop.numbers_of("o").await, None);
    // What was put aside went back, and an order that is denied at once puts nothing aside.
    let granted = shop.granted_by_journal().await;
    assert_eq!(granted.into_iter().collect::<Vec<_>>(), [("alice".to_owned(), [2, 3, 1])]);
    assert!(shop.journal().await.len() <= before + 2 + 4 * 2, "more was put aside than had to be");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_lie_in_one_partition_are_placed_as_ever() {
    let shop = Shop::open("one", 5, Duration::from_secs(10)).await;
    let (gate, store) = shop.process();
    let placed = shop.order_of(&gate, "o", "alice", [0, 2, 0]).await.unwrap();
    assert_eq!((placed, store.calls()), (OrderPlace::Placed { seqs: vec![1] }, 1));
    let entries = shop.journal().await;
    assert!(entries.iter().any(|entry| matches!(entry.change, JournalChange::Bought { .. })));
    let found = shop.skus(&gate)[1].order_status("o").await.unwrap().unwrap();
    assert_eq!(found.items[0].1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn crossing_orders_sell_exactly_what_there_is() {
    const STOCK: u64 = 60;
    let shop = Arc::new(Shop::open("crossing", STOCK, Duration::from_secs(10)).await);
    let mut tasks = JoinSet::new();
    for task in 0..4_usize {
        let shop = Arc::clone(&shop);
        tasks.spawn(async move {
            let (gate, _) = shop.process();
            let mut placed = Vec::new();
            for number in 0.. {
                let mut skus = shop.skus(&gate);
                if task % 2 == 1 {
                    skus.reverse();
                }
                let order = gate.order(format!("user {task} {number}")).unwrap();
                match skus.iter().fold(order, |order, sku| order.item(sku, 1)).place().await.unwrap() {
                    OrderPlace::Placed { seqs } => placed.push(seqs),
                    OrderPlace::Short(_) => break,
                    other => panic!("{other:?}"),
                }
            }
            placed
        });
    }
    let placed: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!((shop.granted().await, shop.held().await), ([STOCK; 3], [0; 3]));
    for article in 0..3 {
        let seqs: BTreeSet<_> = placed.iter().map(|seqs| seqs[article]).collect();
        assert!(seqs.iter().copied().eq(1..=STOCK), "{seqs:?}");
    }
    let granted = shop.granted_by_journal().await;
    assert_eq!(granted.len() as u64, STOCK);
    assert!(granted.values().all(|granted| *granted == [1; 3]), "placed in part: {granted:?}");
}

/// Orders of all shapes, at once, from four processes, while somebody resolves far too early: orders are called off in the
/// middle, and none is placed in part.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_all_orders_under_constant_doubt_is_never_half() {
    const STOCK: u64 = 90;
    let shapes = [[1, 1, 1], [2, 1, 0], [0, 1, 3], [1, 0, 2], [3, 2, 1]];
    let shop = Arc::new(Shop::open("doubted", STOCK, Duration::ZERO).await);
    let mut tasks = JoinSet::new();
    for task in 0..4_usize {
        let shop = Arc::clone(&shop);
        tasks.spawn(async move {
            let ((gate, _), mut placed) = (shop.process(), Vec::new());
            for number in 0..40 {
                let (wanted, id) = (shapes[(task + number) % shapes.len()], format!("{task}-{number}"));
                match shop.order_of(&gate, &id, &id, wanted).await {
                    Ok(OrderPlace::Placed { .. }) => placed.push((id, wanted)),
                    Ok(OrderPlace::Short(_)) | Err(StoreError::Unavailable(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
            placed
        });
    }
    let doubting = {
        let shop = Arc::clone(&shop);
        tokio::spawn(async move {
            loop {
                shop.gate.resolve_orders().await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    };
    let placed: BTreeMap<_, _> = tasks.join_all().await.into_iter().flatten().collect();
    doubting.abort();
    shop.resolve().await;
    assert!(placed.len() >= 10, "{placed:?}");
    assert_eq!(shop.granted_by_journal().await, placed, "what was told is not what was granted");
    let sum = |article: usize| placed.values().map(|wanted| wanted[article]).sum::<u64>();
    assert_eq!(shop.granted().await, [sum(0), sum(1), sum(2)]);
    assert!(shop.granted().await.iter().all(|granted| *granted <= STOCK), "oversold");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_order_placed_by_two_processes_at_once_is_placed_once() {
    let shop = Shop::open("twice", 1_000, Duration::from_secs(10)).await;
    let ((one, _), (other, _)) = (shop.process(), shop.process());
    for number in 1..=30 {
        let id = format!("order {number}");
        let answers = tokio::join!(shop.order(&one, &id), shop.order(&other, &id));
        let (Ok(one), Ok(other)) = answers else { panic!("{answers:?}") };
        let seqs = vec![number; 3];
        let (placed, already) =
            (OrderPlace::Placed { seqs: seqs.clone() }, OrderPlace::AlreadyPlaced { seqs: seqs.clone() });
        let is_once = (&one, &other) == (&placed, &already) || (&one, &other) == (&already, &placed);
        assert!(is_once, "{one:?} {other:?}");
        assert_eq!(shop.granted().await, WANTED.map(|quantity| quantity * number));
        assert_eq!(shop.numbers_of(&id).await, Some(seqs));
    }
    assert_eq!(shop.held().await, [0; 3]);
    assert!(shop.granted_by_journal().await.values().all(|granted| *granted == WANTED));
}

/// There is enough for one of them only: the other may find that too little is left, but never that more is.
#[tokio::test(flavor = "multi_thread")]
async fn one_order_placed_by_two_processes_for_the_last_articles_is_placed_once() {
    let shop = Shop::open("last", 0, Duration::from_secs(10)).await;
    let ((one, _), (other, _)) = (shop.process(), shop.process());
    for number in 1..=20 {
        for (sku, quantity) in shop.skus(&shop.gate).iter().zip(WANTED) {
            sku.restock(quantity).await.unwrap();
        }
        let id = format!("order {number}");
        let answers = tokio::join!(shop.order(&one, &id), shop.order(&other, &id));
        let (Ok(one), Ok(other)) = answers else { panic!("{answers:?}") };
        let is_placed = |answer: &OrderPlace| matches!(answer, OrderPlace::Placed { .. });
        assert!(is_placed(&one) ^ is_placed(&other), "{one:?} {other:?}");
        assert_eq!(shop.held().await, [0; 3]);
        let again = shop.order(&shop.gate, &id).await.unwrap();
        assert_eq!(again, OrderPlace::AlreadyPlaced { seqs: vec![number; 3] });
    }
    assert!(shop.granted_by_journal().await.values().all(|granted| *granted == WANTED));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ordered_is_told_again_after_everything() {
    let shop = Shop::open("replays", 10, Duration::ZERO).await;
    let placed = shop.order(&shop.gate, "o").await.unwrap();
    assert_eq!(placed, OrderPlace::Placed { seqs: vec![1, 1, 1] });
    for sku in shop.skus(&shop.gate) {
        sku.close().await.unwrap();
    }
    shop.gate.resolve_orders().await.unwrap();
    let again = OrderPlace::AlreadyPlaced { seqs: vec![1, 1, 1] };
    for gate in [&shop.gate, &shop.process().0] {
        assert_eq!(shop.order(gate, "o").await.unwrap(), again);
        for (user, wanted) in [("o", [1, 2, 2]), ("o", [1, 0, 1]), ("p", WANTED)] {
            let reused = shop.order_of(gate, "o", user, wanted).await.unwrap();
            assert_eq!(reused, OrderPlace::RequestReused, "{user} {wanted:?}");
        }
    }
    // What becomes of a grant afterwards does not change what was ordered.
    shop.skus(&shop.gate)[0].revoke("o", 1).await.unwrap();
    assert_eq!(shop.order(&shop.gate, "o").await.unwrap(), again);
    let status = shop.skus(&shop.gate)[2].order_status("o").await.unwrap().unwrap();
    assert_eq!(status.user.as_str(), "o");
    let items: Vec<_> =
        status.items.iter().map(|(item, seq)| (item.sku.clone(), item.quantity, *seq)).collect();
    let expected = shop.campaigns.iter().cloned().zip(WANTED).map(|(sku, quantity)| (sku, quantity, 1));
    assert_eq!(items, expected.collect::<Vec<_>>());
    assert_eq!(shop.skus(&shop.gate)[2].order_status("nothing").await.unwrap(), None);
    let denied = shop.order(&shop.gate, "another").await.unwrap();
    assert_eq!(denied, OrderPlace::Closed { item: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn when_too_many_orders_are_under_way_the_next_is_told_so() {
    let mut shop = Shop::open("busy", 10, Duration::from_secs(10)).await;
    shop.config.max_waiting = 0;
    let (gate, store) = shop.process();
    assert!(matches!(shop.order(&gate, "o").await, Err(StoreError::Busy { .. })));
    assert_eq!(store.calls(), 0);
}

/// A record outlives every doubt about its order, and an abortion outlives every attempt that could be committed.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_is_remembered_for_long_enough() {
    const DAY: u64 = 24 * 60 * 60;
    let shop = Shop::open("memory", 10, Duration::ZERO).await;
    let keys = Keyspace::new("memory", 8).unwrap();
    let name = |text: &str| Name::new("name", text).unwrap();
    let record_is_kept = |id: &str| shop::kept_for(&keys.key(Kind::OrderRecord, &name(id)));

    shop.order(&shop.gate, "settled").await.unwrap();
    let is_noted = async || record_is_kept("settled").is_some_and(|kept| (DAY - 60..=DAY).contains(&kept));
    assert!(eventually_async(SOON, is_noted).await, "{:?}", record_is_kept("settled"));

    // One process dies after its order is committed, and one before.
    for (id, calls) in [("committed", 5), ("doubtful", 4)] {
        let (dying, store) = shop.process();
        store.spare_next(calls);
        store.break_all(Break::Refuse);
        assert!(shop.order(&dying, id).await.is_err());
    }
    assert!(record_is_kept("committed") > Some(29 * DAY), "{:?}", record_is_kept("committed"));
    let partition = shop.gate.store().partition_of(shop.campaigns[0].home());
    let doubts = shop.gate.store().order_doubts(partition, 10).await.unwrap();
    let attempt = doubts.iter().find(|part| part.order.as_str() == "doubtful").unwrap().attempt;
    let mark = keys.key_beside(Kind::OrderAborted, &name("doubtful"), &name(&attempt.to_string()));
    assert_eq!(shop::kept_for(&mark), None);
    shop.resolve().await;
    assert!(shop::kept_for(&mark).is_some_and(|kept| (DAY - 60..=DAY).contains(&kept)));
    assert_eq!(record_is_kept("doubtful"), None);
    assert!(record_is_kept("committed") <= Some(DAY), "{:?}", record_is_kept("committed"));
}
