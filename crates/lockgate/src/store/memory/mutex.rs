//! The mutex operations, in memory.
//!
//! | `holder` | deadline | means | an attempt by another token |
//! | --- | --- | --- | --- |
//! | `Some` | ahead | held | is told how long, or waits |
//! | `Some` | passed, queue not empty | the lease ran out, and nobody has asked since | first sees the next waiter get it |
//! | `Some` | passed, queue empty | the lease ran out, nobody came since | gets it |
//! | `None` | – | released; the queue is empty | gets it (the two tokens that released last do not: their call is late) |
//! | no entry | – | never held, or forgotten | gets it |

use std::time::Duration;

use super::entries::{Entries, Passing};
use super::queue::Queue;
use super::{Now, Post};
use crate::clock::Moment;
use crate::key::Name;
use crate::store::mutex::RELEASED_KEPT;
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, Holder, IfTaken, Lock, MutexStatus, News, Release, Renew,
    Renewal, Token,
};

#[derive(Debug)]
pub(super) struct Entry {
    name: Name,
    holder: Option<Token>,
    /// The last that gave it back in good order; and the one before, as long as nobody has taken it since.
    released: [Option<Token>; 2],
    /// The highest fence given out.
    fence: Fence,
    /// When the lease ends; after a release, when it was released.
    deadline: Moment,
    /// Somebody wants to hear when it is free.
    watched: bool,
    queue: Queue<()>,
}

impl Passing for Entry {
    /// A fence that is ahead of the clock must not be forgotten.
    fn is_forgotten(&self, now: Now) -> bool {
        let kept = if self.holder.is_some() { Duration::ZERO } else { RELEASED_KEPT };
        let is_over = self.deadline + kept <= now.monotonic;
        is_over && self.queue.is_empty() && self.fence.get() < now.wall.as_micros()
    }
}

impl Entry {
    fn new(name: Name, now: Now) -> Self {
        let released = [None, None];
        let (fence, deadline, queue) = (Fence::NONE, now.monotonic, Queue::default());
        Self { name, holder: None, released, fence, deadline, watched: false, queue }
    }

    fn is_held(&self, now: Now) -> bool {
        self.holder.is_some() && self.deadline > now.monotonic
    }

    fn is_held_by(&self, token: Token, now: Now) -> bool {
        self.holder == Some(token) && self.is_held(now)
    }

    fn was_released_by(&self, token: Token) -> bool {
        self.released.contains(&Some(token))
    }

    fn lease_left(&self, now: Now) -> Duration {
        self.deadline.since(now.monotonic)
    }

    /// Reserves `count` fences above all that were given out and above `seen`.
    fn reserve(&mut self, now: Now, seen: Fence, count: u64) -> Fences {
        let fences = now.fences_above(self.fence.max(seen), count);
        self.fence = fences.last;
        fences
    }

    fn is_now_held_by(&mut self, token: Token, until: Moment) {
        (self.holder, self.deadline) = (Some(token), until);
        self.released[1] = None;
    }

    fn give(&mut self, now: Now, attempt: &Attempt) -> Acquire {
        let fences = self.reserve(now, attempt.fence_seen, attempt.fences);
        let lease_left = attempt.lease.length();
        self.is_now_held_by(attempt.token, now.monotonic + lease_left);
        self.watched |= attempt.if_taken == IfTaken::Watch;
        Acquire::Granted { fences, lease_left }
    }

    /// Gives it to the first waiter who is there; says to whom. `asking` is told by the answer to its call instead.
    fn give_to_next(&mut self, now: Now, post: &mut Post<'_>, asking: Option<Token>) -> Option<Token> {
        while let Some((token, ())) = self.queue.pop_first() {
            let listener = post.listener(token.ear());
            if listener.is_none() && asking != Some(token) {
                continue;
            }
            let fences = self.reserve(now, Fence::NONE, FENCE_BLOCK);
            self.is_now_held_by(token, now.monotonic + post.claim);
            if let Some(listener) = listener.filter(|_| asking != Some(token)) {
                post.tell_of_grant(listener, Lock::Mutex(self.name.clone()), token, fences, now);
            }
            return Some(token);
        }
        None
    }

