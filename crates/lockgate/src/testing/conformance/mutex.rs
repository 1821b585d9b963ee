//! What the mutex operations must do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::{Home, fresh, lease, name, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Acquire, Fence, Lease, Release, Renew, Token};

/// A lease that does not end during a test, in milliseconds.
const LONG: u64 = 60_000;
/// A lease that is waited for; long enough that a busy machine does not let it end between two calls.
const SHORT: u64 = 300;

impl Home {
    async fn acquire(&self, mutex: &Name, token: Token, lease: Lease) -> Acquire {
        self.store.mutex_acquire(mutex, &token, lease, Fence::NONE).await.unwrap()
    }

    async fn granted(&self, mutex: &Name, token: Token, lease: Lease) -> Fence {
        match self.acquire(mutex, token, lease).await {
            Acquire::Granted { fence, .. } => fence,
            Acquire::Taken { lease_left } => panic!("{mutex} is taken for another {lease_left:?}"),
        }
    }

    async fn is_taken(&self, mutex: &Name) -> bool {
        matches!(self.acquire(mutex, Token::random(), lease(1)).await, Acquire::Taken { .. })
    }

    async fn renew(&self, mutex: &Name, token: Token, lease: Lease) -> Renew {
        self.store.mutex_renew(mutex, &token, lease).await.unwrap()
    }

    async fn release(&self, mutex: &Name, token: Token) -> Release {
        self.store.mutex_release(mutex, &token).await.unwrap()
    }
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
}

async fn one_token_gets_it_and_others_are_told_for_how_long(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let before = home.clock.wall().as_micros();
    let Acquire::Granted { fence, lease_left } = home.acquire(&mutex, alice, lease(LONG)).await else {
        panic!("a mutex that nobody holds was not granted");
    };
    assert!(
        fence.get() >= before,
        "{fence} is below the store's time, so it would fall back when the key is lost"
    );
    assert_eq!(lease_left, Duration::from_millis(LONG));
    let Acquire::Taken { lease_left } = home.acquire(&mutex, bob, lease(LONG)).await else {
        panic!("two tokens hold one mutex");
    };
    assert!(lease_left > Duration::ZERO && lease_left <= Duration::from_millis(LONG), "{lease_left:?}");
}

async fn asking_again_with_the_same_token_changes_nothing(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let fence = home.granted(&mutex, alice, lease(LONG)).await;
    home.let_pass(Duration::from_millis(5)).await;
    let Acquire::Granted { fence: again, lease_left } = home.acquire(&mutex, alice, lease(2 * LONG)).await
    else {
        panic!("the holder was refused");
    };
    assert_eq!(again, fence);
    assert!(
        lease_left < Duration::from_millis(LONG),
        "a re-sent acquire made the lease longer: {lease_left:?}"
    );
}

async fn a_lease_that_ran_out_is_free_for_others(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let first = home.granted(&mutex, alice, lease(SHORT)).await;
    assert!(home.is_taken(&mutex).await);
    home.let_pass(Duration::from_millis(SHORT)).await;
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
    let answer = home.store.mutex_acquire(&mutex, &alice, lease(LONG), seen).await.unwrap();
    let Acquire::Granted { fence, .. } = answer else { panic!("not granted") };
    assert_eq!(fence, Fence::new(seen.get() + 1));
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert_eq!(home.granted(&mutex, bob, lease(LONG)).await, Fence::new(seen.get() + 2));

    let impossible = Fence::new(seen.get() + 1);
    let mutex = fresh("mutex");
    let refused = home.store.mutex_acquire(&mutex, &alice, lease(LONG), impossible).await;
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
            store.mutex_acquire(&mutex, &Token::random(), lease(LONG), Fence::NONE).await.unwrap()
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

/// [`Store::mutex_renew`](crate::store::Store::mutex_renew)
pub async fn mutex_renew(home: &Home) {
    a_renewed_lease_begins_anew(home).await;
    only_the_holder_can_renew(home).await;
    a_lease_that_ran_out_stays_lost(home).await;
}

async fn a_renewed_lease_begins_anew(home: &Home) {
    let (mutex, alice) = (fresh("mutex"), Token::random());
    let fence = home.granted(&mutex, alice, lease(SHORT)).await;
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::Renewed);
    home.let_pass(Duration::from_millis(2 * SHORT)).await;
    assert!(home.is_taken(&mutex).await, "renewed, and free when the first lease ended");
    assert_eq!(home.granted(&mutex, alice, lease(LONG)).await, fence, "renewing changed the fence");

    assert_eq!(home.renew(&mutex, alice, lease(SHORT)).await, Renew::Renewed);
    home.let_pass(Duration::from_millis(SHORT)).await;
    assert!(!home.is_taken(&mutex).await, "a renewal to a shorter lease was not obeyed");
}

async fn only_the_holder_can_renew(home: &Home) {
    let (mutex, alice, mallory) = (fresh("mutex"), Token::random(), Token::random());
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    home.granted(&mutex, alice, lease(SHORT)).await;
    assert_eq!(home.renew(&mutex, mallory, lease(LONG)).await, Renew::NotHeld);
    home.let_pass(Duration::from_millis(SHORT)).await;
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
    home.let_pass(Duration::from_millis(SHORT)).await;
    assert_eq!(home.renew(&mutex, alice, lease(LONG)).await, Renew::NotHeld);
    assert!(!home.is_taken(&mutex).await);
}

/// [`Store::mutex_release`](crate::store::Store::mutex_release)
pub async fn mutex_release(home: &Home) {
    a_released_mutex_is_free_at_once(home).await;
    releasing_again_says_the_same_until_somebody_else_holds_it(home).await;
    a_stale_release_frees_nobody_elses_lock(home).await;
    a_lease_that_ran_out_cannot_be_released(home).await;
}

async fn a_released_mutex_is_free_at_once(home: &Home) {
    let (mutex, alice, bob) = (fresh("mutex"), Token::random(), Token::random());
    let first = home.granted(&mutex, alice, lease(LONG)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::Released);
    assert!(home.granted(&mutex, bob, lease(LONG)).await > first);
}

async fn releasing_again_says_the_same_until_somebody_else_holds_it(home: &Home) {
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
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
    assert!(home.is_taken(&mutex).await, "a release sent twice freed the next holder's lock");
}

async fn a_lease_that_ran_out_cannot_be_released(home: &Home) {
    let (mutex, alice) = (name(fresh("mutex").as_str()), Token::random());
    home.granted(&mutex, alice, lease(SHORT)).await;
    home.let_pass(Duration::from_millis(SHORT)).await;
    assert_eq!(home.release(&mutex, alice).await, Release::NotHeld);
}
