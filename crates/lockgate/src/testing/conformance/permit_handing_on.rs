//! What the operations on pools must do that end a holder's time, and the one that tells who has permits and who is next.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::Home;
use super::mutex::{CLAIM, LONG, PAST_SHORT, ROUNDING, SHORT};
use super::permit::{Used, semaphore, trying, waiting_again};
use crate::store::{
    Acquire, FENCE_BLOCK, Fence, POOL_RELEASES_KEPT, PoolStatus, Release, Renew, Shrink, Token,
};

/// [`Store::permit_release`](crate::store::Store::permit_release)
pub async fn permit_release(home: &Home) {
    permits_that_are_given_back_can_be_had_at_once(home).await;
    giving_back_again_says_the_same(home).await;
    as_many_releases_are_remembered_as_is_said(home).await;
    nobody_gives_back_what_it_does_not_hold(home).await;
    the_first_waiters_get_what_is_given_back(home).await;
    whoever_leaves_the_queue_gets_nothing(home).await;
    waiters_who_are_not_there_delay_the_next_by_no_more_than_the_claim_lease(home).await;
}

async fn permits_that_are_given_back_can_be_had_at_once(home: &Home) {
    let (used, alice, bob) = (semaphore(3), Token::random(), Token::random());
    let first = home.takes(&used, 2, alice).await;
    home.takes(&used, 1, bob).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    assert_eq!(home.holders(&used).await, [(bob, 1)]);
    assert!(home.are_taken(&used, 3).await);
    assert!(home.takes(&used, 2, Token::random()).await > first);
}

async fn giving_back_again_says_the_same(home: &Home) {
    let (used, mut ear, alice) = (semaphore(2), home.ear().await, Token::random());
    home.takes(&used, 2, alice).await;
    let (bob, carol) = (ear.token(), ear.token());
    home.waits(&used, 1, bob).await;
    home.waits(&used, 2, carol).await;
    for _ in 0..3 {
        assert_eq!(home.gives_back(&used, alice).await, Release::Released);
        assert_eq!(home.holders(&used).await, [(bob, 1)], "the permits were given back twice");
    }
    ear.hears_grant_to(bob).await;
    assert!(ear.has_heard_nothing());
}

/// Takes a permit and gives it back.
async fn comes_and_goes(home: &Home, used: &Used, token: Token) {
    home.takes(used, 1, token).await;
    assert_eq!(home.gives_back(used, token).await, Release::Released);
}

async fn as_many_releases_are_remembered_as_is_said(home: &Home) {
    let (used, alice) = (semaphore(2), Token::random());
    home.takes(&used, 1, Token::random()).await;
    comes_and_goes(home, &used, alice).await;
    for _ in 1..POOL_RELEASES_KEPT {
        comes_and_goes(home, &used, Token::random()).await;
        assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    }
    comes_and_goes(home, &used, Token::random()).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::NotHeld);
    assert_eq!(home.use_of(&used).await.taken, 1);
}

async fn nobody_gives_back_what_it_does_not_hold(home: &Home) {
    let (used, alice, mallory) = (semaphore(1), Token::random(), Token::random());
    assert_eq!(home.gives_back(&used, alice).await, Release::NotHeld);
    home.takes_for(&used, 1, alice, SHORT).await;
    assert_eq!(home.gives_back(&used, mallory).await, Release::NotHeld);
    assert!(home.are_taken(&used, 1).await, "somebody else's token gave the permit back");
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::NotHeld, "its lease had run out");
    home.takes(&used, 1, mallory).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::NotHeld);
    assert_eq!(home.holders(&used).await, [(mallory, 1)]);
}

async fn the_first_waiters_get_what_is_given_back(home: &Home) {
    let (used, mut ear, alice) = (semaphore(4), home.ear().await, Token::random());
    let mut last = home.takes(&used, 4, alice).await;
    let waiters: Vec<_> = (0..5).map(|_| ear.token()).collect();
    for waiter in &waiters {
        home.waits(&used, 1, *waiter).await;
    }
    let before = home.clock.wall();
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    for waiter in &waiters[..4] {
        let (fences, claim) = ear.hears_grant_of(&used.pool, *waiter, before).await;
        assert!(fences.first > last, "{fences:?} is not above {last}");
        assert_eq!(fences.last.get() - fences.first.get() + 1, FENCE_BLOCK);
        assert!(claim <= CLAIM && claim >= CLAIM - Duration::from_millis(1), "{claim:?}");
        last = fences.last;
    }
    assert_eq!(home.use_of(&used).await.fence, last);
    assert_eq!(home.use_of(&used).await.first_waiting, [(waiters[4], 1)]);
    assert_eq!(home.gives_back(&used, waiters[0]).await, Release::Released);
    ear.hears_grant_to(waiters[4]).await;
    // Nobody has said a word since, so the claim lease ends it.
    home.let_pass(CLAIM + ROUNDING).await;
    assert!(home.takes(&used, 4, Token::random()).await > last);
}

