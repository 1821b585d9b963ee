//! What the operations on pools must do that change what is held, or how many permits there are.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::mutex::{LONG, PAST_SHORT, SHORT};
use super::permit::{Used, rw_lock, semaphore, trying, waiting_again};
use super::{Home, lease};
use crate::error::StoreError;
use crate::store::{
    Acquire, MAX_PERMITS, MAX_RENEW_BATCH, PermitRenewal, Release, Renew, Shrink, Token, WRITER,
};

const RENEWED: Renew = Renew::Renewed { fences: None, others_wait: false };

fn renewal(used: &Used, token: Token, millis: u64) -> PermitRenewal {
    PermitRenewal { pool: used.pool.clone(), token, lease: lease(millis), fences: 0 }
}

impl Home {
    pub(super) async fn prolongs(&self, used: &Used, token: Token, millis: u64) -> Renew {
        self.store.permit_renew(&[renewal(used, token, millis)]).await.unwrap()[0]
    }

    async fn shrinks(&self, used: &Used, token: Token, permits: u32) -> Shrink {
        self.store.permit_shrink(&used.pool, &token, permits).await.unwrap()
    }

    async fn resizes(&self, used: &Used, total: Option<u32>) {
        self.store.permit_resize(&used.pool, total).await.unwrap();
    }
}

/// [`Store::permit_renew`](crate::store::Store::permit_renew)
pub async fn permit_renew(home: &Home) {
    each_lease_is_renewed_for_itself(home).await;
    only_holders_can_renew(home).await;
    many_holders_are_renewed_at_once(home).await;
    a_renewal_reserves_more_fences(home).await;
    only_waiters_with_another_ear_are_others(home).await;
    a_renewal_notices_that_another_lease_ran_out(home).await;
}

async fn each_lease_is_renewed_for_itself(home: &Home) {
    let (used, alice, bob) = (semaphore(3), Token::random(), Token::random());
    let fence = home.takes_for(&used, 1, alice, SHORT).await;
    home.takes_for(&used, 2, bob, SHORT).await;
    assert_eq!(home.prolongs(&used, alice, LONG).await, RENEWED);
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.holders(&used).await, [(alice, 1)]);
    assert_eq!(home.takes(&used, 1, alice).await, fence, "renewing changed the fence");
    assert_eq!(home.prolongs(&used, bob, LONG).await, Renew::NotHeld, "a lease that ran out came back");
    assert!(!home.are_taken(&used, 2).await);

    assert_eq!(home.prolongs(&used, alice, SHORT).await, RENEWED);
    home.let_pass(PAST_SHORT).await;
    assert!(!home.are_taken(&used, 3).await, "a renewal to a shorter lease was not obeyed");
}

async fn only_holders_can_renew(home: &Home) {
    let (used, ear, alice) = (semaphore(1), home.ear().await, Token::random());
    assert_eq!(home.prolongs(&used, alice, LONG).await, Renew::NotHeld);
    home.takes_for(&used, 1, alice, SHORT).await;
    let (mallory, waiter) = (Token::random(), ear.token());
    home.waits(&used, 1, waiter).await;
    for token in [mallory, waiter] {
        assert_eq!(home.prolongs(&used, token, LONG).await, Renew::NotHeld);
    }
    home.gives_back(&used, waiter).await;
    home.let_pass(PAST_SHORT).await;
    assert!(!home.are_taken(&used, 1).await, "a refused renewal made the lease longer");
    home.takes(&used, 1, mallory).await;
    assert_eq!(home.gives_back(&used, mallory).await, Release::Released);
    assert_eq!(home.prolongs(&used, mallory, LONG).await, Renew::NotHeld);
    assert_eq!(home.use_of(&used).await.holding, 0);
}

