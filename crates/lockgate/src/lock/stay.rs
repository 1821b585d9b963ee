//! One tenure of a room, and who holds what under it.
//!
//! A tenure has so many permits of its lock. A mutex has one, and so has its tenure. The tenure of a writer has all, and
//! serves readers too, since nobody else can write meanwhile. The tenure of a reader serves any number of readers and no
//! writer: here that is one permit less than all. The tenure of a semaphore serves whoever finds enough left in it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::guard::{Given, Guard, Hold};
use super::owner::Owner;
use super::room::Outcome;
use super::tenure::Tenure;
use super::terms::{Cohort, Terms};
use crate::clock::Moment;
use crate::store::{Fence, Fences, Lock, Pool, PoolKind, Share, WRITER};

/// So many passes after the last look, the next one is under way: early enough that there is a fence for everybody.
const LOOK_AFTER_PASSES: u32 = 16;

/// Somebody who stands in a room.
pub(super) struct Waiter {
    pub(super) share: Share,
    /// Whether nobody may hold the lock beside it, so that it needs a fence.
    pub(super) is_exclusive: bool,
    pub(super) terms: Terms,
    pub(super) owner: Option<Owner>,
    pub(super) since: Moment,
    pub(super) outcome: oneshot::Sender<Outcome>,
}

impl Waiter {
    pub(super) fn has_left(&self) -> bool {
        self.outcome.is_closed()
    }
}

/// See the [module](self).
pub(super) struct Stay {
    pub(super) tenure: Arc<Tenure>,
    /// How many permits may be held under it at a time.
    capacity: u32,
    used: u32,
    /// Whether nobody else can have anything of the lock meanwhile: then it is worth waiting for, instead of asking the
    /// store.
    pub(super) is_all: bool,
    holders: Vec<Arc<Hold>>,
    pub(super) cohort: CohortState,
    /// Since when there are only readers under the tenure of a writer.
    pub(super) readers_since: Option<Moment>,
    /// Whether a task looks after those readers.
    pub(super) is_watched: bool,
}

/// How far a tenure has gone.
#[derive(Default)]
pub(super) struct CohortState {
    /// The fences that are left: from the first to before the second; and those after them.
    fences: (u64, u64),
    reserve: Option<(u64, u64)>,
    passes: u32,
    began: Option<Moment>,
    /// As far as is known.
    pub(super) others_wait: bool,
    fences_since_look: u32,
    looked_at: Option<Moment>,
    is_looking: bool,
    /// Nobody holds the lock, because there is no fence for the next holder; some are on their way.
    pub(super) waits_for_fences: bool,
}

impl CohortState {
    pub(super) fn begin(now: Moment, fences: Fences, others_wait: bool) -> Self {
        Self {
            fences: (fences.first.get(), fences.last.get() + 1),
            began: Some(now),
            others_wait,
            looked_at: Some(now),
            ..Self::default()
        }
    }

    fn has_a_fence(&self) -> bool {
        self.fences.0 < self.fences.1 || self.reserve.is_some()
    }

    /// The next fence, if there is one.
    fn fence(&mut self) -> Option<Fence> {
        if self.fences.0 == self.fences.1
            && let Some(reserve) = self.reserve.take()
        {
            self.fences = reserve;
        }
        (self.fences.0 < self.fences.1).then_some(Fence::new(self.fences.0))
    }

    fn add(&mut self, fences: Fences) {
        let fences = (fences.first.get(), fences.last.get() + 1);
        if self.fences.0 == self.fences.1 {
            self.fences = fences;
        } else {
            self.reserve = Some(fences);
        }
    }

    /// Whether the other processes have waited long enough. Who joins others that hold the lock already makes it no longer
    /// than it is.
    fn is_spent(&self, bounds: Cohort, now: Moment) -> bool {
        let is_long = self.began.is_some_and(|began| now.since(began) >= bounds.time);
        self.others_wait && (self.passes >= bounds.passes || is_long)
    }

