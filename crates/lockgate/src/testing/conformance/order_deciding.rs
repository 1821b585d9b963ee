//! What the decision about an order over several partitions must do: be one, for ever.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use super::{Home, fresh, name, nasty_names};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignKind, CommittedOrder, HoldId, OrderDecision, OrderItem, OrderVerdict, Sending, Token,
};

/// An attempt to order, with everything put aside.
#[derive(Clone)]
struct Attempt {
    id: Name,
    name: Token,
    user: Name,
    items: Vec<(OrderItem, HoldId)>,
    reserved_at: Timestamp,
}

impl Attempt {
    fn new(home: &Home, id: &Name, user: &str, items: &[(&str, u64)]) -> Self {
        let item = |(sku, quantity): &(&str, u64)| {
            let sku = Campaign::new(CampaignKind::Sku, name(sku));
            (OrderItem { sku, quantity: *quantity }, HoldId::random())
        };
        Self {
            id: id.clone(),
            name: Token::random(),
            user: name(user),
            items: items.iter().map(item).collect(),
            reserved_at: home.clock.wall(),
        }
    }

    fn commit(&self) -> OrderDecision {
        let (user, items, reserved_at) = (self.user.clone(), self.items.clone(), self.reserved_at);
        OrderDecision::Commit { user, items, reserved_at }
    }

    fn record(&self, seqs: Option<&[u64]>) -> CommittedOrder {
        let (attempt, user, items) = (self.name, self.user.clone(), self.items.clone());
        CommittedOrder { attempt, user, items, seqs: seqs.map(<[u64]>::to_vec) }
    }

    fn committed(&self) -> OrderVerdict {
        OrderVerdict::Committed(self.record(None))
    }

    fn already(&self) -> OrderVerdict {
        OrderVerdict::AlreadyCommitted(self.record(None))
    }
}

impl Home {
    async fn decide(&self, attempt: &Attempt, decision: &OrderDecision) -> OrderVerdict {
        self.store.order_decide(&Sending::once(), &attempt.id, attempt.name, decision).await.unwrap()
    }

    async fn commit(&self, attempt: &Attempt) -> OrderVerdict {
        self.decide(attempt, &attempt.commit()).await
    }

    async fn abort(&self, attempt: &Attempt) -> OrderVerdict {
        self.decide(attempt, &OrderDecision::Abort).await
    }
}

fn settled(seqs: &[u64]) -> OrderDecision {
    OrderDecision::Settled { seqs: seqs.to_vec() }
}

/// [`Store::order_decide`](crate::store::Store::order_decide)
pub async fn order_decide(home: &Home) {
    what_is_committed_cannot_be_called_off(home).await;
    what_is_called_off_cannot_be_committed(home).await;
    of_two_attempts_at_one_order_one_is_committed(home).await;
    an_order_with_another_content_is_not_the_same(home).await;
    an_attempt_that_is_an_hour_old_is_not_committed(home).await;
    an_order_that_is_settled_remembers_its_numbers(home).await;
    a_decision_that_is_sent_again_is_answered_again(home).await;
    a_crowd_commits_one_attempt(home).await;
}

async fn what_is_committed_cannot_be_called_off(home: &Home) {
    let attempt = Attempt::new(home, &fresh("order"), "a", &[("shirt", 2), ("shoe", 1)]);
    for _ in 0..2 {
        assert_eq!(home.commit(&attempt).await, attempt.committed());
        assert_eq!(home.abort(&attempt).await, attempt.committed());
    }
    // An answer never changes: not even when the attempt is an hour old.
    let old = Attempt { reserved_at: Timestamp::from_micros(1), ..attempt.clone() };
    assert_eq!(home.commit(&old).await, attempt.committed());
}

