//! What the mutex operations must do that end a holder's time, and the one that tells who has it and who is next.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::mutex::{CLAIM, LONG, PAST_SHORT, ROUNDING, SHORT, queueing};
use super::{Home, fresh, lease, name};
use crate::key::Name;
use crate::store::{Acquire, Attempt, FENCE_BLOCK, Fence, IfTaken, MutexStatus, Release, Renew, Token};

/// [`Store::mutex_release`](crate::store::Store::mutex_release)
pub async fn mutex_release(home: &Home) {
    a_released_mutex_is_free_at_once(home).await;
    releasing_again_says_the_same(home).await;
    a_stale_release_frees_nobody_elses_lock(home).await;
    a_lease_that_ran_out_cannot_be_released(home).await;
    a_release_gives_the_mutex_to_the_next_waiter(home).await;
    a_release_that_is_sent_again_is_told_the_same_though_the_next_has_it(home).await;
    whoever_leaves_the_queue_is_passed_over(home).await;
    a_waiter_who_is_not_there_delays_the_next_by_no_more_than_the_claim_lease(home).await;
}

async fn a_release_gives_the_mutex_to_the_next_waiter(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    let mut last = home.granted(&mutex, alice, lease(LONG)).await;
    let waiters: Vec<_> = (0..5).map(|_| ear.token()).collect();
    for waiter in &waiters {
        home.queue(&mutex, *waiter).await;
    }
    let mut holder = alice;
    for waiter in waiters {
        assert_eq!(home.release(&mutex, holder).await, Release::Released);
        let (fences, claim) = ear.hears_grant_to(waiter).await;
        assert!(fences.first > last, "{fences:?} is not above {last}");
        assert_eq!(fences.last.get() - fences.first.get() + 1, FENCE_BLOCK);
        assert!(claim <= CLAIM && claim >= CLAIM - Duration::from_millis(1), "{claim:?}");
        assert_eq!(home.read(&mutex).await.holder.unwrap().token, waiter);
        (holder, last) = (waiter, fences.last);
    }
    // Nobody has said a word since, so the claim lease ends it.
    home.let_pass(CLAIM + ROUNDING).await;
    assert!(home.granted(&mutex, Token::random(), lease(LONG)).await > last);
}

async fn a_release_that_is_sent_again_is_told_the_same_though_the_next_has_it(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let bob = ear.token();
    home.queue(&mutex, bob).await;
    for _ in 0..3 {
        assert_eq!(home.release(&mutex, alice).await, Release::Released);
    }
    ear.hears_grant_to(bob).await;
    let late = home.acquire(&mutex, alice, lease(LONG)).await;
    assert_eq!(late, Acquire::Taken { lease_left: Duration::ZERO });
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, bob);
}

async fn whoever_leaves_the_queue_is_passed_over(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let (bob, carol) = (ear.token(), ear.token());
    home.queue(&mutex, bob).await;
    home.queue(&mutex, carol).await;
    assert_eq!(home.release(&mutex, bob).await, Release::Left);
    assert_eq!(home.release(&mutex, bob).await, Release::NotHeld);
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    ear.hears_grant_to(carol).await;
}

async fn a_waiter_who_is_not_there_delays_the_next_by_no_more_than_the_claim_lease(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let (nobody, bob) = (Token::random(), ear.token());
    home.queue(&mutex, nobody).await;
    home.queue(&mutex, bob).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    if home.read(&mutex).await.holder.unwrap().token == nobody {
        home.let_pass(CLAIM + ROUNDING).await;
        let again = Attempt { if_taken: IfTaken::QueueAgain, ..queueing(bob) };
        assert!(matches!(home.ask(&mutex, &again).await, Acquire::Granted { .. }));
    } else {
        ear.hears_grant_to(bob).await;
    }
}

