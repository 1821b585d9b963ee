//! Getting the lock from the store for a room, by the store's queue.
//!
//! **Promise:** a room's search ends with the lock, with an error that its waiters are told, or with nobody who wants it;
//! and then nothing of it is left in the store. What makes it sound, although a push may be lost, late or for somebody
//! who is gone:
//!
//! - It queues only when its news are heard.
//! - A pushed grant is counted from when it was granted, never from when it was heard: by the store's time in the message,
//!   and by the pair (our time before asking, the store's time in the answer) of the last answer. What comes too late is
//!   asked for again first.
//!   A grant that is older than the answer that told us to wait is over.
//! - It asks *is it mine?* in good time: after the holder's lease, after a claim lease for each that is ahead, and otherwise
//!   every few seconds; at once when the subscription comes back. Asking is the same call as the first one, so it also
//!   queues again, at the head, when the turn was missed.
//! - What it is given counts when it [can be relied on](can_be_relied_on), and is given back otherwise.
//! - It ends when nobody waits any more, and then gives back whatever it has.

use std::sync::Arc;
use std::time::Duration;

use super::desk::{Desk, ToGiveBack};
use super::error::LockError;
use super::news::{PushedGrant, Registry};
use super::room::{Grant, Room, Wanted};
use crate::clock::{Moment, Timestamp};
use crate::error::StoreError;
use crate::store::{Acquire, Attempt, Fences, IfTaken, Lock, Token};

/// A lost message costs its waiter no more than this.
const ASK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// Those further behind ask later, so that not all ask at once when a holder has died.
const STAGGER: Duration = Duration::from_millis(20);

/// How soon after the end of the holder's lease the first one asks.
const GRACE: Duration = Duration::from_millis(2);

/// The pause before asking again when the store did not answer, or nothing is heard.
const PAUSE: Duration = Duration::from_millis(250);

