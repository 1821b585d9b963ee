//! What the mutex operations must do that take it and keep it. The others are in `mutex_handing_on.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::{Home, fresh, lease, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, IfTaken, Lease, MAX_RENEW_BATCH, MutexStatus, Release,
    Renew, Renewal, Token,
};

/// A lease that does not end during a test, in milliseconds.
pub(super) const LONG: u64 = 60_000;
/// A lease that is waited for; long enough that a busy machine does not let it end between two calls.
pub(super) const SHORT: u64 = 300;
/// A store may count whole milliseconds.
pub(super) const ROUNDING: Duration = Duration::from_millis(2);
pub(super) const PAST_SHORT: Duration = Duration::from_millis(SHORT + 2);
/// The claim lease of a store as it is opened by default.
pub(super) const CLAIM: Duration = Duration::from_secs(1);

const RENEWED: Renew = Renew::Renewed { fences: None, others_wait: false };

impl Home {
    pub(super) async fn ask(&self, mutex: &Name, attempt: &Attempt) -> Acquire {
        self.store.mutex_acquire(mutex, attempt).await.unwrap()
    }

    pub(super) async fn acquire(&self, mutex: &Name, token: Token, lease: Lease) -> Acquire {
        self.ask(mutex, &Attempt::new(token, lease)).await
    }

    pub(super) async fn granted(&self, mutex: &Name, token: Token, lease: Lease) -> Fence {
        match self.acquire(mutex, token, lease).await {
            Acquire::Granted { fences, .. } => fences.first,
            other => panic!("{mutex}: {other:?}"),
        }
    }

    pub(super) async fn is_taken(&self, mutex: &Name) -> bool {
        matches!(self.acquire(mutex, Token::random(), lease(1)).await, Acquire::Taken { .. })
    }

    pub(super) async fn renew(&self, mutex: &Name, token: Token, lease: Lease) -> Renew {
        let renewal = Renewal { mutex: mutex.clone(), token, lease, fences: 0 };
        self.store.mutex_renew(&[renewal]).await.unwrap()[0]
    }

    pub(super) async fn release(&self, mutex: &Name, token: Token) -> Release {
        self.store.mutex_release(mutex, &token).await.unwrap()
    }

    pub(super) async fn read(&self, mutex: &Name) -> MutexStatus {
        self.store.mutex_read(mutex).await.unwrap()
    }

    /// Waits in the queue of a mutex that is taken; returns how many are ahead.
    pub(super) async fn queue(&self, mutex: &Name, token: Token) -> u64 {
        match self.ask(mutex, &queueing(token)).await {
            Acquire::Queued { ahead, .. } => ahead,
            other => panic!("{mutex}: {other:?}"),
        }
    }
}

/// An attempt that waits in the queue.
pub(super) fn queueing(token: Token) -> Attempt {
    Attempt { if_taken: IfTaken::Queue, ..Attempt::new(token, lease(LONG)) }
}

/// [`Store::mutex_acquire`](crate::store::Store::mutex_acquire)
pub async fn mutex_acquire(home: &Home) {
    one_token_gets_it_and_others_are_told_for_how_long(home).await;
    asking_again_with_the_same_token_changes_nothing(home).await;
    a_lease_that_ran_out_is_free_for_others(home).await;
    fences_rise_whatever_happens(home).await;
    a_fence_is_above_what_the_caller_has_seen(home).await;
    a_late_copy_of_an_acquire_does_not_take_the_mutex_back(home).await;
    of_many_at_once_one_gets_it(home).await;
    every_name_is_a_mutex_of_its_own(home).await;
    as_many_fences_are_reserved_as_were_asked_for(home).await;
    who_queues_keeps_its_place_and_is_told_where_it_stands(home).await;
    nobody_overtakes_the_queue(home).await;
    the_next_call_notices_that_a_lease_ran_out(home).await;
    who_missed_its_turn_goes_to_the_head_of_the_queue(home).await;
    who_watches_hears_once_when_it_is_free(home).await;
}

async fn one_token_gets_it_and_others_are_told_for_how_long(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let before = home.clock.wall().as_micros();
    let Acquire::Granted { fences, lease_left } = home.acquire(&mutex, alice, lease(LONG)).await else {
        panic!("a mutex that nobody holds was not granted");
    };
    let fence = fences.first;
    assert!(
        fence.get() >= before,
        "{fence} is below the store's time, so it would fall back when the key is lost"
    );
    // A store that counts whole milliseconds may end a lease up to one early, and says so.
    let asked = Duration::from_millis(LONG);
    assert!(lease_left <= asked && lease_left >= asked - Duration::from_millis(1), "{lease_left:?}");
    let Acquire::Taken { lease_left } = home.acquire(&mutex, bob, lease(LONG)).await else {
        panic!("two tokens hold one mutex");
    };
    assert!(lease_left > Duration::ZERO && lease_left <= Duration::from_millis(LONG), "{lease_left:?}");
}