async fn whoever_leaves_the_queue_gets_nothing(home: &Home) {
    let (used, mut ear, alice) = (semaphore(1), home.ear().await, Token::random());
    home.takes(&used, 1, alice).await;
    let (bob, carol, dave) = (ear.token(), ear.token(), ear.token());
    for waiter in [bob, carol, dave] {
        home.waits(&used, 1, waiter).await;
    }
    for leaving in [carol, bob] {
        assert_eq!(home.gives_back(&used, leaving).await, Release::Left);
        assert_eq!(home.gives_back(&used, leaving).await, Release::NotHeld);
    }
    assert_eq!(home.use_of(&used).await.first_waiting, [(dave, 1)]);
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    ear.hears_grant_to(dave).await;
}

async fn waiters_who_are_not_there_delay_the_next_by_no_more_than_the_claim_lease(home: &Home) {
    let (used, mut ear, alice) = (semaphore(2), home.ear().await, Token::random());
    home.takes(&used, 2, alice).await;
    let (nobody, bob) = (Token::random(), ear.token());
    home.waits(&used, 2, nobody).await;
    home.waits(&used, 1, bob).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    // Where there are several partitions there are several servers, and none of them knows all who hear.
    if home.store.partitions() > 1 && home.holders(&used).await == [(nobody, 2)] {
        home.let_pass(CLAIM + ROUNDING).await;
        assert!(matches!(home.wish(&used, 1, &waiting_again(bob)).await, Acquire::Granted { .. }));
    } else {
        ear.hears_grant_to(bob).await;
        assert_eq!(home.holders(&used).await, [(bob, 1)]);
        // It was only away for a moment, and there is room.
        let answer = home.wish(&used, 1, &waiting_again(nobody)).await;
        assert!(matches!(answer, Acquire::Granted { .. }), "{answer:?}");
    }
}

/// [`Store::permit_read`](crate::store::Store::permit_read)
pub async fn permit_read(home: &Home) {
    who_holds_and_who_waits_is_told(home).await;
    no_more_than_the_first_are_listed(home).await;
}

const NOTHING: PoolStatus = PoolStatus {
    total: None,
    taken: 0,
    holding: 0,
    holders: Vec::new(),
    fence: Fence::NONE,
    waiting: 0,
    first_waiting: Vec::new(),
};

async fn who_holds_and_who_waits_is_told(home: &Home) {
    let (used, ear) = (semaphore(6), home.ear().await);
    assert_eq!(home.use_of(&used).await, NOTHING);
    let (alice, bob, carol) = (Token::random(), Token::random(), Token::random());
    home.takes_for(&used, 1, alice, LONG).await;
    home.takes_for(&used, 2, bob, LONG / 4).await;
    let fence = home.takes_for(&used, 3, carol, LONG / 2).await;
    let (dave, erin) = (ear.token(), ear.token());
    home.waits(&used, 6, dave).await;
    home.waits(&used, 1, erin).await;
    let status = home.use_of(&used).await;
    // The lease that ends first comes first.
    for (holder, (token, permits, millis)) in
        status.holders.iter().zip([(bob, 2, LONG / 4), (carol, 3, LONG / 2), (alice, 1, LONG)])
    {
        assert_eq!((holder.token, holder.permits), (token, permits));
        let lease = Duration::from_millis(millis);
        assert!(holder.lease_left <= lease && holder.lease_left > lease * 3 / 4, "{holder:?}");
    }
    let first_waiting = vec![(dave, 6), (erin, 1)];
    let (total, holders) = (Some(6), status.holders.clone());
    let expected = PoolStatus { total, taken: 6, holding: 3, holders, fence, waiting: 2, first_waiting };
    assert_eq!(status, expected);

    for token in [dave, erin, alice, bob, carol] {
        home.gives_back(&used, token).await;
    }
    let fence = home.use_of(&used).await.fence;
    assert_eq!(home.use_of(&used).await, PoolStatus { fence, ..NOTHING });
    let used = semaphore(2);
    let fence = home.takes_for(&used, 1, alice, SHORT).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.use_of(&used).await, PoolStatus { fence, ..NOTHING });
}