async fn many_holders_are_renewed_at_once(home: &Home) {
    let (alice, bob, mallory) = (Token::random(), Token::random(), Token::random());
    let mut renewals = Vec::new();
    for number in 0..40_usize {
        let used = if number % 2 == 0 { semaphore(2) } else { rw_lock() };
        home.takes(&used, 1, alice).await;
        home.takes(&used, 1, bob).await;
        renewals.extend([alice, mallory, bob].map(|token| renewal(&used, token, LONG)));
    }
    let answers = home.store.permit_renew(&renewals).await.unwrap();
    assert_eq!(answers.len(), renewals.len());
    for (renewal, answer) in renewals.iter().zip(answers) {
        let expected = if renewal.token == mallory { Renew::NotHeld } else { RENEWED };
        assert_eq!(answer, expected);
    }
    assert_eq!(home.store.permit_renew(&[]).await.unwrap(), []);
    let too_many = vec![renewals[0].clone(); MAX_RENEW_BATCH + 1];
    let refused = home.store.permit_renew(&too_many).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

async fn a_renewal_reserves_more_fences(home: &Home) {
    let (used, alice, bob) = (semaphore(3), Token::random(), Token::random());
    home.takes(&used, 2, alice).await;
    let other = home.takes(&used, 1, bob).await;
    let more = [PermitRenewal { fences: 10, ..renewal(&used, alice, LONG) }];
    let answer = home.store.permit_renew(&more).await.unwrap()[0];
    let Renew::Renewed { fences: Some(fences), others_wait: false } = answer else { panic!("{answer:?}") };
    assert!(fences.first > other && fences.last.get() - fences.first.get() == 9, "{fences:?}");
    assert_eq!(home.holders(&used).await.len(), 2);
    home.gives_back(&used, bob).await;
    assert!(home.takes(&used, 1, Token::random()).await > fences.last);
}

async fn only_waiters_with_another_ear_are_others(home: &Home) {
    let (used, mut mine, theirs) = (semaphore(1), home.ear().await, home.ear().await);
    let alice = mine.token();
    let others_wait = async || {
        let answer = home.prolongs(&used, alice, LONG).await;
        let Renew::Renewed { others_wait, .. } = answer else { panic!("{answer:?}") };
        others_wait
    };
    home.takes(&used, 1, alice).await;
    assert!(!others_wait().await);
    let (neighbour, second, other) = (mine.token(), mine.token(), theirs.token());
    home.waits(&used, 1, neighbour).await;
    assert!(!others_wait().await, "one who hears by the same ear is no other");
    home.waits(&used, 1, other).await;
    home.waits(&used, 1, second).await;
    assert!(others_wait().await, "one who hears by another ear is one");
    assert_eq!(home.gives_back(&used, other).await, Release::Left);
    assert!(!others_wait().await, "it has left");
    for gone in [neighbour, second] {
        assert_eq!(home.gives_back(&used, gone).await, Release::Left);
    }
    home.waits(&used, 1, theirs.token()).await;
    assert!(others_wait().await, "those of the same ear have left, and another came");

    let (used, alice, served) = (semaphore(1), mine.token(), mine.token());
    home.takes(&used, 1, alice).await;
    home.waits(&used, 1, served).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    mine.hears_grant_to(served).await;
    home.waits(&used, 1, theirs.token()).await;
    let answer = home.prolongs(&used, served, LONG).await;
    assert_eq!(
        answer,
        Renew::Renewed { fences: None, others_wait: true },
        "who was served still counts as waiting"
    );
}

async fn a_renewal_notices_that_another_lease_ran_out(home: &Home) {
    let (used, mut ear, alice) = (semaphore(2), home.ear().await, Token::random());
    home.takes(&used, 1, alice).await;
    home.takes_for(&used, 1, Token::random(), SHORT).await;
    let bob = ear.token();
    home.waits(&used, 1, bob).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.prolongs(&used, alice, LONG).await, RENEWED);
    ear.hears_grant_to(bob).await;
}

/// [`Store::permit_shrink`](crate::store::Store::permit_shrink)
pub async fn permit_shrink(home: &Home) {
    a_writer_that_becomes_a_reader_lets_readers_in(home).await;
    what_is_given_back_goes_to_as_many_as_it_is_enough_for(home).await;
    only_a_holder_can_shrink_and_not_to_nothing(home).await;
}

async fn a_writer_that_becomes_a_reader_lets_readers_in(home: &Home) {
    let (used, mut ear, alice) = (rw_lock(), home.ear().await, Token::random());
    let fence = home.takes(&used, WRITER, alice).await;
    let (bob, carol, writer, dave) = (ear.token(), ear.token(), ear.token(), ear.token());
    home.waits(&used, 1, bob).await;
    home.waits(&used, 1, carol).await;
    home.waits(&used, WRITER, writer).await;
    home.waits(&used, 1, dave).await;
    // The same again changes nothing, nor does more than it holds.
    for permits in [1, 1, WRITER] {
        assert_eq!(home.shrinks(&used, alice, permits).await, Shrink::Shrunk);
        let mut expected = vec![(alice, 1), (bob, 1), (carol, 1)];
        expected.sort();
        assert_eq!(home.holders(&used).await, expected);
    }
    ear.hears_grant_to(bob).await;
    ear.hears_grant_to(carol).await;
    assert_eq!(home.use_of(&used).await.first_waiting, [(writer, WRITER), (dave, 1)]);
    assert_eq!(home.takes(&used, WRITER, alice).await, fence, "shrinking changed the fence");
    for reader in [alice, bob, carol] {
        assert!(ear.has_heard_nothing());
        assert_eq!(home.gives_back(&used, reader).await, Release::Released);
    }
    ear.hears_grant_to(writer).await;
}