async fn asking_again_with_the_same_token_changes_nothing(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let fence = home.granted(&mutex, alice, lease(LONG)).await;
    home.let_pass(Duration::from_millis(5)).await;
    let again = home.acquire(&mutex, alice, lease(2 * LONG)).await;
    let Acquire::Granted { fences: again, lease_left } = again else {
        panic!("the holder was refused: {again:?}")
    };
    assert_eq!(again, Fences { first: fence, last: fence });
    assert!(
        lease_left < Duration::from_millis(LONG),
        "a re-sent acquire made the lease longer: {lease_left:?}"
    );
}

async fn a_lease_that_ran_out_is_free_for_others(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let first = home.granted(&mutex, alice, lease(SHORT)).await;
    assert!(home.is_taken(&mutex).await);
    home.let_pass(PAST_SHORT).await;
    assert!(home.granted(&mutex, bob, lease(LONG)).await > first);
    assert!(matches!(home.acquire(&mutex, alice, lease(LONG)).await, Acquire::Taken { .. }));
}

async fn fences_rise_whatever_happens(home: &Home) {
    let mutex = fresh("mutex");
    let mut last = Fence::NONE;
    for _ in 0..50 {
        let token = Token::random();
        let fence = home.granted(&mutex, token, lease(LONG)).await;
        assert!(fence > last, "{fence} does not rise above {last}");
        last = fence;
        assert_eq!(home.release(&mutex, token).await, Release::Released);
    }
}

async fn a_fence_is_above_what_the_caller_has_seen(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    // Far above any clock, so that only the caller's word can have led there, and still exact in a double.
    let seen = Fence::MAX_SEEN;
    let answer = home.ask(&mutex, &Attempt { fence_seen: seen, ..Attempt::new(alice, lease(LONG)) }).await;
    let Acquire::Granted { fences, .. } = answer else { panic!("not granted: {answer:?}") };
    assert_eq!(fences.first, Fence::new(seen.get() + 1));
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert_eq!(home.granted(&mutex, bob, lease(LONG)).await, Fence::new(seen.get() + 2));

    let impossible = Fence::new(seen.get() + 1);
    let mutex = fresh("mutex");
    let attempt = Attempt { fence_seen: impossible, ..Attempt::new(alice, lease(LONG)) };
    let refused = home.store.mutex_acquire(&mutex, &attempt).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
    assert!(!home.is_taken(&mutex).await);
}

async fn a_late_copy_of_an_acquire_does_not_take_the_mutex_back(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    let late = home.acquire(&mutex, alice, lease(LONG)).await;
    assert_eq!(late, Acquire::Taken { lease_left: Duration::ZERO });
    assert!(!home.is_taken(&mutex).await);
}

async fn of_many_at_once_one_gets_it(home: &Home) {
    let mutex = fresh("mutex");
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, mutex) = (home.store.clone(), mutex.clone());
        tries.spawn(async move {
            store.mutex_acquire(&mutex, &Attempt::new(Token::random(), lease(LONG))).await.unwrap()
        });
    }
    let answers = tries.join_all().await;
    let granted = answers.iter().filter(|answer| matches!(answer, Acquire::Granted { .. })).count();
    assert_eq!(granted, 1);
}

async fn every_name_is_a_mutex_of_its_own(home: &Home) {
    let names = nasty_names(&fresh("mutex"));
    for mutex in &names {
        home.granted(mutex, Token::random(), lease(LONG)).await;
    }
    for mutex in &names {
        assert!(home.is_taken(mutex).await, "{mutex:?}");
    }
}

async fn as_many_fences_are_reserved_as_were_asked_for(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let many = Attempt { fences: FENCE_BLOCK, ..Attempt::new(alice, lease(LONG)) };
    let first = home.ask(&mutex, &many).await;
    let Acquire::Granted { fences, .. } = first else { panic!("not granted: {first:?}") };
    assert_eq!(fences.last.get() - fences.first.get() + 1, FENCE_BLOCK);
    let Acquire::Granted { fences: again, .. } = home.ask(&mutex, &many).await else {
        panic!("not granted again")
    };
    assert_eq!(again, fences);
    home.release(&mutex, alice).await;
    assert!(home.granted(&mutex, Token::random(), lease(LONG)).await > fences.last);

    for nonsense in [0, FENCE_BLOCK + 1] {
        let attempt = Attempt { fences: nonsense, ..Attempt::new(alice, lease(LONG)) };
        let refused = home.store.mutex_acquire(&fresh("mutex"), &attempt).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
    }
}

