//! The operations on pools of permits, in memory.
//!
//! Whatever a call is about, the leases that have run out are noticed first: their permits go to the first waiters. So
//! between two calls, as long as no lease has run out, the first waiter wants more than there is.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::entries::{Entries, Passing};
use super::queue::Queue;
use super::{Now, Post};
use crate::clock::Moment;
use crate::store::mutex::RELEASED_KEPT;
use crate::store::{
    Acquire, Attempt, FENCE_BLOCK, Fence, Fences, IfTaken, Lock, News, POOL_RELEASES_KEPT, PermitHolder,
    PermitRenewal, Pool, PoolStatus, Release, Renew, Share, Shrink, Token,
};

#[derive(Debug)]
struct Entry {
    pool: Pool,
    total: u32,
    /// Whether the number was set, so that it is not for the users to say.
    is_set: bool,
    taken: u64,
    /// The highest fence given out.
    fence: Fence,
    holders: HashMap<Token, Held>,
    by_deadline: BTreeSet<(Moment, Token)>,
    /// Who gave permits back in good order, the latest first.
    released: VecDeque<Token>,
    queue: Queue<u32>,
    changed_at: Moment,
}

/// What one token holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    permits: u32,
    last_fence: Fence,
    deadline: Moment,
}

impl Passing for Entry {
    /// A fence that is ahead of the clock must not be forgotten.
    fn is_forgotten(&self, now: Now) -> bool {
        let last_deadline = self.by_deadline.last().map_or(self.changed_at, |(deadline, _)| *deadline);
        let is_over = last_deadline.max(self.changed_at) + RELEASED_KEPT <= now.monotonic;
        is_over && self.queue.is_empty() && self.fence.get() < now.wall.as_micros()
    }
}

impl Entry {
    fn new(pool: Pool, set: Option<u32>, now: Now) -> Self {
        Self {
            pool,
            total: set.unwrap_or(0),
            is_set: set.is_some(),
            taken: 0,
            fence: Fence::NONE,
            holders: HashMap::new(),
            by_deadline: BTreeSet::new(),
            released: VecDeque::new(),
            queue: Queue::default(),
            changed_at: now.monotonic,
        }
    }

    fn is_in_use(&self) -> bool {
        !self.holders.is_empty() || !self.queue.is_empty()
    }

    /// Whether so many are neither taken nor missing.
    fn has(&self, permits: u32) -> bool {
        self.taken + u64::from(permits) <= u64::from(self.total)
    }

    fn reserve(&mut self, now: Now, seen: Fence, count: u64) -> Fences {
        let fences = now.fences_above(self.fence.max(seen), count);
        self.fence = fences.last;
        fences
    }

    fn hold(&mut self, token: Token, held: Held) {
        self.holders.insert(token, held);
        self.by_deadline.insert((held.deadline, token));
        self.taken += u64::from(held.permits);
    }

    fn take_back(&mut self, token: Token) -> Option<Held> {
        let held = self.holders.remove(&token)?;
        self.by_deadline.remove(&(held.deadline, token));
        self.taken -= u64::from(held.permits);
        Some(held)
    }

    /// What the first lease that ends has left; without a holder, the first could have it for the claim lease.
    fn lease_left(&self, now: Now, claim: Duration) -> Duration {
        self.by_deadline.first().map_or(claim, |(deadline, _)| deadline.since(now.monotonic))
    }

    /// Gives permits to the first waiters, to each as many as it wants, as long as there are enough. `asking` is told by the
    /// answer to its call.
    fn serve(&mut self, now: Now, post: &mut Post<'_>, asking: Option<Token>) {
        while let Some((token, permits)) = self.queue.first() {
            let listener = post.listener(token.ear());
            let to_tell = listener.clone().filter(|_| asking != Some(token));
            if permits > self.total {
                self.queue.pop_first();
                to_tell.into_iter().for_each(|listener| post.tell(listener, News::Ask(token)));
                continue;
            }
            if !self.has(permits) {
                return;
            }
            self.queue.pop_first();
            if listener.is_none() && asking != Some(token) {
                continue;
            }
            let fences = self.reserve(now, Fence::NONE, FENCE_BLOCK);
            let deadline = now.monotonic + post.claim;
            self.hold(token, Held { permits, last_fence: fences.last, deadline });
            if let Some(listener) = to_tell {
                post.tell_of_grant(listener, Lock::Pool(self.pool.clone()), token, fences, now);
            }
        }
    }