/// Seeks for the room until somebody in it has the lock, or nobody wants it. With `yielding`, the first step also gives
/// back what the room held under that token. Those who `have_waited` before see an outage through.
pub(super) async fn seek(room: Arc<Room>, yielding: Option<Token>, have_waited: bool) {
    let desk = Arc::clone(&room.desk);
    let token = room.token();
    let expecting = Registry::expect(&desk, token);
    let mut yielding = yielding.map(Old::OfTheRoom);
    let mutex = match &room.lock {
        Lock::Mutex(name) => Some(name),
        Lock::Pool(_) => None,
    };
    let Some((share, terms)) = room.wanted(expecting.waker()) else {
        return release(&room, yielding.as_ref().map(Old::token));
    };
    if !desk.is_listening() {
        // Who cannot hear must not queue; and the others must not wait until we can.
        release(&room, yielding.take().as_ref().map(Old::token));
    } else if yielding.is_none() {
        // Permits need not be given back to ask for others.
        yielding = mutex.and_then(|_| desk.take_dropped(&room.lock)).map(Old::Dropped);
    }
    let mut attempt = Attempt {
        token,
        lease: terms.lease,
        fences: room.fences_at_once(),
        fence_seen: room.fence_seen(),
        // Most locks are free: who does not listen yet tries first.
        if_taken: if desk.is_listening() { IfTaken::Queue } else { IfTaken::Leave },
    };
    let mut has_queued = false;
    loop {
        let sent_at = desk.clock.monotonic();
        let answer = match (&yielding, mutex) {
            (Some(old), Some(mutex)) => desk.store.mutex_yield(mutex, &old.token(), &attempt).await,
            _ => desk.acquire(&room.lock, &attempt, share).await,
        };
        let next = match answer {
            Ok(Acquire::Granted { fences, lease_left }) => Next::Begin(Given {
                fences,
                trusted_until: sent_at + lease_left,
                others_wait: has_queued,
                // One that has waited may have been given it before this answer, by a push that is late or lost.
                is_claim: has_queued || lease_left < terms.lease.length() / 2,
            }),
            Ok(Acquire::Taken { .. }) => {
                // As long as nothing is heard (the subscription may be forbidden), it tries again.
                if tokio::time::timeout(PAUSE, desk.listening()).await.is_ok() {
                    attempt.if_taken = IfTaken::Queue;
                }
                Next::Ask
            }
            Ok(Acquire::Queued { ahead, lease_left, now }) => {
                has_queued = true;
                attempt.if_taken = IfTaken::QueueAgain;
                let ask_at = desk.clock.monotonic() + ask_after(ahead, lease_left, desk.claim);
                let pair = Pair { ours: sent_at, theirs: now };
                let next = wait_for_the_grant(&expecting, &desk.clock, pair, ask_at).await;
                let was_handed_over = u64::from(matches!(next, Next::Begin(_)));
                desk.metrics.of(&room.lock).passed_remotely.increment(was_handed_over);
                next
            }
            Ok(Acquire::Never { total }) => {
                room.refuse_who_wants_more_than(total);
                Next::Ask
            }
            Err(why) if has_queued || have_waited => {
                release(&room, yielding.as_ref().map(Old::token));
                tracing::warn!(name = %room.lock.name(), %why, "cannot ask for a lock in whose queue we are; trying again");
                expecting.news(desk.clock.monotonic() + PAUSE).await;
                Next::Ask
            }
            Err(why) => {
                room.search_failed(&LockError::Store(why));
                return release(
                    &room,
                    [Some(token), yielding.as_ref().map(Old::token)].into_iter().flatten(),
                );
            }
        };
        yielding = None;
        if let Next::Begin(Given { fences, trusted_until, others_wait, is_claim }) = next {
            match can_be_relied_on(&desk, &room.lock, &token, trusted_until).await {
                Ok(true) => {
                    let grant = Grant { expecting, share, fences, trusted_until, others_wait, is_claim };
                    return room.begin_tenure(grant);
                }
                Ok(false) => {}
                Err(why) => {
                    release(&room, [token]);
                    if !has_queued && !have_waited {
                        return room.search_failed(&LockError::Store(why));
                    }
                    let name = room.lock.name();
                    tracing::warn!(%name, %why, "a lock that was given cannot be relied on; trying again");
                    // Its token has given it back, and can have it no more.
                    return room.seek_anew(PAUSE);
                }
            }
        }
        if desk.is_closing() {
            room.search_failed(&LockError::ShuttingDown);
            return release(&room, [token]);
        }
        match room.is_still_wanted(share) {
            Wanted::Still => {}
            Wanted::NoLonger => return release(&room, [token]),
            Wanted::SomethingElse => {
                // Another one has come to the front. It queues for what it wants, behind those who are there.
                release(&room, [token]);
                return room.seek_anew(Duration::ZERO);
            }
        }
    }
}

/// What is given back with the first step of a search.
enum Old {
    OfTheRoom(Token),
    Dropped(ToGiveBack),
}

impl Old {
    fn token(&self) -> Token {
        match self {
            Old::OfTheRoom(token) => *token,
            Old::Dropped(lock) => lock.token(),
        }
    }
}

/// When one with so many waiters ahead asks again, if it hears nothing.
fn ask_after(ahead: u64, lease_left: Duration, claim: Duration) -> Duration {
    let place = u32::try_from(ahead).unwrap_or(u32::MAX);
    let stagger = STAGGER.saturating_mul(place).min(claim);
    let in_any_case = match place {
        0 => ASK_AT_LEAST_EVERY,
        // Those ahead may be given the lock and be gone before they have said a word: then nobody tells.
        _ => claim.saturating_mul(place).min(ASK_AT_LEAST_EVERY),
    };
    (lease_left + GRACE + stagger).min(in_any_case)
}

/// Our time before asking, and the store's time in the answer: the store's time was reached no earlier than ours.
#[derive(Clone, Copy)]
struct Pair {
    ours: Moment,
    theirs: Timestamp,
}

enum Next {
    Ask,
    Begin(Given),
}

/// What the store has given to the search's token.
struct Given {
    fences: Fences,
    trusted_until: Moment,
    others_wait: bool,
    is_claim: bool,
}

/// Whether what the store has given, in its answer or by a push, may be handed out: it would survive the store's master, as far
/// as that was asked for, and there is still time. If not, it is to be asked for again.
///
/// This is the one place where a tenure waits for that. What is passed on inside the process is the same token's in the store,
/// so whoever has it there next need not wait again; and a renewal does not count before it would survive too, which is
/// the store's to see to.
pub(super) async fn can_be_relied_on(
    desk: &Desk,
    lock: &Lock,
    token: &Token,
    trusted_until: Moment,
) -> Result<bool, StoreError> {
    Ok(desk.store.replicated(lock, token).await? && desk.clock.monotonic() < trusted_until)
}