async fn what_is_given_back_goes_to_as_many_as_it_is_enough_for(home: &Home) {
    let (used, mut ear, alice) = (semaphore(5), home.ear().await, Token::random());
    home.takes_for(&used, 5, alice, 2 * SHORT).await;
    let (bob, carol, dave) = (ear.token(), ear.token(), ear.token());
    home.waits(&used, 2, bob).await;
    home.waits(&used, 2, carol).await;
    home.waits(&used, 1, dave).await;
    assert_eq!(home.shrinks(&used, alice, 2).await, Shrink::Shrunk);
    ear.hears_grant_to(bob).await;
    // One is free, and the next wants two.
    assert_eq!(home.use_of(&used).await.first_waiting, [(carol, 2), (dave, 1)]);
    assert_eq!(home.use_of(&used).await.taken, 4);
    assert_eq!(home.gives_back(&used, bob).await, Release::Released);
    ear.hears_grant_to(carol).await;
    ear.hears_grant_to(dave).await;
    home.gives_back(&used, carol).await;
    home.gives_back(&used, dave).await;
    // Its lease has not begun anew, and what is left of it comes back.
    home.let_pass(Duration::from_millis(2 * SHORT + 2)).await;
    assert!(!home.are_taken(&used, 5).await);
}

async fn only_a_holder_can_shrink_and_not_to_nothing(home: &Home) {
    let (used, ear, alice) = (semaphore(2), home.ear().await, Token::random());
    assert_eq!(home.shrinks(&used, alice, 1).await, Shrink::NotHeld);
    home.takes_for(&used, 2, alice, SHORT).await;
    let waiter = ear.token();
    home.waits(&used, 2, waiter).await;
    for token in [Token::random(), waiter] {
        assert_eq!(home.shrinks(&used, token, 1).await, Shrink::NotHeld);
    }
    let refused = home.store.permit_shrink(&used.pool, &alice, 0).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
    let status = home.use_of(&used).await;
    assert_eq!((status.taken, status.first_waiting), (2, vec![(waiter, 2)]));
    home.gives_back(&used, waiter).await;
    home.let_pass(PAST_SHORT).await;
    assert_eq!(home.shrinks(&used, alice, 1).await, Shrink::NotHeld);
    assert!(!home.are_taken(&used, 2).await);
}

/// [`Store::permit_resize`](crate::store::Store::permit_resize)
pub async fn permit_resize(home: &Home) {
    more_permits_let_waiters_in(home).await;
    fewer_permits_are_taken_from_nobody(home).await;
    who_wants_more_than_there_are_now_does_not_stand_in_the_way(home).await;
    who_wants_too_much_in_the_middle_is_told_when_it_asks(home).await;
    the_number_that_was_set_counts_until_it_is_taken_back(home).await;
    numbers_that_no_semaphore_has_are_refused(home).await;
}

async fn more_permits_let_waiters_in(home: &Home) {
    let (used, mut ear, alice) = (semaphore(1), home.ear().await, Token::random());
    home.takes(&used, 1, alice).await;
    let (bob, carol, dave) = (ear.token(), ear.token(), ear.token());
    for waiter in [bob, carol, dave] {
        home.waits(&used, 1, waiter).await;
    }
    for _ in 0..2 {
        home.resizes(&used, Some(3)).await;
    }
    ear.hears_grant_to(bob).await;
    ear.hears_grant_to(carol).await;
    let status = home.use_of(&used).await;
    assert_eq!((status.total, status.taken, status.first_waiting), (Some(3), 3, vec![(dave, 1)]));
}

async fn fewer_permits_are_taken_from_nobody(home: &Home) {
    let (used, mut ear) = (semaphore(3), home.ear().await);
    let (alice, bob, carol) = (Token::random(), Token::random(), Token::random());
    for token in [alice, bob, carol] {
        home.takes(&used, 1, token).await;
    }
    home.resizes(&used, Some(1)).await;
    let status = home.use_of(&used).await;
    assert_eq!((status.total, status.taken, status.holding), (Some(1), 3, 3));
    for token in [alice, bob, carol] {
        // Nobody waits, but there are too many of them: who passes permits on in its process has to stop.
        let too_many = Renew::Renewed { fences: None, others_wait: true };
        assert_eq!(home.prolongs(&used, token, LONG).await, too_many);
    }
    let dave = ear.token();
    home.waits(&used, 1, dave).await;
    for token in [alice, bob] {
        assert_eq!(home.gives_back(&used, token).await, Release::Released);
        assert!(ear.has_heard_nothing());
    }
    assert_eq!(home.use_of(&used).await.first_waiting, [(dave, 1)]);
    assert_eq!(home.gives_back(&used, carol).await, Release::Released);
    ear.hears_grant_to(dave).await;
    // Who holds more than there are now still holds them.
    home.resizes(&used, Some(5)).await;
    let erin = Token::random();
    let fence = home.takes(&used, 4, erin).await;
    home.resizes(&used, Some(2)).await;
    assert_eq!(home.takes(&used, 4, erin).await, fence);
}