async fn no_more_than_the_first_are_listed(home: &Home) {
    let (used, ear) = (semaphore(101), home.ear().await);
    for _ in 0..=PoolStatus::MAX_LISTED {
        home.takes(&used, 1, Token::random()).await;
    }
    let waiters: Vec<_> = (0..=PoolStatus::MAX_LISTED).map(|_| (ear.token(), 2)).collect();
    for (waiter, permits) in &waiters {
        home.waits(&used, *permits, *waiter).await;
    }
    let status = home.use_of(&used).await;
    assert_eq!((status.taken, status.holding, status.waiting), (101, 101, 101));
    assert_eq!(status.holders.len(), PoolStatus::MAX_LISTED);
    assert_eq!(status.first_waiting, waiters[..PoolStatus::MAX_LISTED]);
}

/// [`Store::permit_break`](crate::store::Store::permit_break)
pub async fn permit_break(home: &Home) {
    permits_can_be_taken_from_one(home).await;
    permits_can_be_taken_from_all(home).await;
    what_is_broken_goes_to_the_first_waiters(home).await;
    a_break_is_no_release(home).await;
}

impl Home {
    async fn breaks(&self, used: &Used, token: Option<Token>) -> Fence {
        self.store.permit_break(&used.pool, token.as_ref()).await.unwrap()
    }
}

async fn permits_can_be_taken_from_one(home: &Home) {
    let (used, alice, bob) = (semaphore(3), Token::random(), Token::random());
    home.takes(&used, 1, alice).await;
    let held = home.takes(&used, 2, bob).await;
    let fence = home.breaks(&used, Some(alice)).await;
    assert!(fence > held, "{fence} does not shut {held} out");
    assert_eq!(home.holders(&used).await, [(bob, 2)]);
    assert_eq!(home.prolongs(&used, alice, LONG).await, Renew::NotHeld);
    let shrunk = home.store.permit_shrink(&used.pool, &alice, 1).await.unwrap();
    assert_eq!(shrunk, Shrink::NotHeld);
    assert_eq!(
        home.gives_back(&used, alice).await,
        Release::NotHeld,
        "it must learn that it lost its permit"
    );
    assert!(home.takes(&used, 1, Token::random()).await > fence);
    // Who holds nothing loses nothing, and nobody else does.
    let again = home.breaks(&used, Some(alice)).await;
    assert!(again > fence);
    assert_eq!(home.use_of(&used).await.taken, 3);

    let unused = semaphore(1);
    for token in [None, Some(alice)] {
        let fence = home.breaks(&unused, token).await;
        assert!(home.takes(&unused, 1, Token::random()).await > fence);
        home.breaks(&unused, None).await;
    }
}

async fn permits_can_be_taken_from_all(home: &Home) {
    let used = semaphore(20);
    let tokens: Vec<_> = (0..10).map(|_| Token::random()).collect();
    let mut last = Fence::NONE;
    for token in &tokens {
        last = home.takes(&used, 2, *token).await;
    }
    assert!(home.breaks(&used, None).await > last);
    assert_eq!(home.holders(&used).await, []);
    for token in &tokens {
        assert_eq!(home.prolongs(&used, *token, LONG).await, Renew::NotHeld);
    }
    home.takes(&used, 20, Token::random()).await;
}

async fn what_is_broken_goes_to_the_first_waiters(home: &Home) {
    for breaks_all in [false, true] {
        let (used, mut ear) = (semaphore(3), home.ear().await);
        let (alice, adam) = (Token::random(), Token::random());
        home.takes(&used, 2, alice).await;
        home.takes(&used, 1, adam).await;
        let (bob, carol) = (ear.token(), ear.token());
        home.waits(&used, 2, bob).await;
        home.waits(&used, 1, carol).await;
        let fence = home.breaks(&used, (!breaks_all).then_some(alice)).await;
        assert!(ear.hears_grant_to(bob).await.0.first > fence);
        if breaks_all {
            ear.hears_grant_to(carol).await;
        }
        let next = if breaks_all { (carol, 1) } else { (adam, 1) };
        let mut expected = [(bob, 2), next];
        expected.sort();
        assert_eq!(home.holders(&used).await, expected);
        // Whom it is taken from while it waits keeps its place.
        home.breaks(&used, Some(carol)).await;
        let waiting = if breaks_all { vec![] } else { vec![(carol, 1)] };
        assert_eq!(home.use_of(&used).await.first_waiting, waiting);
    }
}

async fn a_break_is_no_release(home: &Home) {
    let (used, alice, bob) = (semaphore(2), Token::random(), Token::random());
    comes_and_goes(home, &used, alice).await;
    home.takes(&used, 1, bob).await;
    home.breaks(&used, None).await;
    assert_eq!(home.gives_back(&used, bob).await, Release::NotHeld, "it must learn that it lost its permit");
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    let late = home.wish(&used, 1, &trying(alice, LONG)).await;
    assert_eq!(late, Acquire::Taken { lease_left: Duration::ZERO });
}
