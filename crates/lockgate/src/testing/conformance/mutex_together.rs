//! What the mutex operations must do that concern several mutexes, or several servers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::mutex::{LONG, PAST_SHORT, SHORT};
use super::{Home, fresh, lease};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, IfTaken, MAX_TOGETHER, Release, Renew, Renewal, Token,
};

type Wishes = Vec<(Name, Attempt)>;

/// Names nobody else uses, that belong to one partition.
fn names_that_belong_together(home: &Home, count: usize) -> Vec<Name> {
    let partition = |name: &Name| home.store.partition_of(name);
    let first = fresh("mutex");
    let here = partition(&first);
    let others = std::iter::repeat_with(|| fresh("mutex")).filter(|name| partition(name) == here);
    std::iter::once(first).chain(others).take(count).collect()
}

/// Wishes for all of them, each with a token of its own.
fn wishes_for(names: &[Name], millis: u64) -> Wishes {
    names.iter().map(|name| (name.clone(), Attempt::new(Token::random(), lease(millis)))).collect()
}

impl Home {
    async fn acquire_all(&self, wishes: &[(Name, Attempt)]) -> Option<Vec<Acquire>> {
        self.store.mutex_acquire_all(wishes).await.unwrap()
    }

    /// Takes all of them; says with which fences.
    async fn has_all(&self, wishes: &[(Name, Attempt)]) -> Vec<Fences> {
        let answers = self.acquire_all(wishes).await.unwrap_or_else(|| panic!("not all of {wishes:?}"));
        assert_eq!(answers.len(), wishes.len());
        let fences = |answer: &Acquire| match answer {
            Acquire::Granted { fences, .. } => *fences,
            other => panic!("{other:?}"),
        };
        answers.iter().map(fences).collect()
    }

    async fn raises(&self, mutex: &Name, token: Token, fence: Fence) -> bool {
        self.store.mutex_raise(mutex, &token, fence).await.unwrap()
    }

    /// Whether nobody holds any of them.
    async fn are_free(&self, names: &[Name]) -> bool {
        for name in names {
            if self.read(name).await.holder.is_some() {
                return false;
            }
        }
        true
    }
}

/// [`Store::mutex_acquire_all`](crate::store::Store::mutex_acquire_all)
pub async fn mutex_acquire_all(home: &Home) {
    all_are_taken_or_none(home).await;
    asking_again_for_all_gets_the_same_fences(home).await;
    each_is_taken_as_its_attempt_says(home).await;
    who_waits_for_one_of_them_is_not_overtaken(home).await;
    a_late_copy_takes_none(home).await;
    what_belongs_to_several_partitions_cannot_be_had_in_one_step(home).await;
    as_many_as_is_said_can_be_taken_together(home).await;
}

async fn all_are_taken_or_none(home: &Home) {
    let names = names_that_belong_together(home, 4);
    let first = wishes_for(&names[..2], SHORT);
    home.has_all(&first).await;
    for (name, attempt) in &first {
        assert_eq!(home.read(name).await.holder.unwrap().token, attempt.token);
    }
    // One of them is taken: the first, one in the middle, or the last.
    for other in [[0, 2, 3], [2, 1, 3], [2, 3, 0]] {
        let wishes = wishes_for(&other.map(|place: usize| names[place].clone()), LONG);
        assert_eq!(home.acquire_all(&wishes).await, None, "{other:?}");
        assert!(home.are_free(&names[2..]).await, "a part of {other:?} was taken");
    }
    home.let_pass(PAST_SHORT).await;
    home.has_all(&wishes_for(&names, LONG)).await;
}

async fn asking_again_for_all_gets_the_same_fences(home: &Home) {
    let names = names_that_belong_together(home, 3);
    let wishes = wishes_for(&names, LONG);
    let fences = home.has_all(&wishes).await;
    home.let_pass(Duration::from_millis(5)).await;
    assert_eq!(home.has_all(&wishes).await, fences);
    assert!(matches!(
        home.acquire_all(&wishes).await.unwrap()[0],
        Acquire::Granted { lease_left, .. } if lease_left < Duration::from_millis(LONG)
    ));
    // Some of them are its own, and others are free: that is not what this attempt has left behind.
    assert_eq!(home.release(&names[1], wishes[1].1.token).await, Release::Released);
    let mixed: Wishes = wishes_for(&names, LONG)
        .into_iter()
        .zip(&wishes)
        .map(|((name, fresh), (_, held))| if name == names[1] { (name, fresh) } else { (name, *held) })
        .collect();
    assert_eq!(home.acquire_all(&mixed).await, None);
    assert_eq!(home.read(&names[1]).await.holder, None);
}

async fn each_is_taken_as_its_attempt_says(home: &Home) {
    let names = names_that_belong_together(home, 3);
    let mut wishes = wishes_for(&names, LONG);
    wishes[0].1.fences = FENCE_BLOCK;
    wishes[1].1.fence_seen = Fence::MAX_SEEN;
    wishes[2].1.lease = lease(SHORT);
    wishes[0].1.if_taken = IfTaken::Queue;
    let fences = home.has_all(&wishes).await;
    assert_eq!(fences[0].last.get() - fences[0].first.get() + 1, FENCE_BLOCK);
    assert_eq!(fences[1].first, Fence::new(Fence::MAX_SEEN.get() + 1));
    home.let_pass(PAST_SHORT).await;
    assert!(home.are_free(&names[2..]).await);
    // Who does not get them does not wait for them.
    let queueing = |(name, attempt)| (name, Attempt { if_taken: IfTaken::Queue, ..attempt });
    let others: Wishes = wishes_for(&names, LONG).into_iter().map(queueing).collect();
    assert_eq!(home.acquire_all(&others).await, None);
    for name in &names {
        assert_eq!(home.read(name).await.waiting, 0);
    }
}