    /// A lease that ran out is noticed by the next call on the mutex.
    fn notice_the_end_of_the_lease(&mut self, now: Now, post: &mut Post<'_>, asking: Option<Token>) {
        if !self.is_held(now) && !self.queue.is_empty() {
            self.give_to_next(now, post, asking);
        }
    }

    /// Nobody holds it any more: the next waiter does, or those who watch hear of it.
    fn pass_on(&mut self, now: Now, post: &mut Post<'_>) {
        (self.holder, self.deadline) = (None, now.monotonic);
        if self.give_to_next(now, post, None).is_none() && std::mem::take(&mut self.watched) {
            post.tell_all(&News::Freed(self.name.clone()));
        }
    }

    fn enqueue(&mut self, token: Token, is_at_head: bool, now: Now) -> Acquire {
        let ahead = self.queue.join(token, (), is_at_head);
        Acquire::Queued { ahead, lease_left: self.lease_left(now), now: now.wall }
    }

    fn take(&mut self, now: Now, attempt: &Attempt, post: &mut Post<'_>) -> Acquire {
        self.notice_the_end_of_the_lease(now, post, Some(attempt.token));
        let lease_left = self.lease_left(now);
        if self.is_held_by(attempt.token, now) {
            let first = Fence::new(self.fence.get() + 1 - attempt.fences);
            return Acquire::Granted { fences: Fences { first, last: self.fence }, lease_left };
        }
        if self.was_released_by(attempt.token) {
            return Acquire::Taken { lease_left: Duration::ZERO };
        }
        if !self.is_held(now) {
            return self.give(now, attempt);
        }
        match attempt.if_taken {
            IfTaken::Leave => Acquire::Taken { lease_left },
            IfTaken::Watch => {
                self.watched = true;
                Acquire::Taken { lease_left }
            }
            IfTaken::Queue => self.enqueue(attempt.token, false, now),
            IfTaken::QueueAgain => self.enqueue(attempt.token, true, now),
        }
    }
}

/// All mutexes that are held or were held a short while ago.
pub(super) type Mutexes = Entries<Name, Entry>;

fn entry<'a>(mutexes: &'a mut Mutexes, mutex: &Name, now: Now) -> &'a mut Entry {
    mutexes.entry(mutex, now, || Entry::new(mutex.clone(), now))
}

pub(super) fn mutex_acquire(
    mutexes: &mut Mutexes,
    now: Now,
    post: &mut Post<'_>,
    mutex: &Name,
    attempt: &Attempt,
) -> Acquire {
    entry(mutexes, mutex, now).take(now, attempt, post)
}

pub(super) fn mutex_renew(mutexes: &mut Mutexes, now: Now, renewals: &[Renewal]) -> Vec<Renew> {
    let renew = |renewal: &Renewal| match mutexes.get_mut(&renewal.mutex, now) {
        Some(entry) if entry.is_held_by(renewal.token, now) => {
            entry.deadline = now.monotonic + renewal.lease.length();
            let fences = (renewal.fences > 0).then(|| entry.reserve(now, Fence::NONE, renewal.fences));
            Renew::Renewed { fences, others_wait: entry.watched || !entry.queue.is_empty() }
        }
        _ => Renew::NotHeld,
    };
    renewals.iter().map(renew).collect()
}

pub(super) fn mutex_release(
    mutexes: &mut Mutexes,
    now: Now,
    post: &mut Post<'_>,
    mutex: &Name,
    token: Token,
) -> Release {
    let entry = entry(mutexes, mutex, now);
    let has_left = entry.queue.leave(token);
    entry.notice_the_end_of_the_lease(now, post, None);
    if entry.is_held_by(token, now) {
        entry.released = [Some(token), entry.released[0]];
        entry.pass_on(now, post);
        return Release::Released;
    }
    match (entry.was_released_by(token), has_left) {
        (true, _) => Release::Released,
        (false, true) => Release::Left,
        (false, false) => Release::NotHeld,
    }
}