async fn who_queues_keeps_its_place_and_is_told_where_it_stands(home: &Home) {
    let (mutex, ear) = (fresh("mutex"), home.ear().await);
    home.granted(&mutex, Token::random(), lease(LONG)).await;
    let (bob, carol) = (ear.token(), ear.token());
    let before = home.clock.wall();
    let answer = home.ask(&mutex, &queueing(bob)).await;
    let Acquire::Queued { ahead: 0, lease_left, now } = answer else { panic!("{answer:?}") };
    assert!(lease_left <= Duration::from_millis(LONG) && lease_left > Duration::ZERO, "{lease_left:?}");
    assert!(now >= before, "{now:?} is not the store's time");
    assert_eq!(home.queue(&mutex, carol).await, 1);
    for if_taken in [IfTaken::Queue, IfTaken::QueueAgain, IfTaken::Queue] {
        for (token, place) in [(bob, 0), (carol, 1)] {
            let answer = home.ask(&mutex, &Attempt { if_taken, ..queueing(token) }).await;
            assert!(matches!(answer, Acquire::Queued { ahead, .. } if ahead == place), "{answer:?}");
        }
    }
    assert_eq!(home.read(&mutex).await.first_waiting, [bob, carol]);
}

async fn nobody_overtakes_the_queue(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let bob = ear.token();
    home.queue(&mutex, bob).await;
    assert!(home.is_taken(&mutex).await);
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert!(home.is_taken(&mutex).await, "somebody came in between");
    ear.hears_grant_to(bob).await;
}

async fn the_next_call_notices_that_a_lease_ran_out(home: &Home) {
    let (mutex, mut ear) = (fresh("mutex"), home.ear().await);
    let fence = home.granted(&mutex, Token::random(), lease(SHORT)).await;
    let (bob, carol) = (ear.token(), ear.token());
    home.queue(&mutex, bob).await;
    home.queue(&mutex, carol).await;
    home.let_pass(PAST_SHORT).await;
    assert!(ear.has_heard_nothing());
    // Carol asks, and Bob is the next.
    home.queue(&mutex, carol).await;
    let (fences, _) = ear.hears_grant_to(bob).await;
    assert!(fences.first > fence);
    // Who asks itself is told by the answer, and not a second time.
    assert_eq!(home.release(&mutex, bob).await, Release::Released);
    ear.hears_grant_to(carol).await;
    let dave = ear.token();
    home.queue(&mutex, dave).await;
    home.let_pass(CLAIM + ROUNDING).await;
    let answer = home.ask(&mutex, &queueing(dave)).await;
    assert!(matches!(answer, Acquire::Granted { .. }), "{answer:?}");
    assert!(ear.has_heard_nothing());
}

async fn who_missed_its_turn_goes_to_the_head_of_the_queue(home: &Home) {
    let (mutex, ear) = (fresh("mutex"), home.ear().await);
    home.granted(&mutex, Token::random(), lease(LONG)).await;
    let (bob, carol) = (ear.token(), ear.token());
    home.queue(&mutex, bob).await;
    home.queue(&mutex, carol).await;
    assert_eq!(home.release(&mutex, bob).await, Release::Left);
    let again = Attempt { if_taken: IfTaken::QueueAgain, ..queueing(bob) };
    let answer = home.ask(&mutex, &again).await;
    assert!(matches!(answer, Acquire::Queued { ahead: 0, .. }), "{answer:?}");
}