async fn what_is_called_off_cannot_be_committed(home: &Home) {
    let id = fresh("order");
    let [first, second] = [(); 2].map(|()| Attempt::new(home, &id, "a", &[("shirt", 2)]));
    for _ in 0..2 {
        assert_eq!(home.abort(&first).await, OrderVerdict::Aborted);
        assert_eq!(home.commit(&first).await, OrderVerdict::Aborted);
        assert_eq!(home.store.order_find(&id).await.unwrap(), None);
    }
    assert_eq!(home.commit(&second).await, second.committed(), "another attempt is another one");
    assert_eq!(home.abort(&first).await, OrderVerdict::Aborted);
    assert_eq!(home.store.order_find(&id).await.unwrap(), Some(second.record(None)));
}

async fn of_two_attempts_at_one_order_one_is_committed(home: &Home) {
    let id = fresh("order");
    let [first, second] = [(); 2].map(|()| Attempt::new(home, &id, "a", &[("shirt", 2), ("shoe", 1)]));
    assert_eq!(home.commit(&first).await, first.committed());
    for _ in 0..2 {
        assert_eq!(home.commit(&second).await, first.already());
        assert_eq!(home.abort(&second).await, OrderVerdict::Aborted);
    }
    assert_eq!(home.commit(&first).await, first.committed(), "overwritten");
    assert_eq!(home.store.order_find(&id).await.unwrap(), Some(first.record(None)));
}

async fn an_order_with_another_content_is_not_the_same(home: &Home) {
    let id = fresh("order");
    let first = Attempt::new(home, &id, "a", &[("shirt", 2), ("shoe", 1)]);
    home.commit(&first).await;
    for (user, items) in [
        ("b", vec![("shirt", 2), ("shoe", 1)]),
        ("a", vec![("shirt", 1), ("shoe", 1)]),
        ("a", vec![("shirt", 2)]),
        ("a", vec![("shirt", 2), ("shoe", 1), ("sock", 1)]),
    ] {
        let other = Attempt::new(home, &id, user, &items);
        assert_eq!(home.commit(&other).await, OrderVerdict::RequestReused, "{user} {items:?}");
        assert_eq!(home.abort(&other).await, OrderVerdict::Aborted);
    }
    assert_eq!(home.commit(&first).await, first.committed(), "overwritten");
}

/// An abortion is remembered for a day; so that it is never forgotten too early, nothing is committed so late.
async fn an_attempt_that_is_an_hour_old_is_not_committed(home: &Home) {
    let hour = 60 * 60;
    let ago = |seconds: u64| Timestamp::from_micros(home.clock.wall().as_micros() - seconds * 1_000_000);
    let attempt = Attempt::new(home, &fresh("order"), "a", &[("shirt", 2)]);
    let late = Attempt { reserved_at: ago(hour + 5), ..attempt.clone() };
    assert_eq!(home.commit(&late).await, OrderVerdict::Aborted);
    assert_eq!(home.commit(&attempt).await, OrderVerdict::Aborted, "the answer has changed");
    assert_eq!(home.abort(&attempt).await, OrderVerdict::Aborted);
    let just = Attempt::new(home, &fresh("order"), "a", &[("shirt", 2)]);
    let just = Attempt { reserved_at: ago(hour - 30), ..just };
    assert_eq!(home.commit(&just).await, just.committed());
}

async fn an_order_that_is_settled_remembers_its_numbers(home: &Home) {
    let id = fresh("order");
    let [first, second] = [(); 2].map(|()| Attempt::new(home, &id, "a", &[("shirt", 2), ("shoe", 1)]));
    assert_eq!(home.decide(&first, &settled(&[4, 9])).await, OrderVerdict::Unknown, "never committed");
    home.commit(&first).await;
    assert_eq!(home.decide(&second, &settled(&[5, 5])).await, OrderVerdict::Unknown, "another attempt");
    let record = first.record(Some(&[4, 9]));
    for _ in 0..2 {
        assert_eq!(home.decide(&first, &settled(&[4, 9])).await, OrderVerdict::Committed(record.clone()));
    }
    assert_eq!(home.commit(&first).await, OrderVerdict::Committed(record.clone()));
    assert_eq!(home.abort(&first).await, OrderVerdict::Committed(record.clone()));
    assert_eq!(home.commit(&second).await, OrderVerdict::AlreadyCommitted(record));
    let other = Attempt::new(home, &id, "b", &[("shirt", 2), ("shoe", 1)]);
    assert_eq!(home.commit(&other).await, OrderVerdict::RequestReused);
}

