//! What taking permits must do. The other operations on pools are in `permit_keeping.rs` and `permit_handing_on.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::time::Duration;

use super::mutex::{CLAIM, LONG, PAST_SHORT, ROUNDING, SHORT};
use super::{Home, fresh, lease, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, IfTaken, MAX_PERMITS, POOL_RELEASES_KEPT, Pool, PoolKind,
    PoolStatus, Release, Share, Token, WRITER,
};

/// A pool, and how many permits its users say that it has.
#[derive(Clone)]
pub(super) struct Used {
    pub(super) pool: Pool,
    pub(super) of: u32,
}

pub(super) fn semaphore(of: u32) -> Used {
    Used { pool: Pool { kind: PoolKind::Semaphore, name: fresh("semaphore") }, of }
}

pub(super) fn rw_lock() -> Used {
    Used { pool: Pool { kind: PoolKind::RwLock, name: fresh("rw-lock") }, of: WRITER }
}

/// An attempt that leaves when there is not enough.
pub(super) fn trying(token: Token, millis: u64) -> Attempt {
    Attempt::new(token, lease(millis))
}

/// An attempt that waits in the queue.
pub(super) fn waiting(token: Token) -> Attempt {
    Attempt { if_taken: IfTaken::Queue, ..trying(token, LONG) }
}

/// The same for one that has been told that it waits.
pub(super) fn waiting_again(token: Token) -> Attempt {
    Attempt { if_taken: IfTaken::QueueAgain, ..waiting(token) }
}

impl Home {
    pub(super) async fn wish(&self, used: &Used, permits: u32, attempt: &Attempt) -> Acquire {
        let share = Share { permits, of: used.of };
        self.store.permit_acquire(&used.pool, attempt, share).await.unwrap()
    }

    /// Takes permits that can be had, for so long; says with which fence.
    pub(super) async fn takes_for(&self, used: &Used, permits: u32, token: Token, millis: u64) -> Fence {
        match self.wish(used, permits, &trying(token, millis)).await {
            Acquire::Granted { fences, .. } => fences.first,
            other => panic!("{permits} of {}: {other:?}", used.pool.name),
        }
    }

    pub(super) async fn takes(&self, used: &Used, permits: u32, token: Token) -> Fence {
        self.takes_for(used, permits, token, LONG).await
    }

    /// Whether somebody new cannot have so many. Who can, gives them back.
    pub(super) async fn are_taken(&self, used: &Used, permits: u32) -> bool {
        let token = Token::random();
        let answer = self.wish(used, permits, &trying(token, LONG)).await;
        if matches!(answer, Acquire::Granted { .. }) {
            assert_eq!(self.gives_back(used, token).await, Release::Released);
        }
        matches!(answer, Acquire::Taken { .. })
    }

    /// Waits in the queue; returns how many are ahead.
    pub(super) async fn waits(&self, used: &Used, permits: u32, token: Token) -> u64 {
        match self.wish(used, permits, &waiting(token)).await {
            Acquire::Queued { ahead, .. } => ahead,
            other => panic!("{permits} of {}: {other:?}", used.pool.name),
        }
    }

    pub(super) async fn gives_back(&self, used: &Used, token: Token) -> Release {
        self.store.permit_release(&used.pool, &token).await.unwrap()
    }

    pub(super) async fn use_of(&self, used: &Used) -> PoolStatus {
        self.store.permit_read(&used.pool).await.unwrap()
    }

    /// Who holds permits, and how many, in no order.
    pub(super) async fn holders(&self, used: &Used) -> Vec<(Token, u32)> {
        let status = self.use_of(used).await;
        let mut holders: Vec<_> =
            status.holders.iter().map(|holder| (holder.token, holder.permits)).collect();
        holders.sort();
        assert_eq!(status.taken, holders.iter().map(|(_, permits)| u64::from(*permits)).sum::<u64>());
        holders
    }
}

fn sorted<T: Ord>(list: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut list: Vec<_> = list.into_iter().collect();
    list.sort();
    list
}

