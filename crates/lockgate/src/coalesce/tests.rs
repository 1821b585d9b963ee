//! Nobody waits without need, nobody is served twice, and nobody is forgotten.
#![cfg(feature = "testing")]

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{Handle, MAX_BATCH, Queue, Rules, State, Waiter, oneshot};
use crate::Gate;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::StoreError;
use crate::key::Name;
use crate::stock::operation::{Issuing, Ordering};
use crate::stock::{Coupon, Issue, Terms};
use crate::store::memory::MemoryStore;
use crate::store::{Campaign, CampaignKind, IssueWish, OrderItem, OrderWish, Store, Token};
use crate::testing::breakable::{Break, BreakableStore};
use crate::testing::eventually_async;

const SOON: Duration = Duration::from_secs(10);

/// A coupon on a store that can be made to wait.
struct Place {
    store: Arc<BreakableStore>,
    coupon: Coupon,
}

impl Place {
    async fn new(quantity: u64, max_waiting: usize) -> Self {
        let mut config = Config::default();
        (config.clock, config.max_waiting) = (Clock::fake(), max_waiting);
        let memory = Arc::new(MemoryStore::with(&config));
        let store = Arc::new(BreakableStore::new(memory));
        let coupon = Gate::on_with(Arc::clone(&store) as Arc<dyn Store>, &config).coupon("c").unwrap();
        coupon.open(&Terms::new(quantity).unwrap()).await.unwrap();
        Self { store, coupon }
    }

    /// Asks in a task of its own, and returns when the caller has got as far as it can.
    async fn ask(&self, user: u64) -> JoinHandle<Result<Issue, StoreError>> {
        let coupon = self.coupon.clone();
        let asking = tokio::spawn(async move { coupon.issue(format!("user-{user}")).await });
        while self.under_way_or_waiting() <= user {
            tokio::task::yield_now().await;
        }
        asking
    }

    /// How many callers have come, if none has been served.
    fn under_way_or_waiting(&self) -> u64 {
        let queues = &self.coupon.handle.counter.issuing.by_partition;
        let queues = queues.read().unwrap();
        let Some(Some(queue)) = queues.first() else { return 0 };
        let state = queue.lock();
        (usize::from(super::UNDER_WAY) - state.free.len() + state.count) as u64
    }

    async fn granted(&self) -> u64 {
        self.coupon.status().await.unwrap().unwrap().granted
    }
}

#[tokio::test]
async fn whoever_comes_while_two_calls_are_under_way_goes_with_the_next_together_with_all_others() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::Hang);
    let before = place.store.calls();
    let mut asking = Vec::new();
    for user in 0..50 {
        asking.push(place.ask(user).await);
    }
    assert_eq!(place.store.calls() - before, 2, "more than two calls are under way");
    place.store.heal();
    for caller in asking {
        assert!(matches!(caller.await.unwrap().unwrap(), Issue::Issued { .. }));
    }
    assert_eq!(place.store.calls() - before, 3, "those who waited did not go together");
    assert_eq!(place.granted().await, 50);
}

#[tokio::test]
async fn those_who_were_served_and_ask_again_go_together_again() {
    const CALLERS: u64 = 50;
    const TIMES: u64 = 20;
    let place = Place::new(CALLERS * TIMES, 1_000).await;
    place.store.break_all(Break::Hang);
    let before = place.store.calls();
    let asking: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let coupon = place.coupon.clone();
            tokio::spawn(async move {
                for time in 0..TIMES {
                    assert!(matches!(
                        coupon.issue(format!("user-{caller}-{time}")).await.unwrap(),
                        Issue::Issued { .. }
                    ));
                }
            })
        })
        .collect();
    assert!(eventually_async(SOON, async || place.under_way_or_waiting() == CALLERS).await);
    place.store.heal();
    for caller in asking {
        caller.await.unwrap();
    }
    let calls = place.store.calls() - before;
    assert_eq!(place.granted().await, CALLERS * TIMES);
    // One that is alone, one while it is under way, and one for all others, each time.
    assert!(calls <= TIMES + 3, "{calls} calls for {TIMES} times {CALLERS} wishes");
}

#[tokio::test]
async fn whoever_comes_alone_has_a_call_of_its_own_and_no_task() {
    let place = Place::new(100, 1_000).await;
    let before = (place.store.calls(), Handle::current().metrics().num_alive_tasks());
    for user in 0..3 {
        assert!(matches!(place.coupon.issue(format!("user-{user}")).await.unwrap(), Issue::Issued { .. }));
        assert_eq!(Handle::current().metrics().num_alive_tasks(), before.1);
    }
    assert_eq!(place.store.calls() - before.0, 3);
}