pub(super) fn mutex_yield(
    mutexes: &mut Mutexes,
    now: Now,
    post: &mut Post<'_>,
    mutex: &Name,
    token: Token,
    next: &Attempt,
) -> Acquire {
    let entry = entry(mutexes, mutex, now);
    let next = &Attempt { if_taken: IfTaken::Queue, ..*next };
    if !entry.is_held_by(token, now) {
        return entry.take(now, next, post);
    }
    entry.released = [Some(token), entry.released[0]];
    (entry.holder, entry.deadline) = (None, now.monotonic);
    if entry.queue.is_empty() {
        return entry.give(now, next);
    }
    entry.enqueue(next.token, false, now);
    if entry.give_to_next(now, post, Some(next.token)) == Some(next.token) {
        return entry.give(now, next);
    }
    entry.take(now, next, post)
}

pub(super) fn mutex_read(mutexes: &Mutexes, now: Now, mutex: &Name) -> MutexStatus {
    let Some(entry) = mutexes.get(mutex, now) else {
        return MutexStatus { holder: None, fence: Fence::NONE, waiting: 0, first_waiting: Vec::new() };
    };
    let holder = entry.holder.filter(|_| entry.is_held(now));
    MutexStatus {
        holder: holder.map(|token| Holder { token, lease_left: entry.lease_left(now) }),
        fence: entry.fence,
        waiting: entry.queue.len(),
        first_waiting: entry.queue.iter().take(MutexStatus::MAX_LISTED).map(|(token, ())| token).collect(),
    }
}

pub(super) fn mutex_break(mutexes: &mut Mutexes, now: Now, post: &mut Post<'_>, mutex: &Name) -> Fence {
    let entry = entry(mutexes, mutex, now);
    let fence = entry.reserve(now, Fence::NONE, 1).last;
    entry.pass_on(now, post);
    fence
}

pub(super) fn mutex_acquire_all(
    mutexes: &mut Mutexes,
    now: Now,
    post: &mut Post<'_>,
    wishes: &[(Name, Attempt)],
) -> Option<Vec<Acquire>> {
    let (mut held, mut free) = (0, 0);
    for (mutex, attempt) in wishes {
        let entry = entry(mutexes, mutex, now);
        entry.notice_the_end_of_the_lease(now, post, Some(attempt.token));
        if entry.is_held_by(attempt.token, now) {
            held += 1;
        } else if !entry.is_held(now) && !entry.was_released_by(attempt.token) {
            free += 1;
        }
    }
    let mut take = |(mutex, attempt): &(Name, Attempt)| {
        let attempt = Attempt { if_taken: IfTaken::Leave, ..*attempt };
        entry(mutexes, mutex, now).take(now, &attempt, post)
    };
    (held == wishes.len() || free == wishes.len()).then(|| wishes.iter().map(&mut take).collect())
}

pub(super) fn mutex_raise(mutexes: &mut Mutexes, now: Now, mutex: &Name, token: Token, fence: Fence) -> bool {
    let held = mutexes.get_mut(mutex, now).filter(|entry| entry.is_held_by(token, now));
    held.map(|entry| entry.fence = entry.fence.max(fence)).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::clock::Clock;
    use crate::store::Lease;

    #[test]
    fn mutexes_that_nobody_needs_any_more_take_no_memory() {
        let clock = Clock::fake();
        let mut mutexes = Mutexes::default();
        let ears = HashMap::new();
        let mut post = Post::new(&ears, Duration::from_secs(1));
        for number in 0..100_000_u32 {
            let now = Now { monotonic: clock.monotonic(), wall: clock.wall() };
            let name = Name::new("mutex", number.to_string()).unwrap();
            let attempt = Attempt::new(Token::from_bits(1), Lease::new(Duration::from_secs(1)).unwrap());
            mutex_acquire(&mut mutexes, now, &mut post, &name, &attempt);
            clock.advance(Duration::from_secs(1));
        }
        assert!(mutexes.len() <= 1_024, "{} are kept", mutexes.len());
    }
}