/// [`Store::permit_acquire`](crate::store::Store::permit_acquire)
pub async fn permit_acquire(home: &Home) {
    permits_are_given_as_long_as_there_are_enough(home).await;
    asking_again_gets_the_same_permits_and_fences(home).await;
    who_gave_permits_back_does_not_get_them_by_a_late_copy(home).await;
    a_lease_that_ran_out_gives_back_what_it_held_and_no_more(home).await;
    nobody_overtakes_however_little_it_wants(home).await;
    whoever_is_behind_one_that_leaves_moves_up(home).await;
    readers_enter_together_and_a_writer_alone(home).await;
    who_waits_keeps_its_place_and_is_told_where_it_stands(home).await;
    who_missed_its_turn_goes_to_the_head(home).await;
    the_next_call_notices_that_leases_ran_out(home).await;
    whoever_wants_more_than_there_are_is_told_so(home).await;
    the_first_user_says_how_many_there_are(home).await;
    the_end_of_the_first_lease_is_told(home).await;
    fences_rise_and_are_above_what_was_seen(home).await;
    of_many_at_once_as_many_get_some_as_there_are(home).await;
    every_name_and_kind_is_a_pool_of_its_own(home).await;
    what_no_pool_can_give_is_refused(home).await;
}

async fn permits_are_given_as_long_as_there_are_enough(home: &Home) {
    let (used, alice, bob) = (semaphore(4), Token::random(), Token::random());
    let before = home.clock.wall().as_micros();
    let answer = home.wish(&used, 3, &trying(alice, LONG)).await;
    let Acquire::Granted { fences, lease_left } = answer else { panic!("{answer:?}") };
    assert!(fences.first.get() >= before, "{fences:?} is below the store's time");
    let asked = Duration::from_millis(LONG);
    assert!(lease_left <= asked && lease_left >= asked - Duration::from_millis(1), "{lease_left:?}");
    assert!(home.are_taken(&used, 2).await);
    assert!(home.takes(&used, 1, bob).await > fences.last);
    assert!(home.are_taken(&used, 1).await);
    assert_eq!(home.holders(&used).await, sorted([(alice, 3), (bob, 1)]));
}