#[tokio::test]
async fn whoever_goes_away_while_it_waits_is_left_out() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::Hang);
    let (one, two, three, four) =
        (place.ask(0).await, place.ask(1).await, place.ask(2).await, place.ask(3).await);
    three.abort();
    assert!(three.await.unwrap_err().is_cancelled());
    place.store.heal();
    for caller in [one, two, four] {
        assert!(matches!(caller.await.unwrap().unwrap(), Issue::Issued { .. }));
    }
    assert_eq!(place.granted().await, 3);
}

#[tokio::test]
async fn whoever_goes_away_while_its_call_is_under_way_takes_nothing_from_the_others() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::Hang);
    let alone = [place.ask(0).await, place.ask(1).await];
    let waiting = [place.ask(2).await, place.ask(3).await];
    alone.iter().for_each(JoinHandle::abort);
    // One of the two slots is free now, so those who waited are under way together; in the other, a call goes on alone.
    assert!(eventually_async(SOON, async || place.under_way_or_waiting() == 2).await);
    let [third, fourth] = waiting;
    third.abort();
    place.store.heal();
    assert!(matches!(fourth.await.unwrap().unwrap(), Issue::Issued { .. }));
    // Those whose calls were made have their coupons, and find them when they ask again.
    for user in ["user-1", "user-2"] {
        assert!(
            eventually_async(SOON, async || {
                matches!(place.coupon.issue(user).await.unwrap(), Issue::AlreadyIssued { .. })
            })
            .await
        );
    }
    assert_eq!(place.granted().await, 3);
}

#[tokio::test]
async fn when_too_many_wait_the_next_is_told_so_at_once_and_nothing_has_happened() {
    let place = Place::new(100, 3).await;
    place.store.break_all(Break::Hang);
    let mut asking = Vec::new();
    for user in 0..5 {
        asking.push(place.ask(user).await);
    }
    let refused = tokio::time::timeout(SOON, place.coupon.issue("one too many")).await;
    let refused = refused.unwrap().unwrap_err();
    assert!(matches!(refused, StoreError::Busy { retry_after } if retry_after > Duration::ZERO), "{refused}");
    place.store.heal();
    for caller in asking {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(place.granted().await, 5);
    assert!(matches!(place.coupon.issue("one too many").await.unwrap(), Issue::Issued { .. }));
}

#[tokio::test]
async fn when_the_store_does_not_answer_all_who_wait_are_told_at_once() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::HangThenRefuse);
    let before = place.store.calls();
    let mut asking = Vec::new();
    for user in 0..20 {
        asking.push(place.ask(user).await);
    }
    place.store.heal();
    for caller in asking {
        let told = caller.await.unwrap();
        assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
    }
    assert_eq!(place.store.calls() - before, 2, "those who waited were sent after them");
    assert!(matches!(place.coupon.issue("later").await.unwrap(), Issue::Issued { .. }));
    assert_eq!(place.granted().await, 1);
}

#[tokio::test]
async fn an_error_is_told_to_all_who_went_together_and_a_refusal_to_nobody_else() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::Hang);
    let alone = [place.ask(0).await, place.ask(1).await];
    let mut together = Vec::new();
    for user in 2..10 {
        together.push(place.ask(user).await);
    }
    // The next call is theirs.
    place.store.break_next(Break::Reject);
    place.store.heal_all_but_next();
    for caller in alone {
        assert!(caller.await.unwrap().is_ok());
    }
    for caller in together {
        assert!(matches!(caller.await.unwrap(), Err(StoreError::Refused(_))));
    }
    assert!(matches!(place.coupon.issue("later").await.unwrap(), Issue::Issued { .. }));
    assert_eq!(place.granted().await, 3);
}

#[tokio::test]
async fn callers_that_stop_to_poll_keep_nobody_else_waiting() {
    let place = Place::new(100, 1_000).await;
    place.store.break_all(Break::Hang);
    let mut stopped = [Box::pin(place.coupon.issue("one")), Box::pin(place.coupon.issue("two"))];
    for caller in &mut stopped {
        let polled = std::future::poll_fn(|context| Poll::Ready(caller.as_mut().poll(context))).await;
        assert!(polled.is_pending());
    }
    place.store.heal();
    for user in ["a", "b"] {
        let answer = tokio::time::timeout(SOON, place.coupon.issue(user)).await;
        assert!(matches!(answer.expect("nobody is served").unwrap(), Issue::Issued { .. }));
    }
    for caller in stopped {
        assert!(matches!(caller.await.unwrap(), Issue::Issued { .. }));
    }
}