async fn who_waits_for_one_of_them_is_not_overtaken(home: &Home) {
    let (names, mut ear) = (names_that_belong_together(home, 2), home.ear().await);
    home.granted(&names[1], Token::random(), lease(SHORT)).await;
    let bob = ear.token();
    home.queue(&names[1], bob).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.acquire_all(&wishes_for(&names, LONG)).await, None);
    ear.hears_grant_to(bob).await;
    assert!(home.are_free(&names[..1]).await);
    assert_eq!(home.release(&names[1], bob).await, Release::Released);
    home.has_all(&wishes_for(&names, LONG)).await;
}

async fn a_late_copy_takes_none(home: &Home) {
    let names = names_that_belong_together(home, 2);
    let wishes = wishes_for(&names, LONG);
    home.has_all(&wishes).await;
    for (name, attempt) in &wishes {
        assert_eq!(home.release(name, attempt.token).await, Release::Released);
    }
    assert_eq!(home.acquire_all(&wishes).await, None);
    assert!(home.are_free(&names).await);
}

async fn what_belongs_to_several_partitions_cannot_be_had_in_one_step(home: &Home) {
    if home.store.partitions() == 1 {
        return;
    }
    let names: Vec<_> = (0..20).map(|_| fresh("mutex")).collect();
    assert_eq!(home.acquire_all(&wishes_for(&names, LONG)).await, None);
    assert!(home.are_free(&names).await);
}

async fn as_many_as_is_said_can_be_taken_together(home: &Home) {
    let names = names_that_belong_together(home, MAX_TOGETHER + 1);
    let twice = [names[0].clone(), names[1].clone(), names[0].clone()];
    let mut no_fences = wishes_for(&names[..2], LONG);
    no_fences[1].1.fences = 0;
    for wishes in [vec![], wishes_for(&names, LONG), wishes_for(&twice, LONG), no_fences] {
        let refused = home.store.mutex_acquire_all(&wishes).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{}: {refused:?}", wishes.len());
    }
    assert!(home.are_free(&names[..3]).await);
    home.has_all(&wishes_for(&names[1..], LONG)).await;
}

/// [`Store::mutex_raise`](crate::store::Store::mutex_raise)
pub async fn mutex_raise(home: &Home) {
    later_grants_are_above_a_raised_fence(home).await;
    only_the_holder_raises_the_fence(home).await;
    raising_leaves_the_lease_alone(home).await;
}

async fn later_grants_are_above_a_raised_fence(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, ear_less());
    let fence = home.granted(&mutex, alice, lease(LONG)).await;
    let high = Fence::new(Fence::MAX_SEEN.get() - 1_000);
    // A lower one, and the same again, change nothing.
    for raised in [high, fence, high] {
        assert!(home.raises(&mutex, alice, raised).await);
        assert_eq!(home.read(&mutex).await.fence, high);
    }
    let renewal = [Renewal { mutex: mutex.clone(), token: alice, lease: lease(LONG), fences: 1 }];
    let answer = home.store.mutex_renew(&renewal).await.unwrap()[0];
    assert!(
        matches!(answer, Renew::Renewed { fences: Some(fences), .. } if fences.first > high),
        "{answer:?}"
    );
    let bob = ear.token();
    home.queue(&mutex, bob).await;
    assert!(home.raises(&mutex, alice, high).await);
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    let (fences, _) = ear.hears_grant_to(bob).await;
    assert!(fences.first > high, "{fences:?}");
}

/// Somebody who hears nothing.
fn ear_less() -> Token {
    Token::random()
}

async fn only_the_holder_raises_the_fence(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), ear_less());
    let high = Fence::MAX_SEEN;
    assert!(!home.raises(&mutex, alice, high).await);
    let fence = home.granted(&mutex, alice, lease(SHORT)).await;
    assert!(!home.raises(&mutex, ear_less(), high).await);
    let impossible = Fence::new(high.get() + 1);
    let refused = home.store.mutex_raise(&mutex, &alice, impossible).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
    assert_eq!(home.read(&mutex).await.fence, fence);
    home.let_pass(PAST_SHORT).await;
    assert!(!home.raises(&mutex, alice, high).await, "its lease had run out");
    let bob = ear_less();
    home.granted(&mutex, bob, lease(LONG)).await;
    assert_eq!(home.release(&mutex, bob).await, Release::Released);
    assert!(!home.raises(&mutex, bob, high).await, "it has released it");
    assert!(home.read(&mutex).await.fence < high);
}

async fn raising_leaves_the_lease_alone(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), ear_less());
    let fence = home.granted(&mutex, alice, lease(SHORT)).await;
    assert!(home.raises(&mutex, alice, Fence::new(fence.get() + 7)).await);
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, alice);
    home.let_pass(PAST_SHORT).await;
    assert!(!home.is_taken(&mutex).await);
}