async fn who_wants_more_than_there_are_now_does_not_stand_in_the_way(home: &Home) {
    let (used, mut ear, mut theirs) = (semaphore(3), home.ear().await, home.ear().await);
    home.takes(&used, 1, Token::random()).await;
    let (bob, carol, dave) = (ear.token(), theirs.token(), theirs.token());
    home.waits(&used, 3, bob).await;
    home.waits(&used, 1, carol).await;
    home.waits(&used, 2, dave).await;
    home.resizes(&used, Some(2)).await;
    ear.hears_that_it_should_ask(bob).await;
    theirs.hears_grant_to(carol).await;
    assert_eq!(home.use_of(&used).await.first_waiting, [(dave, 2)]);
    assert_eq!(home.wish(&used, 3, &waiting_again(bob)).await, Acquire::Never { total: 2 });
    assert_eq!(home.gives_back(&used, bob).await, Release::NotHeld);
    assert_eq!(home.use_of(&used).await.first_waiting, [(dave, 2)]);
    assert!(ear.has_heard_nothing() && theirs.has_heard_nothing());
}

async fn who_wants_too_much_in_the_middle_is_told_when_it_asks(home: &Home) {
    let (used, mut ear, alice) = (semaphore(3), home.ear().await, Token::random());
    home.takes(&used, 3, alice).await;
    let (bob, carol, dave, erin) = (ear.token(), ear.token(), ear.token(), ear.token());
    home.waits(&used, 1, bob).await;
    home.waits(&used, 3, carol).await;
    home.waits(&used, 3, dave).await;
    home.waits(&used, 1, erin).await;
    home.resizes(&used, Some(2)).await;
    assert_eq!(home.wish(&used, 3, &waiting_again(carol)).await, Acquire::Never { total: 2 });
    assert_eq!(home.gives_back(&used, carol).await, Release::NotHeld, "it is still in the queue");
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    ear.hears_grant_to(bob).await;
    ear.hears_that_it_should_ask(dave).await;
    ear.hears_grant_to(erin).await;
    assert_eq!(home.wish(&used, 3, &waiting_again(dave)).await, Acquire::Never { total: 2 });
}

async fn the_number_that_was_set_counts_until_it_is_taken_back(home: &Home) {
    let (used, alice, bob) = (semaphore(5), Token::random(), Token::random());
    home.resizes(&used, Some(2)).await;
    assert_eq!(home.use_of(&used).await.total, Some(2));
    assert_eq!(home.wish(&used, 3, &trying(alice, LONG)).await, Acquire::Never { total: 2 });
    home.takes(&used, 2, alice).await;
    assert!(home.are_taken(&used, 1).await);
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    assert_eq!(home.use_of(&used).await.total, Some(2), "it does not count any more when nobody holds any");
    assert_eq!(home.wish(&used, 3, &trying(bob, LONG)).await, Acquire::Never { total: 2 });
    home.takes(&used, 1, bob).await;
    home.resizes(&used, Some(3)).await;
    assert!(!home.are_taken(&used, 2).await);
    // As long as it is in use, it is as it was.
    for _ in 0..2 {
        home.resizes(&used, None).await;
    }
    assert_eq!(home.use_of(&used).await.total, Some(3));
    assert!(home.are_taken(&used, 3).await);
    assert_eq!(home.gives_back(&used, bob).await, Release::Released);
    assert_eq!(home.use_of(&used).await.total, None);
    home.takes(&used, 5, Token::random()).await;

    let unused = semaphore(5);
    home.resizes(&unused, Some(1)).await;
    home.resizes(&unused, None).await;
    assert_eq!(home.use_of(&unused).await.total, None);
    home.takes(&unused, 5, Token::random()).await;
}

async fn numbers_that_no_semaphore_has_are_refused(home: &Home) {
    for (used, total) in [
        (semaphore(1), Some(0)),
        (semaphore(1), Some(MAX_PERMITS + 1)),
        (rw_lock(), Some(1)),
        (rw_lock(), Some(WRITER)),
        (rw_lock(), None),
    ] {
        let refused = home.store.permit_resize(&used.pool, total).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{total:?}: {refused:?}");
        assert_eq!(home.use_of(&used).await.total, None);
    }
}
