//! Orders over several partitions whose process dies, loses answers, is slow, or is left alone by its caller.

use std::sync::Arc;
use std::time::Duration;

use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::stock::OrderPlace;
use lockgate::testing::breakable::Break;
use lockgate::testing::eventually_async;

use super::shop::{SOON, Shop, WANTED, short};

/// How many calls it takes to place a named order over three partitions: find, three reservations, decide, three
/// settlements, note.
const CALLS: usize = 9;

#[tokio::test(flavor = "multi_thread")]
async fn a_named_order_takes_as_many_calls_as_the_tests_of_faults_think() {
    let shop = Shop::open("calls", 5, Duration::from_secs(10)).await;
    let (gate, store) = shop.process();
    shop.order(&gate, "o").await.unwrap();
    let id = Name::new("order", "o").unwrap();
    let is_noted = async || shop.gate.store().order_find(&id).await.unwrap().unwrap().seqs.is_some();
    assert!(eventually_async(SOON, is_noted).await);
    assert_eq!(store.calls(), CALLS as u64);
    let again = shop.order(&gate, "o").await.unwrap();
    assert_eq!(again, OrderPlace::AlreadyPlaced { seqs: vec![1, 1, 1] });
    assert_eq!(store.calls(), CALLS as u64 + 1, "a replay asks once");
}

/// The process dies before each of its calls, and after each of them before it has heard the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_any_step_leaves_all_or_nothing() {
    let shop = Shop::open("dying", 1_000, Duration::ZERO).await;
    let (mut whole, mut absent) = (0, 0);
    for step in 0..=CALLS {
        for is_sent in [false, true] {
            let ((gate, store), id) = (shop.process(), format!("order {step} {is_sent}"));
            store.spare_next(step);
            if is_sent {
                store.break_next(Break::LoseAnswer);
            }
            store.break_all(Break::Refuse);
            let told = shop.order(&gate, &id).await;
            shop.resolve().await;
            let is_placed = shop.numbers_of(&id).await.is_some();
            (whole, absent) = (whole + usize::from(is_placed), absent + usize::from(!is_placed));
            shop.is_all_or_nothing(&id, &told).await;
        }
    }
    // It is placed from the moment at which its commitment has happened.
    assert_eq!((absent, whole), (9, 2 * (CALLS + 1) - 9));
}

/// One answer is lost, or one call is refused, and the process goes on: it cleans up by itself, or finds out what happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_at_any_step_leaves_all_or_nothing() {
    let shop = Shop::open("losing", 1_000, Duration::ZERO).await;
    for step in 0..=CALLS {
        for how in [Break::LoseAnswer, Break::Refuse, Break::Reject] {
            let ((gate, store), id) = (shop.process(), format!("order {step} {how:?}"));
            store.spare_next(step);
            store.break_next(how);
            let told = shop.order(&gate, &id).await;
            let is_committed = step > 4 || (step == 4 && how == Break::LoseAnswer);
            if !is_committed {
                // Nothing was ordered, and what was put aside is back already, without anybody who resolves. Only of what was
                // ordered before under this name, its process knows nothing.
                let is_known = !matches!(told, Err(StoreError::UnknownOutcome(_)));
                assert!(told.is_err() && (is_known || step == 0), "{step} {how:?}: {told:?}");
                assert!(eventually_async(SOON, async || shop.held().await == [0; 3]).await, "{step} {how:?}");
                assert_eq!(shop.numbers_of(&id).await, None);
            } else if step == 4 || step > 7 {
                assert!(matches!(told, Ok(OrderPlace::Placed { .. })), "{step} {how:?}: {told:?}");
            } else {
                assert!(matches!(&told, Err(StoreError::UnknownOutcome(why)) if why.contains("is placed")));
            }
            shop.resolve().await;
            let told = told.map_err(|why| match why {
                StoreError::Refused(why) => StoreError::Unavailable(why),
                other => other,
            });
            shop.is_all_or_nothing(&id, &told).await;
        }
    }
}