#[test]
fn callers_whose_runtime_has_ended_are_served_by_nobody_and_the_others_go_on() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (theirs, ours) = (runtime(), runtime());
    let place = ours.block_on(Place::new(100, 1_000));
    place.store.break_all(Break::Hang);
    let coupon = place.coupon.clone();
    for user in 0..5 {
        let coupon = coupon.clone();
        theirs.spawn(async move { coupon.issue(format!("theirs-{user}")).await });
    }
    assert!(crate::testing::eventually(SOON, || place.under_way_or_waiting() == 5));
    theirs.shutdown_background();
    assert!(crate::testing::eventually(SOON, || place.under_way_or_waiting() == 0));
    place.store.heal();
    let answer = ours.block_on(async { tokio::time::timeout(SOON, coupon.issue("ours")).await });
    assert!(matches!(answer.unwrap().unwrap(), Issue::Issued { .. }));
}

fn campaign(kind: CampaignKind, name: &str) -> Campaign {
    Campaign::new(kind, Name::new("name", name).unwrap())
}

fn waiter(coupon: &str, user: usize) -> Waiter<Issuing> {
    let coupon = campaign(CampaignKind::Coupon, coupon);
    let wish = IssueWish { coupon, user: Name::new("user", format!("u{user}")).unwrap(), pass: None };
    let (answer, receiver) = oneshot::channel();
    // It waits for ever: nobody may be left out.
    std::mem::forget(receiver);
    Waiter { wish, answer, runtime: Handle::current() }
}

fn empty_state<O: super::Operation>() -> State<O> {
    let rules = Rules { process: Token::random(), clock: Clock::fake(), max_waiting: 10 };
    Queue::<O>::new(Arc::new(MemoryStore::new(Clock::fake())), rules, Arc::default())
        .state
        .into_inner()
        .unwrap()
}

#[tokio::test]
async fn a_small_campaign_does_not_wait_for_a_large_one_and_a_call_is_always_full() {
    let mut state = empty_state::<Issuing>();
    for user in 0..3 * MAX_BATCH {
        state.queue_up(waiter("large", user));
    }
    for user in 0..10 {
        state.queue_up(waiter("small", user));
    }
    let first = state.next_batch();
    let of_small = first.iter().filter(|waiter| waiter.wish.coupon.name.as_str() == "small").count();
    assert_eq!((first.len(), of_small), (MAX_BATCH, 10));
    let users: Vec<_> = first.iter().filter(|waiter| waiter.wish.coupon.name.as_str() == "large").collect();
    assert!(users.iter().enumerate().all(|(place, waiter)| waiter.wish.user.as_str() == format!("u{place}")));
    let rest: usize =
        std::iter::repeat_with(|| state.next_batch().len()).take_while(|length| *length > 0).sum();
    assert_eq!((rest, state.count, state.turns.len()), (2 * MAX_BATCH + 10, 0, 0));
}

#[tokio::test]
async fn many_campaigns_take_turns() {
    let mut state = empty_state::<Issuing>();
    for user in 0..4 {
        for coupon in 0..MAX_BATCH {
            state.queue_up(waiter(&format!("c{coupon}"), user));
        }
    }
    for _ in 0..4 {
        let batch = state.next_batch();
        let coupons: std::collections::BTreeSet<_> =
            batch.iter().map(|waiter| waiter.wish.coupon.clone()).collect();
        assert_eq!((batch.len(), coupons.len()), (MAX_BATCH, MAX_BATCH), "one of each");
    }
    assert!(state.next_batch().is_empty());
}

#[tokio::test]
async fn a_call_is_as_long_as_the_items_in_it() {
    let mut state = empty_state::<Ordering>();
    for order in 0..3 {
        let items = (0..400)
            .map(|sku| OrderItem { sku: campaign(CampaignKind::Sku, &format!("s{sku}")), quantity: 1 });
        let id = Name::new("order", format!("o{order}")).unwrap();
        let wish = OrderWish::new(id, Name::new("user", "u").unwrap(), items.collect()).unwrap();
        let (answer, receiver) = oneshot::channel();
        std::mem::forget(receiver);
        state.queue_up(Waiter { wish, answer, runtime: Handle::current() });
    }
    assert_eq!([state.next_batch().len(), state.next_batch().len(), state.next_batch().len()], [2, 1, 0]);
}