async fn a_released_mutex_is_free_at_once(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let first = home.granted(&mutex, alice, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert!(home.granted(&mutex, bob, lease(LONG)).await > first);
}

async fn releasing_again_says_the_same(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    for _ in 0..3 {
        assert_eq!(home.release(&mutex, alice).await, Release::Released);
    }
}

async fn a_stale_release_frees_nobody_elses_lock(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
    home.granted(&mutex, alice, lease(LONG)).await;
    assert_eq!(home.release(&mutex, bob).await, Release::NotHeld);
    assert!(home.is_taken(&mutex).await, "somebody else's token released the mutex");

    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    home.granted(&mutex, bob, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released, "told otherwise than the first time");
    assert!(home.is_taken(&mutex).await, "a release sent twice freed the next holder's lock");
    assert_eq!(home.release(&mutex, bob).await, Release::Released);
    let carol = Token::random();
    home.granted(&mutex, carol, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, carol);
}

async fn a_lease_that_ran_out_cannot_be_released(home: &Home) {
    let (mutex, alice) = (name(fresh("mutex").as_str()), Token::random());
    home.granted(&mutex, alice, lease(SHORT)).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
}

/// [`Store::mutex_yield`](crate::store::Store::mutex_yield)
pub async fn mutex_yield(home: &Home) {
    who_yields_when_nobody_waits_has_it_again_at_once(home).await;
    who_yields_goes_behind_all_who_wait(home).await;
    a_yield_that_is_sent_again_changes_nothing(home).await;
    who_yields_what_it_does_not_hold_waits_like_anybody(home).await;
    who_yields_queues_whatever_it_says(home).await;
}

async fn yielded(home: &Home, mutex: &Name, token: Token, next: Token) -> Acquire {
    home.store.mutex_yield(mutex, &token, &queueing(next)).await.unwrap()
}

async fn who_yields_when_nobody_waits_has_it_again_at_once(home: &Home) {
    let (mutex, alice, next) = (fresh("mutex"), Token::random(), Token::random());
    let fence = home.granted(&mutex, alice, lease(SHORT)).await;
    let answer = yielded(home, &mutex, alice, next).await;
    let Acquire::Granted { fences, lease_left } = answer else { panic!("{answer:?}") };
    assert!(fences.first > fence);
    assert!(lease_left > Duration::from_millis(LONG / 2), "{lease_left:?}");
    assert_eq!(home.release(&mutex, next).await, Release::Released);
}

async fn who_yields_goes_behind_all_who_wait(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let (bob, carol, next) = (ear.token(), ear.token(), ear.token());
    home.queue(&mutex, bob).await;
    home.queue(&mutex, carol).await;
    let answer = yielded(home, &mutex, alice, next).await;
    let Acquire::Queued { ahead: 1, lease_left, .. } = answer else { panic!("{answer:?}") };
    assert!(lease_left <= CLAIM, "{lease_left:?} is left of another lease than the claim");
    ear.hears_grant_to(bob).await;
    for (holder, waiter) in [(bob, carol), (carol, next)] {
        assert_eq!(home.release(&mutex, holder).await, Release::Released);
        ear.hears_grant_to(waiter).await;
    }
}

async fn a_yield_that_is_sent_again_changes_nothing(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let (bob, next) = (ear.token(), ear.token());
    home.queue(&mutex, bob).await;
    for _ in 0..3 {
        let answer = yielded(home, &mutex, alice, next).await;
        assert!(matches!(answer, Acquire::Queued { ahead: 0, .. }), "{answer:?}");
    }
    assert_eq!(home.read(&mutex).await.waiting, 1);
    ear.hears_grant_to(bob).await;
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, bob);
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, bob);
}

async fn who_yields_what_it_does_not_hold_waits_like_anybody(home: &Home) {
    let (mutex, ear) = (fresh("mutex"), home.ear().await);
    home.granted(&mutex, Token::random(), lease(LONG)).await;
    let answer = yielded(home, &mutex, Token::random(), ear.token()).await;
    assert!(matches!(answer, Acquire::Queued { ahead: 0, .. }), "{answer:?}");
}