async fn who_watches_hears_once_when_it_is_free(home: &Home) {
    let (mutex, mut ear, alice, bob) = (fresh("mutex"), home.ear().await, Token::random(), Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let watching = Attempt { if_taken: IfTaken::Watch, ..Attempt::new(bob, lease(LONG)) };
    assert!(matches!(home.ask(&mutex, &watching).await, Acquire::Taken { .. }));
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    ear.hears_freed(&mutex).await;
    home.granted(&mutex, Token::random(), lease(SHORT)).await;
    home.let_pass(Duration::from_millis(20)).await;
    assert!(!ear.has_heard_freed(&mutex), "told twice");
    home.let_pass(PAST_SHORT).await;
    let answer = home.ask(&mutex, &watching).await;
    assert!(matches!(answer, Acquire::Granted { .. }), "{answer:?}");
    assert_eq!(home.release(&mutex, bob).await, Release::Released);
    ear.hears_freed(&mutex).await;
    let carol = Token::random();
    home.granted(&mutex, carol, lease(LONG)).await;
    assert_eq!(home.release(&mutex, carol).await, Release::Released);
    home.let_pass(Duration::from_millis(20)).await;
    assert!(!ear.has_heard_freed(&mutex), "told, and nobody watched");
}

/// [`Store::mutex_renew`](crate::store::Store::mutex_renew)
pub async fn mutex_renew(home: &Home) {
    a_renewed_lease_begins_anew(home).await;
    only_the_holder_can_renew(home).await;
    a_lease_that_ran_out_stays_lost(home).await;
    many_are_renewed_at_once_each_for_itself(home).await;
    a_renewal_reserves_more_fences_and_tells_whether_others_wait(home).await;
}

async fn many_are_renewed_at_once_each_for_itself(home: &Home) {
    let (alice, mallory) = (Token::random(), Token::random());
    let mutexes: Vec<_> = (0..100).map(|_| fresh("mutex")).collect();
    let mut renewals = Vec::new();
    for (number, mutex) in mutexes.iter().enumerate() {
        home.granted(mutex, alice, lease(SHORT)).await;
        let token = if number % 3 == 0 { mallory } else { alice };
        renewals.push(Renewal { mutex: mutex.clone(), token, lease: lease(LONG), fences: 0 });
    }
    let answers = home.store.mutex_renew(&renewals).await.unwrap();
    let is_renewed = |answer: &Renew| matches!(answer, Renew::Renewed { .. });
    assert_eq!(answers.len(), 100);
    assert!(
        answers.iter().enumerate().all(|(number, answer)| is_renewed(answer) == (number % 3 != 0)),
        "{answers:?}"
    );
    assert_eq!(home.store.mutex_renew(&[]).await.unwrap(), []);

    let too_many = vec![renewals[0].clone(); MAX_RENEW_BATCH + 1];
    let refused = home.store.mutex_renew(&too_many).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

async fn a_renewal_reserves_more_fences_and_tells_whether_others_wait(home: &Home) {
    let (mutex, ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    let first = home.granted(&mutex, alice, lease(LONG)).await;
    let renewal = [Renewal { mutex: mutex.clone(), token: alice, lease: lease(LONG), fences: 10 }];
    let answer = home.store.mutex_renew(&renewal).await.unwrap()[0];
    let Renew::Renewed { fences: Some(fences), others_wait: false } = answer else { panic!("{answer:?}") };
    assert!(fences.first > first && fences.last.get() - fences.first.get() == 9, "{fences:?}");

    let bob = ear.token();
    home.queue(&mutex, bob).await;
    let answer = home.renew(&mutex, alice, lease(LONG)).await;
    assert_eq!(answer, Renew::Renewed { fences: None, others_wait: true });
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    let again = home.granted(&mutex, bob, lease(LONG)).await;
    assert!(again > fences.last, "{again} is not above {fences:?}");
}

async fn a_renewed_lease_begins_anew(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let fence = home.granted(&mutex, alice, lease(SHORT)).await;
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, RENEWED);
    home.let_pass(Duration::from_millis(2 * SHORT)).await;
    assert!(home.is_taken(&mutex).await, "renewed, and free when the first lease ended");
    assert_eq!(home.granted(&mutex, alice, lease(LONG)).await, fence, "renewing changed the fence");

    assert_eq!(home.renew(&mutex, alice, lease(SHORT)).await, RENEWED);
    home.let_pass(PAST_SHORT).await;
    assert!(!home.is_taken(&mutex).await, "a renewal to a shorter lease was not obeyed");
}

async fn only_the_holder_can_renew(home: &Home) {
    let (mutex, alice, mallory) = (fresh("mutex"), Token::random(), Token::random());
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    home.granted(&mutex, alice, lease(SHORT)).await;
    assert_eq!(home.renew(&mutex, mallory, lease(LONG)).await, Renew::NotHeld);
    home.let_pass(PAST_SHORT).await;
    assert!(!home.is_taken(&mutex).await, "a refused renewal made the lease longer");

    let mutex = fresh("mutex");
    home.granted(&mutex, alice, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    assert!(!home.is_taken(&mutex).await, "renewing after the release took the mutex again");
}

async fn a_lease_that_ran_out_stays_lost(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    home.granted(&mutex, alice, lease(SHORT)).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    assert!(!home.is_taken(&mutex).await);
}