async fn wait_for_the_grant(
    expecting: &super::news::Expecting,
    clock: &crate::clock::Clock,
    pair: Pair,
    ask_at: Moment,
) -> Next {
    let mut push = expecting.take_grant();
    if push.is_none() {
        expecting.news(ask_at).await;
        push = expecting.take_grant();
    }
    let Some(push) = push else { return Next::Ask };
    if push.granted_at < pair.theirs {
        // We were told that we wait when this had been granted already: it is over, and the message late.
        return Next::Ask;
    }
    let trusted_until = deadline(&push, pair);
    if clock.monotonic() < trusted_until {
        Next::Begin(Given { fences: push.fences, trusted_until, others_wait: true, is_claim: true })
    } else {
        // Too late to rely on it; if it is still ours, the answer says so.
        Next::Ask
    }
}

/// When a pushed grant ends, at the earliest: counted from the grant. A jump of the store's clock must not make it later
/// than if it had been counted from when it was heard.
fn deadline(push: &PushedGrant, pair: Pair) -> Moment {
    let granted_at = pair.ours + push.granted_at.since(pair.theirs);
    (granted_at + push.lease).min(push.heard_at + push.lease)
}

/// Gives back whatever these tokens may have.
fn release(room: &Arc<Room>, tokens: impl IntoIterator<Item = Token>) {
    for token in tokens {
        room.desk.release_in_background(room.lock.clone(), token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Fence;

    fn push(granted_at: u64, heard_at_ms: u64) -> PushedGrant {
        PushedGrant {
            fences: Fences { first: Fence::new(1), last: Fence::new(64) },
            granted_at: Timestamp::from_micros(granted_at),
            lease: Duration::from_millis(1_000),
            heard_at: Moment::from_nanos(heard_at_ms * 1_000_000),
        }
    }

    fn millis(moment: Moment) -> u64 {
        moment.as_nanos() / 1_000_000
    }

    #[test]
    fn a_grant_is_counted_from_when_it_was_given_and_not_from_when_it_was_heard() {
        let pair = Pair { ours: Moment::from_nanos(100_000_000), theirs: Timestamp::from_micros(5_000_000) };
        // Given half a second after the pair, heard two seconds later: it has ended.
        assert_eq!(millis(deadline(&push(5_500_000, 2_600), pair)), 100 + 500 + 1_000);
        // The store's clock jumped an hour ahead: then from when it was heard.
        assert_eq!(millis(deadline(&push(3_605_000_000, 700), pair)), 700 + 1_000);
    }

    #[test]
    fn those_behind_others_ask_in_time_to_see_them_die() {
        let (claim, long) = (Duration::from_secs(1), Duration::from_secs(30));
        assert_eq!(ask_after(0, long, claim), ASK_AT_LEAST_EVERY);
        assert_eq!(ask_after(1, long, claim), claim);
        assert_eq!(ask_after(3, long, claim), claim * 3);
        assert_eq!(ask_after(1_000, long, claim), ASK_AT_LEAST_EVERY);
        assert_eq!(ask_after(1, Duration::from_millis(300), claim), Duration::from_millis(322));
    }

    #[tokio::test]
    async fn a_grant_that_is_older_than_the_answer_that_says_queued_is_over() {
        let clock = crate::clock::Clock::system();
        let desk = crate::lock::Desk::new(
            Arc::new(crate::store::memory::MemoryStore::new(clock.clone())),
            clock.clone(),
            Duration::from_secs(1),
        );
        let expecting = Registry::expect(&desk, Token::for_ear(desk.ear));
        // Stopped for five seconds with the message unread; then the question came first, and its answer: queued.
        let pair = Pair { ours: clock.monotonic(), theirs: Timestamp::from_micros(10_000_000) };
        expecting.receive(push(5_000_000, millis(clock.monotonic())));
        let next = wait_for_the_grant(&expecting, &clock, pair, clock.monotonic()).await;
        assert!(matches!(next, Next::Ask), "somebody else has it");
    }
}