async fn asking_again_gets_the_same_permits_and_fences(home: &Home) {
    let (used, alice, bob) = (semaphore(3), Token::random(), Token::random());
    let many = Attempt { fences: FENCE_BLOCK, ..trying(alice, LONG) };
    let answer = home.wish(&used, 2, &many).await;
    let Acquire::Granted { fences, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(fences.last.get() - fences.first.get() + 1, FENCE_BLOCK);
    home.takes(&used, 1, bob).await;
    home.let_pass(Duration::from_millis(5)).await;
    for if_taken in [IfTaken::Leave, IfTaken::Queue, IfTaken::QueueAgain] {
        let again = home.wish(&used, 2, &Attempt { if_taken, lease: lease(2 * LONG), ..many }).await;
        let Acquire::Granted { fences: same, lease_left } = again else { panic!("{if_taken:?}: {again:?}") };
        assert_eq!(same, fences, "{if_taken:?}");
        assert!(lease_left < Duration::from_millis(LONG), "a re-sent call made the lease longer");
    }
    assert_eq!(home.holders(&used).await, sorted([(alice, 2), (bob, 1)]));
}

async fn who_gave_permits_back_does_not_get_them_by_a_late_copy(home: &Home) {
    let (used, alice) = (semaphore(2), Token::random());
    home.takes(&used, 1, alice).await;
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    for _ in 1..POOL_RELEASES_KEPT {
        for if_taken in [IfTaken::Leave, IfTaken::Queue, IfTaken::QueueAgain] {
            let late = home.wish(&used, 1, &Attempt { if_taken, ..trying(alice, LONG) }).await;
            assert_eq!(late, Acquire::Taken { lease_left: Duration::ZERO }, "{if_taken:?}");
        }
        let other = Token::random();
        home.takes(&used, 1, other).await;
        assert_eq!(home.gives_back(&used, other).await, Release::Released);
    }
    assert_eq!(home.use_of(&used).await.holding, 0);
}

async fn a_lease_that_ran_out_gives_back_what_it_held_and_no_more(home: &Home) {
    let (used, alice, bob, carol) = (semaphore(3), Token::random(), Token::random(), Token::random());
    home.takes_for(&used, 2, alice, SHORT).await;
    home.takes(&used, 1, bob).await;
    assert!(home.are_taken(&used, 1).await);
    home.let_pass(PAST_SHORT).await;
    home.takes(&used, 2, carol).await;
    assert!(home.are_taken(&used, 1).await, "more was given back than had been held");
    let answer = home.wish(&used, 2, &trying(alice, LONG)).await;
    assert!(matches!(answer, Acquire::Taken { lease_left } if !lease_left.is_zero()), "{answer:?}");
    assert_eq!(home.holders(&used).await, sorted([(bob, 1), (carol, 2)]));
}

async fn nobody_overtakes_however_little_it_wants(home: &Home) {
    let (used, mut ear) = (semaphore(3), home.ear().await);
    let (alice, adam) = (Token::random(), Token::random());
    home.takes(&used, 1, alice).await;
    home.takes(&used, 2, adam).await;
    let (bob, carol, dave, erin) = (ear.token(), ear.token(), ear.token(), ear.token());
    assert_eq!(home.waits(&used, 3, bob).await, 0);
    assert_eq!(home.waits(&used, 1, carol).await, 1);
    assert_eq!(home.waits(&used, 1, dave).await, 2);
    // One is free now, and the first wants three.
    assert_eq!(home.gives_back(&used, alice).await, Release::Released);
    assert!(home.are_taken(&used, 1).await, "somebody who does not wait came in between");
    assert_eq!(home.waits(&used, 1, erin).await, 3, "somebody who came later came in between");
    assert_eq!(home.waits(&used, 1, carol).await, 1, "somebody came in between by asking again");
    assert_eq!(home.holders(&used).await, [(adam, 2)]);
    assert!(ear.has_heard_nothing());

    assert_eq!(home.gives_back(&used, adam).await, Release::Released);
    ear.hears_grant_to(bob).await;
    assert_eq!(home.holders(&used).await, [(bob, 3)]);
    assert_eq!(home.gives_back(&used, bob).await, Release::Released);
    for waiter in [carol, dave, erin] {
        ear.hears_grant_to(waiter).await;
    }
    assert_eq!(home.holders(&used).await, sorted([(carol, 1), (dave, 1), (erin, 1)]));
    assert_eq!(home.use_of(&used).await.waiting, 0);
}

async fn whoever_is_behind_one_that_leaves_moves_up(home: &Home) {
    let (used, mut ear, alice) = (semaphore(3), home.ear().await, Token::random());
    home.takes(&used, 1, alice).await;
    let (bob, carol, dave, erin) = (ear.token(), ear.token(), ear.token(), ear.token());
    assert_eq!(home.waits(&used, 3, bob).await, 0);
    for (place, waiter) in [(1, carol), (2, dave), (3, erin)] {
        assert_eq!(home.waits(&used, 1, waiter).await, place);
    }
    assert_eq!(home.gives_back(&used, bob).await, Release::Left);
    ear.hears_grant_to(carol).await;
    ear.hears_grant_to(dave).await;
    assert_eq!(home.use_of(&used).await.first_waiting, [(erin, 1)]);
    assert_eq!(home.holders(&used).await, sorted([(alice, 1), (carol, 1), (dave, 1)]));
}

async fn readers_enter_together_and_a_writer_alone(home: &Home) {
    let (used, mut ear) = (rw_lock(), home.ear().await);
    let (first, second) = (Token::random(), Token::random());
    home.takes(&used, 1, first).await;
    home.takes(&used, 1, second).await;
    let (writer, reader, other) = (ear.token(), ear.token(), ear.token());
    home.waits(&used, WRITER, writer).await;
    assert!(home.are_taken(&used, 1).await, "a reader came in before the writer that waits");
    home.waits(&used, 1, reader).await;
    home.waits(&used, 1, other).await;
    home.gives_back(&used, first).await;
    assert!(ear.has_heard_nothing());
    home.gives_back(&used, second).await;
    ear.hears_grant_to(writer).await;
    assert_eq!(home.holders(&used).await, [(writer, WRITER)]);
    home.gives_back(&used, writer).await;
    ear.hears_grant_to(reader).await;
    ear.hears_grant_to(other).await;
    assert_eq!(home.holders(&used).await, sorted([(reader, 1), (other, 1)]));
}

async fn who_waits_keeps_its_place_and_is_told_where_it_stands(home: &Home) {
    let (used, ear) = (semaphore(2), home.ear().await);
    home.takes(&used, 2, Token::random()).await;
    let (bob, carol) = (ear.token(), ear.token());
    let before = home.clock.wall();
    let answer = home.wish(&used, 1, &waiting(bob)).await;
    let Acquire::Queued { ahead: 0, now, .. } = answer else { panic!("{answer:?}") };
    assert!(now >= before, "{now:?} is not the store's time");
    assert_eq!(home.waits(&used, 2, carol).await, 1);
    for if_taken in [IfTaken::Queue, IfTaken::QueueAgain, IfTaken::Queue] {
        for (token, permits, place) in [(bob, 1, 0), (carol, 2, 1)] {
            let answer = home.wish(&used, permits, &Attempt { if_taken, ..waiting(token) }).await;
            assert!(matches!(answer, Acquire::Queued { ahead, .. } if ahead == place), "{answer:?}");
        }
    }
    assert_eq!(home.use_of(&used).await.first_waiting, [(bob, 1), (carol, 2)]);
}

async fn who_missed_its_turn_goes_to_the_head(home: &Home) {
    let (used, mut ear) = (semaphore(3), home.ear().await);
    let (alice, adam) = (Token::random(), Token::random());
    home.takes(&used, 2, alice).await;
    home.takes(&used, 1, adam).await;
    let (bob, carol, dave) = (ear.token(), ear.token(), ear.token());
    home.waits(&used, 3, carol).await;
    let answer = home.wish(&used, 2, &waiting_again(bob)).await;
    assert!(matches!(answer, Acquire::Queued { ahead: 0, .. }), "{answer:?}");
    assert_eq!(home.use_of(&used).await.first_waiting, [(bob, 2), (carol, 3)]);
    // There is enough for this one, and nobody would tell it later.
    home.gives_back(&used, adam).await;
    let answer = home.wish(&used, 1, &waiting_again(dave)).await;
    let Acquire::Granted { lease_left, .. } = answer else { panic!("{answer:?}") };
    assert!(lease_left > Duration::from_millis(LONG / 2), "{lease_left:?}");
    assert!(ear.has_heard_nothing());
    home.gives_back(&used, alice).await;
    ear.hears_grant_to(bob).await;
}

async fn the_next_call_notices_that_leases_ran_out(home: &Home) {
    let (used, mut ear) = (semaphore(2), home.ear().await);
    let fence = home.takes_for(&used, 1, Token::random(), SHORT).await;
    home.takes_for(&used, 1, Token::random(), SHORT).await;
    let (bob, carol, dave, erin) = (ear.token(), ear.token(), ear.token(), ear.token());
    home.waits(&used, 1, bob).await;
    home.waits(&used, 1, carol).await;
    home.waits(&used, 2, dave).await;
    home.let_pass(PAST_SHORT).await;
    assert!(ear.has_heard_nothing());
    // Dave asks, and Bob and Carol are before him.
    assert_eq!(home.waits(&used, 2, dave).await, 0);
    assert!(ear.hears_grant_to(bob).await.0.first > fence);
    ear.hears_grant_to(carol).await;
    // Who asks itself is told by the answer, and not a second time.
    home.let_pass(CLAIM + ROUNDING).await;
    let answer = home.wish(&used, 2, &waiting_again(dave)).await;
    assert!(matches!(answer, Acquire::Granted { lease_left, .. } if lease_left <= CLAIM), "{answer:?}");
    home.let_pass(Duration::from_millis(20)).await;
    assert!(ear.has_heard_nothing());
    home.waits(&used, 1, erin).await;
    assert_eq!(home.holders(&used).await, [(dave, 2)]);
}

async fn whoever_wants_more_than_there_are_is_told_so(home: &Home) {
    for if_taken in [IfTaken::Leave, IfTaken::Queue, IfTaken::QueueAgain] {
        let used = semaphore(3);
        let attempt = Attempt { if_taken, ..trying(Token::random(), LONG) };
        assert_eq!(home.wish(&used, 4, &attempt).await, Acquire::Never { total: 3 });
        let status = home.use_of(&used).await;
        assert_eq!((status.total, status.waiting, status.holding), (None, 0, 0), "{if_taken:?}");
        home.takes(&used, 3, Token::random()).await;
        assert_eq!(home.wish(&used, 4, &attempt).await, Acquire::Never { total: 3 });
        assert_eq!(home.use_of(&used).await.waiting, 0, "{if_taken:?}");
    }
}

async fn the_first_user_says_how_many_there_are(home: &Home) {
    let used = semaphore(2);
    let (alice, ear) = (Token::random(), home.ear().await);
    home.takes(&used, 1, alice).await;
    let others = Used { of: 5, ..used.clone() };
    assert_eq!(home.wish(&others, 3, &trying(Token::random(), LONG)).await, Acquire::Never { total: 2 });
    assert!(home.are_taken(&others, 2).await);
    assert_eq!(home.use_of(&used).await.total, Some(2));
    // As long as somebody waits, it is in use.
    let bob = ear.token();
    home.waits(&used, 2, bob).await;
    home.gives_back(&used, alice).await;
    assert_eq!(home.use_of(&used).await.total, Some(2));
    home.gives_back(&used, bob).await;
    home.takes(&others, 5, Token::random()).await;
    assert_eq!(home.use_of(&used).await.total, Some(5));

    let used = semaphore(1);
    home.takes_for(&used, 1, Token::random(), SHORT).await;
    home.let_pass(PAST_SHORT).await;
    home.takes(&Used { of: 5, ..used }, 5, Token::random()).await;

    // Also when there would be enough without what comes back.
    let used = semaphore(2);
    home.takes_for(&used, 1, Token::random(), SHORT).await;
    home.let_pass(PAST_SHORT).await;
    let others = Used { of: 5, ..used };
    home.takes(&others, 1, Token::random()).await;
    let status = home.use_of(&others).await;
    assert_eq!((status.total, status.taken), (Some(5), 1));
}

async fn the_end_of_the_first_lease_is_told(home: &Home) {
    let (used, ear) = (semaphore(3), home.ear().await);
    home.takes_for(&used, 1, Token::random(), LONG).await;
    home.takes_for(&used, 1, Token::random(), LONG / 4).await;
    home.takes_for(&used, 1, Token::random(), LONG / 2).await;
    let first = Duration::from_millis(LONG / 4);
    let is_first = |left: Duration| left <= first && left > first / 2;
    let answer = home.wish(&used, 1, &trying(Token::random(), LONG)).await;
    assert!(matches!(answer, Acquire::Taken { lease_left } if is_first(lease_left)), "{answer:?}");
    let answer = home.wish(&used, 1, &waiting(ear.token())).await;
    assert!(matches!(answer, Acquire::Queued { lease_left, .. } if is_first(lease_left)), "{answer:?}");
}

async fn fences_rise_and_are_above_what_was_seen(home: &Home) {
    let (used, seen) = (semaphore(100), Fence::MAX_SEEN);
    let mut last = Fence::NONE;
    for number in 0..50 {
        let token = Token::random();
        let fence = home.takes(&used, 1, token).await;
        assert!(fence > last, "{fence} does not rise above {last}");
        last = fence;
        if number % 2 == 0 {
            home.gives_back(&used, token).await;
        }
    }
    let attempt = Attempt { fence_seen: seen, ..trying(Token::random(), LONG) };
    let answer = home.wish(&used, 1, &attempt).await;
    let above = Fence::new(seen.get() + 1);
    let expected = Fences { first: above, last: above };
    assert!(matches!(answer, Acquire::Granted { fences, .. } if fences == expected), "{answer:?}");
    assert_eq!(home.takes(&used, 1, Token::random()).await, Fence::new(seen.get() + 2));
    assert_eq!(home.use_of(&used).await.fence, Fence::new(seen.get() + 2));
}

async fn of_many_at_once_as_many_get_some_as_there_are(home: &Home) {
    let used = semaphore(7);
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, used) = (home.store.clone(), used.clone());
        let share = Share { permits: 1, of: used.of };
        tries.spawn(async move {
            store.permit_acquire(&used.pool, &trying(Token::random(), LONG), share).await.unwrap()
        });
    }
    let answers = tries.join_all().await;
    let granted = answers.iter().filter(|answer| matches!(answer, Acquire::Granted { .. })).count();
    assert_eq!(granted, 7);
}