/// The process is stopped before each of its calls, everybody else takes it for dead, and then it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_slow_is_told_the_truth() {
    let shop = Arc::new(Shop::open("slow", 1_000, Duration::ZERO).await);
    for step in 0..CALLS {
        let ((gate, store), id) = (shop.process(), format!("order {step}"));
        store.spare_next(step);
        store.break_all(Break::Hang);
        let placing = {
            let (shop, id) = (Arc::clone(&shop), id.clone());
            tokio::spawn(async move { shop.order(&gate, &id).await })
        };
        let is_stopped = async || store.calls() == step as u64 + 1;
        assert!(eventually_async(SOON, is_stopped).await, "{step}");
        shop.resolve().await;
        store.heal();
        let told = placing.await.unwrap();
        match step {
            // Nothing was put aside yet.
            0 | 1 => assert!(matches!(told, Ok(OrderPlace::Placed { .. })), "{step}: {told:?}"),
            // It was called off meanwhile, so its commitment is refused.
            2..=4 => {
                let Err(StoreError::Unavailable(why)) = &told else { panic!("{step}: {told:?}") };
                assert!(why.contains("called off"), "{why}");
                assert_eq!(shop.held().await, [0; 3], "{step}");
                assert_eq!(shop.numbers_of(&id).await, None);
            }
            // It was made whole by somebody else; the process is told the same numbers.
            _ => assert!(matches!(told, Ok(OrderPlace::Placed { .. })), "{step}: {told:?}"),
        }
        shop.resolve().await;
        shop.is_all_or_nothing(&id, &told).await;
    }
}

/// What a dead process has put aside is given to the next one who wants it, without a background task.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_short_takes_back_what_the_dead_have_put_aside() {
    let shop = Shop::open("heirs", 2, Duration::ZERO).await;
    let (dying, store) = shop.process();
    // It dies after its three reservations.
    store.spare_next(4);
    store.break_all(Break::Refuse);
    assert!(shop.order(&dying, "dead").await.is_err());
    assert_eq!(shop.held().await, WANTED);
    let placed = shop.order(&shop.gate, "heir").await.unwrap();
    assert_eq!(placed, OrderPlace::Placed { seqs: vec![1, 1, 1] });
    assert_eq!(shop.numbers_of("dead").await, None);
    shop.resolve().await;
    // The order before died after it was committed: that is not taken back.
    shop.skus(&shop.gate)[1].restock(2).await.unwrap();
    let (dying, store) = shop.process();
    store.spare_next(5);
    store.break_all(Break::Refuse);
    assert!(matches!(shop.order(&dying, "dead but placed").await, Err(StoreError::UnknownOutcome(_))));
    let denied = shop.order(&shop.gate, "late").await.unwrap();
    assert_eq!(denied, OrderPlace::Short(vec![short(0, 1, 0), short(1, 2, 0), short(2, 1, 0)]));
    assert_eq!(shop.numbers_of("dead but placed").await, Some(vec![2, 2, 2]));
    assert_eq!(shop.held().await, [0; 3]);
}

/// As long as its deadline is not over, nobody takes an order for dead.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_left_alone_until_its_deadline() {
    let shop = Arc::new(Shop::open("patience", 2, Duration::from_secs(600)).await);
    let (gate, store) = shop.process();
    store.spare_next(4);
    store.break_all(Break::Hang);
    let placing = {
        let shop = Arc::clone(&shop);
        tokio::spawn(async move { shop.order(&gate, "slow").await })
    };
    assert!(eventually_async(SOON, async || store.calls() == 5).await);
    assert_eq!(shop.gate.resolve_orders().await.unwrap(), 0);
    let denied = shop.order(&shop.gate, "eager").await.unwrap();
    assert_eq!(denied, OrderPlace::Short(vec![short(1, 2, 0)]));
    assert_eq!(shop.held().await, WANTED, "given back too early");
    store.heal();
    assert_eq!(placing.await.unwrap().unwrap(), OrderPlace::Placed { seqs: vec![1, 1, 1] });
}

/// Whoever asks goes away, at every step; the order is placed all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_caller_goes_away_is_not_left_half_way() {
    let shop = Shop::open("dropped", 1_000, Duration::from_secs(600)).await;
    for step in 0..CALLS {
        let ((gate, store), id) = (shop.process(), format!("order {step}"));
        store.spare_next(step);
        store.break_all(Break::Hang);
        {
            let mut placing = std::pin::pin!(shop.order(&gate, &id));
            tokio::select! {
                biased;
                told = &mut placing => assert_eq!(step, CALLS - 1, "{told:?}"),
                is_stopped = eventually_async(SOON, async || store.calls() == step as u64 + 1) => assert!(is_stopped),
            }
        }
        store.heal();
        let [sku, ..] = shop.skus(&shop.gate);
        let is_placed = async || sku.order_status(&id).await.unwrap().is_some();
        assert!(eventually_async(SOON, is_placed).await, "{step}");
        assert!(eventually_async(SOON, async || shop.held().await == [0; 3]).await, "{step}");
    }
    let granted = shop.granted_by_journal().await;
    assert_eq!(granted.len(), CALLS);
    assert!(granted.values().all(|granted| *granted == WANTED), "{granted:?}");
}