    /// Leases that ran out are noticed by the next call on the pool.
    fn notice_ended_leases(&mut self, now: Now, post: &mut Post<'_>, asking: Option<Token>) {
        while let Some((_, token)) =
            self.by_deadline.first().copied().filter(|(deadline, _)| *deadline <= now.monotonic)
        {
            self.take_back(token);
        }
        self.serve(now, post, asking);
    }

    /// What was given back in this call goes to the first waiters.
    fn pass_on(&mut self, now: Now, post: &mut Post<'_>) {
        self.changed_at = now.monotonic;
        self.serve(now, post, None);
    }

    fn give(&mut self, now: Now, attempt: &Attempt, permits: u32) -> Acquire {
        let fences = self.reserve(now, attempt.fence_seen, attempt.fences);
        let lease_left = attempt.lease.length();
        let deadline = now.monotonic + lease_left;
        self.hold(attempt.token, Held { permits, last_fence: fences.last, deadline });
        Acquire::Granted { fences, lease_left }
    }

    fn enqueue(&mut self, attempt: &Attempt, permits: u32, now: Now, claim: Duration) -> Acquire {
        let is_at_head = attempt.if_taken == IfTaken::QueueAgain;
        let ahead = self.queue.join(attempt.token, permits, is_at_head);
        Acquire::Queued { ahead, lease_left: self.lease_left(now, claim), now: now.wall }
    }

    fn take(&mut self, now: Now, attempt: &Attempt, share: Share, post: &mut Post<'_>) -> Acquire {
        let (token, permits) = (attempt.token, share.permits);
        self.notice_ended_leases(now, post, Some(token));
        if let Some(held) = self.holders.get(&token) {
            let first = Fence::new(held.last_fence.get() + 1 - attempt.fences);
            let fences = Fences { first, last: held.last_fence };
            return Acquire::Granted { fences, lease_left: held.deadline.since(now.monotonic) };
        }
        if self.released.contains(&token) {
            return Acquire::Taken { lease_left: Duration::ZERO };
        }
        if !self.is_set && !self.is_in_use() {
            self.total = share.of;
        }
        if permits > self.total {
            self.queue.leave(token);
            return Acquire::Never { total: self.total };
        }
        // Who was in the queue and is no longer was at its head.
        let was_first = attempt.if_taken == IfTaken::QueueAgain && !self.queue.contains(token);
        if (self.queue.is_empty() || was_first) && self.has(permits) {
            return self.give(now, attempt, permits);
        }
        match attempt.if_taken {
            IfTaken::Leave | IfTaken::Watch => {
                Acquire::Taken { lease_left: self.lease_left(now, post.claim) }
            }
            IfTaken::Queue | IfTaken::QueueAgain => self.enqueue(attempt, permits, now, post.claim),
        }
    }

    fn renew(&mut self, now: Now, renewal: &PermitRenewal) -> Renew {
        let Some(mut held) = self.take_back(renewal.token) else { return Renew::NotHeld };
        let fences = (renewal.fences > 0).then(|| self.reserve(now, Fence::NONE, renewal.fences));
        held.deadline = now.monotonic + renewal.lease.length();
        held.last_fence = fences.map_or(held.last_fence, |fences| fences.last);
        self.hold(renewal.token, held);
        let are_too_many_taken = self.taken > u64::from(self.total);
        let others_wait =
            are_too_many_taken || self.queue.iter().any(|(waiter, _)| waiter.ear() != renewal.token.ear());
        Renew::Renewed { fences, others_wait }
    }
}

/// All pools that are in use or were a short while ago, and the numbers that were set.
#[derive(Debug, Default)]
pub(super) struct Pools {
    entries: Entries<Pool, Entry>,
    sizes: HashMap<Pool, u32>,
}

impl Pools {
    fn entry(&mut self, pool: &Pool, now: Now) -> &mut Entry {
        let set = self.sizes.get(pool).copied();
        self.entries.entry(pool, now, || Entry::new(pool.clone(), set, now))
    }

    /// The pool, if it is known, after its ended leases were noticed.
    fn noticed(&mut self, pool: &Pool, now: Now, post: &mut Post<'_>) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(pool, now)?;
        entry.notice_ended_leases(now, post, None);
        Some(entry)
    }
}

pub(super) fn permit_acquire(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    pool: &Pool,
    attempt: &Attempt,
    share: Share,
) -> Acquire {
    pools.entry(pool, now).take(now, attempt, share, post)
}