    /// Whether it is time to ask the store whether others wait, and for more fences. If so, the caller does.
    pub(super) fn begins_to_look(&mut self, bounds: Cohort, now: Moment) -> bool {
        let looked_long_ago = self.looked_at.is_none_or(|looked| now.since(looked) >= bounds.time);
        let needs_fences = self.reserve.is_none() && self.fences_since_look >= LOOK_AFTER_PASSES;
        let begins = !self.others_wait && !self.is_looking && (needs_fences || looked_long_ago);
        self.is_looking |= begins;
        begins
    }

    /// The look is over; with an answer, or without.
    pub(super) fn has_looked(&mut self, now: Moment, answer: Option<(Option<Fences>, bool)>) {
        self.is_looking = false;
        self.looked_at = Some(now);
        self.fences_since_look = 0;
        if let Some((fences, others_wait)) = answer {
            self.others_wait = others_wait;
            if let Some(fences) = fences {
                self.add(fences);
            }
        }
    }
}

impl Stay {
    pub(super) fn begin(tenure: Arc<Tenure>, share: Share, cohort: CohortState) -> Self {
        let is_reader = is_rw(&tenure.lock) && share.permits < WRITER;
        let capacity = if is_reader { WRITER - 1 } else { share.permits };
        let is_all = is_exclusive(&tenure.lock, share);
        let holders = Vec::new();
        Self { tenure, capacity, used: 0, is_all, holders, cohort, readers_since: None, is_watched: false }
    }