async fn who_yields_queues_whatever_it_says(home: &Home) {
    for if_taken in [IfTaken::Leave, IfTaken::Watch, IfTaken::QueueAgain] {
        let (mutex, ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
        home.granted(&mutex, alice, lease(LONG)).await;
        let (bob, carol, next, other) = (ear.token(), ear.token(), ear.token(), ear.token());
        home.queue(&mutex, bob).await;
        home.queue(&mutex, carol).await;
        let given_up = Attempt { if_taken, ..queueing(next) };
        let answer = home.store.mutex_yield(&mutex, &alice, &given_up).await.unwrap();
        assert!(matches!(answer, Acquire::Queued { ahead: 1, .. }), "{if_taken:?}: {answer:?}");
        // Alice has given it up: this one asks for nothing but its place.
        let not_held = Attempt { if_taken, ..queueing(other) };
        let answer = home.store.mutex_yield(&mutex, &alice, &not_held).await.unwrap();
        assert!(matches!(answer, Acquire::Queued { ahead: 2, .. }), "{if_taken:?}: {answer:?}");
        assert_eq!(home.read(&mutex).await.first_waiting, [carol, next, other], "{if_taken:?}");
    }
}

/// [`Store::mutex_read`](crate::store::Store::mutex_read)
pub async fn mutex_read(home: &Home) {
    let (mutex, ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    let nothing = MutexStatus { holder: None, fence: Fence::NONE, waiting: 0, first_waiting: Vec::new() };
    assert_eq!(home.read(&mutex).await, nothing);

    let fence = home.granted(&mutex, alice, lease(LONG)).await;
    let waiters: Vec<_> = (0..=MutexStatus::MAX_LISTED).map(|_| ear.token()).collect();
    for waiter in &waiters {
        home.queue(&mutex, *waiter).await;
    }
    let status = home.read(&mutex).await;
    let holder = status.holder.unwrap();
    assert_eq!((holder.token, status.fence), (alice, fence));
    assert!(
        holder.lease_left > Duration::ZERO && holder.lease_left <= Duration::from_millis(LONG),
        "{holder:?}"
    );
    assert_eq!(status.waiting, 101);
    assert_eq!(status.first_waiting, waiters[..MutexStatus::MAX_LISTED]);

    let mutex = fresh("mutex");
    let fence = home.granted(&mutex, alice, lease(LONG)).await;
    home.release(&mutex, alice).await;
    assert_eq!(home.read(&mutex).await, MutexStatus { fence, ..nothing });
}

/// [`Store::mutex_break`](crate::store::Store::mutex_break)
pub async fn mutex_break(home: &Home) {
    a_broken_lock_is_free_and_its_holder_is_shut_out(home).await;
    a_broken_lock_goes_to_the_next_waiter(home).await;
    who_gave_it_back_in_good_order_is_remembered_beyond_a_break(home).await;
    a_break_of_what_nobody_holds_forgets_nobody(home).await;
}

async fn a_broken_lock_is_free_and_its_holder_is_shut_out(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let held = home.granted(&mutex, alice, lease(LONG)).await;
    let fence = home.store.mutex_break(&mutex).await.unwrap();
    assert!(fence > held, "{fence} does not shut {held} out");
    assert_eq!(home.read(&mutex).await.holder, None);
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
    assert!(home.granted(&mutex, Token::random(), lease(LONG)).await > fence);

    let unheld = fresh("mutex");
    let fence = home.store.mutex_break(&unheld).await.unwrap();
    assert!(home.granted(&unheld, Token::random(), lease(LONG)).await > fence);
}

async fn a_broken_lock_goes_to_the_next_waiter(home: &Home) {
    let (mutex, mut ear, alice) = (fresh("mutex"), home.ear().await, Token::random());
    home.granted(&mutex, alice, lease(LONG)).await;
    let bob = ear.token();
    home.queue(&mutex, bob).await;
    let fence = home.store.mutex_break(&mutex).await.unwrap();
    let (fences, _) = ear.hears_grant_to(bob).await;
    assert!(fences.first > fence);
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
    assert_eq!(home.read(&mutex).await.holder.unwrap().token, bob);
}

/// Who has released the mutex is told so again, and its late call does not take it back.
async fn is_remembered(home: &Home, mutex: &Name, token: Token) {
    let late = home.acquire(mutex, token, lease(LONG)).await;
    assert_eq!(late, Acquire::Taken { lease_left: Duration::ZERO });
    assert_eq!(home.release(mutex, token).await, Release::Released);
}

async fn who_gave_it_back_in_good_order_is_remembered_beyond_a_break(home: &Home) {
    for is_waited_for in [false, true] {
        let (mutex, mut ear) = (fresh("mutex"), home.ear().await);
        let (alice, bob, carol) = (Token::random(), Token::random(), ear.token());
        home.granted(&mutex, alice, lease(LONG)).await;
        assert_eq!(home.release(&mutex, alice).await, Release::Released);
        home.granted(&mutex, bob, lease(LONG)).await;
        if is_waited_for {
            home.queue(&mutex, carol).await;
        }
        home.store.mutex_break(&mutex).await.unwrap();
        is_remembered(home, &mutex, alice).await;
        // It was taken from Bob: that is no release, and he must learn of it.
        assert_eq!(home.release(&mutex, bob).await, Release::NotHeld);
        if is_waited_for {
            ear.hears_grant_to(carol).await;
            assert_eq!(home.read(&mutex).await.holder.unwrap().token, carol);
        } else {
            assert_eq!(home.read(&mutex).await.holder, None);
        }
    }
}

async fn a_break_of_what_nobody_holds_forgets_nobody(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    for token in [alice, bob] {
        home.granted(&mutex, token, lease(LONG)).await;
        assert_eq!(home.release(&mutex, token).await, Release::Released);
    }
    home.store.mutex_break(&mutex).await.unwrap();
    is_remembered(home, &mutex, alice).await;
    is_remembered(home, &mutex, bob).await;
    assert!(!home.is_taken(&mutex).await);
}