pub(super) fn permit_renew(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    renewals: &[PermitRenewal],
) -> Vec<Renew> {
    let renew = |renewal: &PermitRenewal| match pools.noticed(&renewal.pool, now, post) {
        Some(entry) => entry.renew(now, renewal),
        None => Renew::NotHeld,
    };
    renewals.iter().map(renew).collect()
}

pub(super) fn permit_release(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    pool: &Pool,
    token: Token,
) -> Release {
    let Some(entry) = pools.entries.get_mut(pool, now) else { return Release::NotHeld };
    let has_left = entry.queue.leave(token);
    entry.notice_ended_leases(now, post, None);
    if entry.take_back(token).is_some() {
        entry.released.push_front(token);
        entry.released.truncate(POOL_RELEASES_KEPT);
        entry.pass_on(now, post);
        return Release::Released;
    }
    match (entry.released.contains(&token), has_left) {
        (true, _) => Release::Released,
        (false, true) => Release::Left,
        (false, false) => Release::NotHeld,
    }
}

pub(super) fn permit_shrink(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    pool: &Pool,
    token: Token,
    permits: u32,
) -> Shrink {
    let Some(entry) = pools.noticed(pool, now, post) else { return Shrink::NotHeld };
    let Some(held) = entry.take_back(token) else { return Shrink::NotHeld };
    entry.hold(token, Held { permits: held.permits.min(permits), ..held });
    entry.pass_on(now, post);
    Shrink::Shrunk
}

pub(super) fn permit_resize(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    pool: &Pool,
    total: Option<u32>,
) {
    match total {
        Some(total) => pools.sizes.insert(pool.clone(), total),
        None => pools.sizes.remove(pool),
    };
    if let Some(entry) = pools.noticed(pool, now, post) {
        entry.is_set = total.is_some();
        entry.total = total.unwrap_or(entry.total);
        entry.pass_on(now, post);
    }
}

pub(super) fn permit_read(pools: &mut Pools, now: Now, post: &mut Post<'_>, pool: &Pool) -> PoolStatus {
    let set = pools.sizes.get(pool).copied();
    let Some(entry) = pools.noticed(pool, now, post) else {
        let (fence, holders, first_waiting) = (Fence::NONE, Vec::new(), Vec::new());
        return PoolStatus { total: set, taken: 0, holding: 0, holders, fence, waiting: 0, first_waiting };
    };
    let holder = |(deadline, token): &(Moment, Token)| {
        let permits = entry.holders.get(token).map_or(0, |held| held.permits);
        PermitHolder { token: *token, permits, lease_left: deadline.since(now.monotonic) }
    };
    PoolStatus {
        total: set.or(entry.is_in_use().then_some(entry.total)),
        taken: entry.taken,
        holding: u64::try_from(entry.holders.len()).unwrap_or(u64::MAX),
        holders: entry.by_deadline.iter().take(PoolStatus::MAX_LISTED).map(holder).collect(),
        fence: entry.fence,
        waiting: entry.queue.len(),
        first_waiting: entry.queue.iter().take(PoolStatus::MAX_LISTED).collect(),
    }
}

pub(super) fn permit_break(
    pools: &mut Pools,
    now: Now,
    post: &mut Post<'_>,
    pool: &Pool,
    token: Option<Token>,
) -> Fence {
    let entry = pools.entry(pool, now);
    let fence = entry.reserve(now, Fence::NONE, 1).last;
    let broken = token.map_or_else(|| entry.holders.keys().copied().collect(), |token| vec![token]);
    for token in broken {
        entry.take_back(token);
    }
    entry.notice_ended_leases(now, post, None);
    entry.changed_at = now.monotonic;
    fence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::key::Name;
    use crate::store::{Lease, PoolKind};

    #[test]
    fn pools_that_nobody_needs_any_more_take_no_memory() {
        let clock = Clock::fake();
        let mut pools = Pools::default();
        let ears = HashMap::new();
        let mut post = Post::new(&ears, Duration::from_secs(1));
        let lease = Lease::new(Duration::from_secs(1)).unwrap();
        for number in 0..100_000_u32 {
            let now = Now { monotonic: clock.monotonic(), wall: clock.wall() };
            let name = Name::new("semaphore", number.to_string()).unwrap();
            let pool = Pool { kind: PoolKind::Semaphore, name };
            let attempt = Attempt::new(Token::from_bits(1), lease);
            permit_acquire(&mut pools, now, &mut post, &pool, &attempt, Share { permits: 1, of: 1 });
            clock.advance(Duration::from_secs(1));
        }
        assert!(pools.entries.len() <= 1_024, "{} are kept", pools.entries.len());
    }
}