async fn every_name_and_kind_is_a_pool_of_its_own(home: &Home) {
    let names = nasty_names(&fresh("pool"));
    let kinds = [(PoolKind::Semaphore, 1), (PoolKind::RwLock, WRITER)];
    let used = |name: &Name, (kind, of)| Used { pool: Pool { kind, name: name.clone() }, of };
    for name in &names {
        home.granted(name, Token::random(), lease(LONG)).await;
        for kind in kinds {
            home.takes(&used(name, kind), kind.1, Token::random()).await;
        }
    }
    for name in &names {
        for kind in kinds {
            assert_eq!(home.use_of(&used(name, kind)).await.holding, 1, "{name:?}");
        }
    }
}

async fn what_no_pool_can_give_is_refused(home: &Home) {
    let (attempt, of) = (trying(Token::random(), LONG), |used: Used, of| Used { of, ..used });
    let watching = Attempt { if_taken: IfTaken::Watch, ..attempt };
    let no_fences = Attempt { fences: 0, ..attempt };
    let impossible = Attempt { fence_seen: Fence::new(Fence::MAX_SEEN.get() + 1), ..attempt };
    for (used, permits, attempt) in [
        (semaphore(1), 0, attempt),
        (semaphore(0), 1, attempt),
        (semaphore(MAX_PERMITS + 1), 1, attempt),
        (semaphore(WRITER), 1, attempt),
        (of(rw_lock(), 1), 1, attempt),
        (of(rw_lock(), MAX_PERMITS), 1, attempt),
        (semaphore(1), 1, watching),
        (semaphore(1), 1, no_fences),
        (semaphore(1), 1, impossible),
    ] {
        let share = Share { permits, of: used.of };
        let refused = home.store.permit_acquire(&used.pool, &attempt, share).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{share:?} {attempt:?}: {refused:?}");
    }
    home.takes(&semaphore(MAX_PERMITS), MAX_PERMITS, Token::random()).await;
}
