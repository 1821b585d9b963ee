//! What the mutex operations must do.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Home, fresh, lease, name, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Acquire, Attempt, EarId, FENCE_BLOCK, Fence, Fences, Hearing, IfTaken, Lease, Listener, MAX_RENEW_BATCH,
    MutexStatus, News, Release, Renew, Renewal, Token,
};

/// A lease that does not end during a test, in milliseconds.
const LONG: u64 = 60_000;
/// A lease that is waited for; long enough that a busy machine does not let it end between two calls.
const SHORT: u64 = 300;
/// A store may count whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);
const PAST_SHORT: Duration = Duration::from_millis(SHORT + 2);

const RENEWED: Renew = Renew::Renewed { fences: None, others_wait: false };
/// The claim lease of a store as it is opened by default.
const CLAIM: Duration = Duration::from_secs(1);
/// How long to wait for news that should come.
const SOON: Duration = Duration::from_secs(5);

impl Home {
    async fn ask(&self, mutex: &Name, attempt: &Attempt) -> Acquire {
        self.store.mutex_acquire(mutex, attempt).await.unwrap()
    }

    async fn acquire(&self, mutex: &Name, token: Token, lease: Lease) -> Acquire {
        self.ask(mutex, &Attempt::new(token, lease)).await
    }

    async fn granted(&self, mutex: &Name, token: Token, lease: Lease) -> Fence {
        match self.acquire(mutex, token, lease).await {
            Acquire::Granted { fences, .. } => fences.first,
            other => panic!("{mutex}: {other:?}"),
        }
    }

    async fn is_taken(&self, mutex: &Name) -> bool {
        matches!(self.acquire(mutex, Token::random(), lease(1)).await, Acquire::Taken { .. })
    }

    async fn renew(&self, mutex: &Name, token: Token, lease: Lease) -> Renew {
        let renewal = Renewal { mutex: mutex.clone(), token, lease, fences: 0 };
        self.store.mutex_renew(&[renewal]).await.unwrap()[0]
    }

    async fn release(&self, mutex: &Name, token: Token) -> Release {
        self.store.mutex_release(mutex, &token).await.unwrap()
    }

    async fn read(&self, mutex: &Name) -> MutexStatus {
        self.store.mutex_read(mutex).await.unwrap()
    }

    /// Waits in the queue of a mutex that is taken; returns how many are ahead.
    async fn queue(&self, mutex: &Name, token: Token) -> u64 {
        match self.ask(mutex, &queueing(token)).await {
            Acquire::Queued { ahead, .. } => ahead,
            other => panic!("{mutex}: {other:?}"),
        }
    }

    async fn ear(&self) -> Ear {
        let (sender, news) = mpsc::unbounded_channel();
        let id = EarId::random();
        let hearing = self.store.listen(id, Arc::new(Recording(sender)));
        timeout(SOON, hearing.listening()).await.unwrap();
        let mut ear = Ear { id, news, _hearing: hearing };
        assert_eq!(ear.next().await, News::Listening);
        ear
    }
}

/// An attempt that waits in the queue.
fn queueing(token: Token) -> Attempt {
    Attempt { if_taken: IfTaken::Queue, ..Attempt::new(token, lease(LONG)) }
}

struct Recording(mpsc::UnboundedSender<News>);

impl Listener for Recording {
    fn hear(&self, news: News) {
        let _ = self.0.send(news);
    }
}

/// Somebody who hears.
struct Ear {
    id: EarId,
    news: mpsc::UnboundedReceiver<News>,
    _hearing: Hearing,
}

impl Ear {
    fn token(&self) -> Token {
        Token::for_ear(self.id)
    }

    async fn next(&mut self) -> News {
        timeout(SOON, self.news.recv()).await.expect("news that should have come").unwrap()
    }

    /// Expects that `token` was given the mutex.
    async fn hears_grant_to(&mut self, expected: Token) -> (Fences, Duration) {
        loop {
            match self.next().await {
                News::Granted { token, fences, lease, .. } if token == expected => return (fences, lease),
                News::Freed(_) => {}
                other => panic!("not given to {expected:?}: {other:?}"),
            }
        }
    }

    /// All who listen hear of all mutexes that somebody watched, also those of other tests.
    async fn hears_freed(&mut self, expected: &Name) {
        while self.next().await != News::Freed(expected.clone()) {}
    }

    fn has_heard_freed(&mut self, mutex: &Name) -> bool {
        std::iter::from_fn(|| self.news.try_recv().ok()).any(|news| news == News::Freed(mutex.clone()))
    }

    fn has_heard_nothing(&mut self) -> bool {
        !std::iter::from_fn(|| self.news.try_recv().ok()).any(|news| !matches!(news, News::Freed(_)))
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