async fn a_decision_that_is_sent_again_is_answered_again(home: &Home) {
    let attempt = Attempt::new(home, &fresh("order"), "a", &[("shirt", 2)]);
    let sent = |number| Sending { process: attempt.name, slot: 0, number };
    let decide = async |number, decision: &OrderDecision| {
        home.store.order_decide(&sent(number), &attempt.id, attempt.name, decision).await
    };
    assert_eq!(decide(2, &OrderDecision::Abort).await.unwrap(), OrderVerdict::Aborted);
    assert_eq!(decide(2, &OrderDecision::Abort).await.unwrap(), OrderVerdict::Aborted);
    let late = decide(1, &attempt.commit()).await;
    assert!(matches!(late, Err(StoreError::Refused(_))), "{late:?}");
    assert_eq!(decide(3, &attempt.commit()).await.unwrap(), OrderVerdict::Aborted);

    let attempt = Attempt::new(home, &fresh("order"), "a", &[("shirt", 2)]);
    let sending = Sending::once();
    for _ in 0..2 {
        let answer = home.store.order_decide(&sending, &attempt.id, attempt.name, &attempt.commit()).await;
        assert_eq!(answer.unwrap(), attempt.committed());
    }
}

/// Twenty processes place the same order; half of them are called off at the same time.
async fn a_crowd_commits_one_attempt(home: &Home) {
    let id = fresh("order");
    let mut crowd = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (store, attempt) = (home.store.clone(), Attempt::new(home, &id, "a", &[("shirt", 2)]));
        crowd.spawn(async move {
            if number % 2 == 0 {
                let (store, attempt) = (store.clone(), attempt.clone());
                tokio::spawn(async move {
                    let abort = OrderDecision::Abort;
                    store.order_decide(&Sending::once(), &attempt.id, attempt.name, &abort).await
                });
            }
            let decide =
                store.order_decide(&Sending::once(), &attempt.id, attempt.name, &attempt.commit()).await;
            (attempt, decide.unwrap())
        });
    }
    let verdicts = crowd.join_all().await;
    let committed: Vec<_> =
        verdicts.iter().filter(|(_, verdict)| matches!(verdict, OrderVerdict::Committed(_))).collect();
    assert_eq!(committed.len(), 1, "so many were committed");
    let winner = &committed[0].0;
    for (attempt, verdict) in &verdicts {
        let is_right = *verdict == winner.committed() && attempt.name == winner.name
            || *verdict == winner.already()
            || *verdict == OrderVerdict::Aborted;
        assert!(is_right, "{verdict:?}");
    }
}

/// [`Store::order_find`](crate::store::Store::order_find)
pub async fn order_find(home: &Home) {
    let id = fresh("order");
    assert_eq!(home.store.order_find(&id).await.unwrap(), None);
    let attempt = Attempt::new(home, &id, "a", &[("shirt", 2), ("shoe", 1)]);
    home.abort(&Attempt::new(home, &id, "a", &[("shirt", 2)])).await;
    assert_eq!(home.store.order_find(&id).await.unwrap(), None, "it was aborted");
    home.commit(&attempt).await;
    assert_eq!(home.store.order_find(&id).await.unwrap(), Some(attempt.record(None)));
    home.decide(&attempt, &settled(&[7, 1])).await;
    assert_eq!(home.store.order_find(&id).await.unwrap(), Some(attempt.record(Some(&[7, 1]))));

    let names = nasty_names(&fresh("nasty"));
    for id in &names {
        let attempt = Attempt::new(home, id, id.as_str(), &[(id.as_str(), 1)]);
        assert_eq!(home.commit(&attempt).await, attempt.committed(), "{id:?}");
        assert_eq!(home.store.order_find(id).await.unwrap(), Some(attempt.record(None)), "{id:?}");
    }
}