    /// Whether nobody has been served under it yet: the first one is the one for whom it was got.
    pub(super) fn is_fresh(&self) -> bool {
        self.cohort.passes == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// Whether it can serve `waiter`, but perhaps for a fence.
    fn has_room_for(&self, waiter: &Waiter, bounds: Cohort, now: Moment) -> bool {
        if waiter.share.permits > self.capacity.saturating_sub(self.used) {
            return false;
        }
        self.is_fresh()
            || (!self.cohort.is_spent(bounds, now) && self.tenure.has_time_for(waiter.terms.lease, now))
    }

    /// Whether it can serve `waiter` now.
    pub(super) fn can_serve(&self, waiter: &Waiter, bounds: Cohort, now: Moment) -> bool {
        self.has_room_for(waiter, bounds, now) && (!waiter.is_exclusive || self.cohort.has_a_fence())
    }

    /// Whether it is over: nobody holds anything under it, and the first who waits is not about to.
    pub(super) fn is_over(&mut self, first: Option<&Waiter>, bounds: Cohort, now: Moment) -> bool {
        if !self.is_empty() {
            return false;
        }
        let lacks_a_fence_only = first.is_some_and(|first| {
            self.cohort.is_looking && first.is_exclusive && self.has_room_for(first, bounds, now)
        });
        self.cohort.waits_for_fences = lacks_a_fence_only;
        !lacks_a_fence_only
    }

    /// Gives what it wants to a waiter for whom there is room; unless it has gone away. Says whether it took it.
    pub(super) fn serve(&mut self, waiter: Waiter, now: Moment) -> bool {
        let Waiter { share, terms, .. } = waiter;
        let fence = if waiter.is_exclusive { self.cohort.fence() } else { None };
        let until = self.tenure.serve(terms, now, !self.is_empty());
        let (permits, lease, owner) = (share.permits, terms.lease, waiter.owner);
        let given = Given { fence: fence.unwrap_or_default(), permits, lease, until, owner };
        let hold = Hold::new(&self.tenure, now, given);
        match waiter.outcome.send(Ok(Guard::new(&hold))) {
            Ok(()) => {
                let waited = now.since(waiter.since).as_secs_f64();
                self.tenure.desk.metrics.of(&self.tenure.lock).wait.record(waited);
                self.admit(hold, fence.is_some());
                true
            }
            // It went away just now. Its guard must not give back what it never had.
            Err(outcome) => {
                if let Ok(guard) = outcome {
                    guard.disarm();
                }
                self.has_let_go_of(until);
                false
            }
        }
    }

    fn admit(&mut self, hold: Arc<Hold>, took_a_fence: bool) {
        if self.is_empty() {
            self.cohort.passes += 1;
        }
        if took_a_fence {
            self.cohort.fences.0 += 1;
            self.cohort.fences_since_look += 1;
        }
        self.used += hold.permits();
        hold.stand_at(self.holders.len());
        self.holders.push(hold);
    }

    /// Whether `hold` is one of its holders.
    fn has(&self, hold: &Arc<Hold>) -> bool {
        self.holders.get(hold.place()).is_some_and(|holder| Arc::ptr_eq(holder, hold))
    }

    /// Lets a holder go; whether it was one.
    pub(super) fn dismiss(&mut self, hold: &Arc<Hold>) -> bool {
        if !self.has(hold) {
            return false;
        }
        let place = hold.place();
        self.holders.swap_remove(place);
        if let Some(moved) = self.holders.get(place) {
            moved.stand_at(place);
        }
        self.used = self.used.saturating_sub(hold.permits());
        self.has_let_go_of(hold.until());
        true
    }

    /// One whose lease ends then holds it no longer, or never did: what the tenure knows of its holders must not be its.
    fn has_let_go_of(&self, until: Option<Moment>) {
        if self.is_empty() {
            self.tenure.serve_nobody();
        } else if until.is_some_and(|until| self.tenure.first_end() == until) {
            self.serve_anew();
        }
    }

    fn serve_anew(&self) {
        self.tenure.serve_anew(self.holders.iter().map(|hold| (hold.lease(), hold.until())));
    }

    /// Takes it from those whose leases are over; how many.
    pub(super) fn take_from_those_whose_time_is_over(&mut self, now: Moment) -> usize {
        let over: Vec<_> = self.holders.iter().filter(|holder| holder.is_over(now)).cloned().collect();
        for hold in &over {
            self.dismiss(hold);
            hold.take_away();
        }
        if self.is_empty() {
            self.tenure.serve_nobody();
        } else {
            self.serve_anew();
        }
        over.len()
    }

    /// One of its holders wants it no longer than that, from now on.
    pub(super) fn end_at(&mut self, hold: &Arc<Hold>, until: Moment) {
        if self.has(hold) {
            hold.end_at(until);
            self.serve_anew();
        }
    }

    /// The tenure is lost for all of them.
    pub(super) fn take_from_all(&mut self) {
        for holder in self.holders.drain(..) {
            holder.take_away();
        }
        self.used = 0;
    }

    /// Whether it is a writer's, and only readers are in it.
    pub(super) fn has_only_readers(&self) -> bool {
        is_rw(&self.tenure.lock) && self.capacity == WRITER && (1..WRITER).contains(&self.used)
    }

    /// From now on it is a reader's: before the store is told, so that no writer comes in meanwhile.
    pub(super) fn become_a_readers(&mut self) {
        self.capacity = WRITER - 1;
        (self.is_all, self.readers_since) = (false, None);
    }

    /// A writer goes on as a reader; whether it was one.
    pub(super) fn downgrade(&mut self, hold: &Arc<Hold>) -> bool {
        if !self.has(hold) || hold.permits() != WRITER {
            return false;
        }
        hold.keep_only(1);
        self.used = 1;
        self.become_a_readers();
        true
    }
}

/// Whether nobody else can have anything of a lock of which somebody has so much. Of a semaphore never: there may be more
/// permits tomorrow.
pub(super) fn is_exclusive(lock: &Lock, share: Share) -> bool {
    !matches!(lock, Lock::Pool(Pool { kind: PoolKind::Semaphore, .. })) && share.permits == share.of
}

fn is_rw(lock: &Lock) -> bool {
    matches!(lock, Lock::Pool(Pool { kind: PoolKind::RwLock, .. }))
}
