//! The waiters of one process for one mutex, and what the process holds of it.
//!
//! **Promise:** in a room the first to come is the first to be served. A lock that is given back goes to the next waiter
//! here, under the same tenure and with a higher fence, as long as the cohort's bounds allow it; otherwise to the next
//! process, and the room queues again. A waiter that goes away is passed over, and one that goes away at the moment
//! when it is given the lock passes it on, because what it is given is a guard.
//!
//! | `tenure` | `holder` | `is_seeking` | means |
//! | --- | --- | --- | --- |
//! | – | – | no | empty; leaves the desk |
//! | – | – | yes | waits for the store, for the first of `waiters` |
//! | some | some | no | held here |
//! | some | – | no | between two holders here, until more fences come |
//!
//! A room of its own, known to nobody else, is what a lock without cohort has: then every waiter has its own place in
//! the store's queue, and it is first come, first served between processes too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard as StdGuard, PoisonError};

use tokio::sync::oneshot;

use super::desk::Desk;
use super::error::LockError;
use super::guard::{Hold, MutexGuard};
use super::hand_off;
use super::news::{Expecting, Waker};
use super::owner::Owner;
use super::tenure::Tenure;
use super::terms::{Cohort, Terms};
use crate::clock::Moment;
use crate::key::Name;
use crate::store::{FENCE_BLOCK, Fence, Fences, Renew, Renewal};

/// What a waiter is told in the end.
pub(super) type Outcome = Result<MutexGuard, LockError>;

/// See the [module](self).
pub(super) struct Room {
    pub(super) desk: Arc<Desk>,
    pub(super) name: Name,
    cohort: Cohort,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiters: VecDeque<Waiter>,
    /// How many of `waiters` have gone away.
    gone_away: usize,
    tenure: Option<Arc<Tenure>>,
    holder: Option<Arc<Hold>>,
    is_seeking: bool,
    /// Wakes the search, to see that nobody wants anything any more.
    search: Option<Waker>,
    /// Nobody may come in any more: another room has taken the name.
    is_closed: bool,
    cohort: CohortState,
    highest_fence: Fence,
}

/// How far the present tenure has gone.
#[derive(Default)]
struct CohortState {
    /// The fences that are left: from the first to before the second; and those after them.
    fences: (u64, u64),
    reserve: Option<(u64, u64)>,
    passes: u32,
    began: Option<Moment>,
    /// As far as is known.
    others_wait: bool,
    passes_since_look: u32,
    looked_at: Option<Moment>,
    is_looking: bool,
    /// Nobody holds the lock, because there is no fence for the next holder; some are on their way.
    waits_for_fences: bool,
}

impl CohortState {
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
}

/// So many passes after the last look, the next one is under way: early enough that there is a fence for everybody.
const LOOK_AFTER_PASSES: u32 = 16;

struct Waiter {
    terms: Terms,
    owner: Option<Owner>,
    since: Moment,
    outcome: oneshot::Sender<Outcome>,
}

/// What the store has given.
pub(super) struct Grant {
    pub(super) expecting: Expecting,
    pub(super) fences: Fences,
    pub(super) trusted_until: Moment,
    /// Whether others are believed to wait.
    pub(super) others_wait: bool,
    /// Whether it is for the claim lease only.
    pub(super) is_claim: bool,
}

/// What became of a lock that a holder gave back.
pub(super) enum GivenBack {
    /// Somebody else has it, or will.
    PassedOn,
    /// Nobody here wants it: it is to be released in the store.
    ToRelease(Arc<Tenure>),
    WasLost,
}

impl Room {
    pub(super) fn shared(desk: &Arc<Desk>, name: &Name, cohort: Cohort) -> Arc<Self> {
        Arc::new(Self { desk: Arc::clone(desk), name: name.clone(), cohort, inner: Mutex::default() })
    }

    /// A room for one waiter.
    pub(super) fn private(desk: &Arc<Desk>, name: &Name) -> Arc<Self> {
        Self::shared(desk, name, Cohort { passes: 0, time: std::time::Duration::ZERO })
    }

    fn inner(&self) -> StdGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands in line. The second says whether the caller has to [seek](hand_off::seek) for the room. Nothing when the
    /// room is closed: there is another one by now.
    pub(super) fn enter(
        &self,
        terms: Terms,
        owner: Option<Owner>,
    ) -> Option<(oneshot::Receiver<Outcome>, bool)> {
        let (sender, receiver) = oneshot::channel();
        let since = self.desk.clock.monotonic();
        let mut inner = self.inner();
        if inner.is_closed {
            return None;
        }
        inner.waiters.push_back(Waiter { terms, owner, since, outcome: sender });
        let must_seek = inner.tenure.is_none() && !inner.is_seeking;
        inner.is_seeking |= must_seek;
        drop(inner);
        if !must_seek {
            self.desk.begin_to_listen();
        }
        Some((receiver, must_seek))
    }

    /// A waiter has gone away.
    pub(super) fn one_has_gone_away(&self) {
        let mut inner = self.inner();
        inner.gone_away += 1;
        if inner.gone_away * 2 >= inner.waiters.len() {
            inner.waiters.retain(|waiter| !waiter.outcome.is_closed());
            inner.gone_away = 0;
        }
        if inner.waiters.is_empty()
            && let Some(search) = &inner.search
        {
            search.wake();
        }
    }

    /// How many wait without a place of their own in the store: another one of this room holds the lock, or asks for it.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn standing(&self) -> usize {
        let inner = self.inner();
        let waiting = inner.waiters.iter().filter(|waiter| !waiter.outcome.is_closed()).count();
        waiting.saturating_sub(usize::from(inner.is_seeking))
    }

    /// On what terms the first waiter asks. Nothing: nobody waits, and nobody seeks any more.
    pub(super) fn wanted(&self, search: Waker) -> Option<Terms> {
        let mut inner = self.inner();
        inner.waiters.retain(|waiter| !waiter.outcome.is_closed());
        inner.gone_away = 0;
        let Some(first) = inner.waiters.front() else {
            self.stop_seeking(inner);
            return None;
        };
        let terms = first.terms;
        inner.search = Some(search);
        Some(terms)
    }

    /// Whether there is somebody to seek for. If not, nobody seeks any more.
    pub(super) fn is_still_wanted(&self) -> bool {
        let mut inner = self.inner();
        inner.waiters.retain(|waiter| !waiter.outcome.is_closed());
        inner.gone_away = 0;
        if inner.waiters.is_empty() {
            self.stop_seeking(inner);
            return false;
        }
        true
    }

    /// How many fences a tenure begins with: one for each who may hold it.
    pub(super) fn fences_at_once(&self) -> u64 {
        if self.cohort.passes > 0 { FENCE_BLOCK } else { 1 }
    }

    /// The highest fence that this room has seen.
    pub(super) fn fence_seen(&self) -> Fence {
        self.inner().highest_fence
    }

    fn stop_seeking(&self, mut inner: StdGuard<'_, Inner>) {
        inner.is_seeking = false;
        inner.search = None;
        self.close_if_empty(inner);
    }

    fn close_if_empty(&self, mut inner: StdGuard<'_, Inner>) {
        if inner.tenure.is_none() && !inner.is_seeking && inner.waiters.is_empty() {
            inner.is_closed = true;
            drop(inner);
            self.desk.close_room(self);
        }
    }

    /// The search has to begin anew, after a while, for whoever still waits then.
    pub(super) fn seek_anew(self: &Arc<Self>, after: std::time::Duration) {
        let room = Arc::clone(self);
        self.desk.spawn(async move {
            tokio::time::sleep(after).await;
            hand_off::seek(room, None, true).await;
        });
    }

    /// The search has failed: all who wait are told.
    pub(super) fn search_failed(&self, why: &LockError) {
        let mut inner = self.inner();
        let waiters = std::mem::take(&mut inner.waiters);
        self.stop_seeking(inner);
        for waiter in waiters {
            // Those who have gone away need not be told.
            let _ = waiter.outcome.send(Err(why.clone()));
        }
    }

    /// The gate is shutting down.
    pub(super) fn send_waiters_home(&self) {
        let mut inner = self.inner();
        for waiter in inner.waiters.drain(..) {
            let _ = waiter.outcome.send(Err(LockError::ShuttingDown));
        }
        if let Some(search) = &inner.search {
            search.wake();
        }
    }

    /// The store has given it to this room: the first waiter gets it.
    pub(super) fn begin_tenure(self: &Arc<Self>, grant: Grant) {
        let now = self.desk.clock.monotonic();
        let tenure = Tenure::begin(self, grant.expecting, grant.trusted_until, grant.is_claim);
        let mut inner = self.inner();
        inner.is_seeking = false;
        inner.search = None;
        inner.tenure = Some(Arc::clone(&tenure));
        inner.highest_fence = grant.fences.last;
        inner.cohort = CohortState {
            fences: (grant.fences.first.get(), grant.fences.last.get() + 1),
            began: Some(now),
            others_wait: grant.others_wait,
            looked_at: Some(now),
            ..CohortState::default()
        };
        if inner.pass_to_next(&tenure, now) {
            return;
        }
        inner.tenure = None;
        self.close_if_empty(inner);
        tenure.end();
        self.desk.release_in_background(tenure.name.clone(), tenure.token);
    }

    /// A holder has no more use for the lock.
    pub(super) fn give_back(self: &Arc<Self>, hold: &Arc<Hold>) -> GivenBack {
        let now = self.desk.clock.monotonic();
        let mut inner = self.inner();
        if !inner.holder.as_ref().is_some_and(|holder| Arc::ptr_eq(holder, hold)) {
            return GivenBack::WasLost;
        }
        inner.holder = None;
        let Some(tenure) = inner.tenure.clone() else { return GivenBack::WasLost };
        if !tenure.is_trusted(now) {
            drop(inner);
            tenure.lose("the lease ran out");
            return GivenBack::WasLost;
        }
        self.pass_or_end(inner, tenure, now)
    }

    /// The lock is between two holders.
    fn pass_or_end(
        self: &Arc<Self>,
        mut inner: StdGuard<'_, Inner>,
        tenure: Arc<Tenure>,
        now: Moment,
    ) -> GivenBack {
        if inner.may_pass(&tenure, self.cohort, now) {
            if inner.cohort.fence().is_none() && inner.cohort.is_looking {
                inner.cohort.waits_for_fences = true;
                return GivenBack::PassedOn;
            }
            if inner.pass_to_next(&tenure, now) {
                self.desk.metrics.passed_locally.increment(1);
                self.look_around_if_due(&mut inner, &tenure, now);
                return GivenBack::PassedOn;
            }
        }
        self.end_tenure(inner, tenure)
    }

    /// Gives the tenure up: to the next process, and queues again if somebody waits here; or for good.
    fn end_tenure(self: &Arc<Self>, mut inner: StdGuard<'_, Inner>, tenure: Arc<Tenure>) -> GivenBack {
        inner.tenure = None;
        inner.is_seeking = inner.waiters.iter().any(|waiter| !waiter.outcome.is_closed());
        let seeks_again = inner.is_seeking;
        if seeks_again {
            drop(inner);
        } else {
            inner.waiters.clear();
            self.close_if_empty(inner);
        }
        tenure.end();
        if !seeks_again {
            return GivenBack::ToRelease(tenure);
        }
        self.desk.spawn(hand_off::seek(Arc::clone(self), Some(tenure.token), true));
        GivenBack::PassedOn
    }

    /// The holder's lease is over, that of the tenure is not: the next one gets it.
    pub(super) fn take_from_holder(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let now = self.desk.clock.monotonic();
        let mut inner = self.inner();
        if !inner.is_tenure(tenure) {
            return;
        }
        // Another one may have it by now, whose lease is not over.
        if !inner.holder.as_ref().is_some_and(|holder| holder.is_over(now)) {
            return tenure.look_in_time(now);
        }
        let Some(holder) = inner.holder.take() else { return };
        holder.take_away();
        self.desk.metrics.lost.increment(1);
        tracing::warn!(name = %self.name, "a holder kept the lock longer than its lease; it is given to the next");
        if let GivenBack::ToRelease(tenure) = self.pass_or_end(inner, Arc::clone(tenure), now) {
            self.desk.release_in_background(tenure.name.clone(), tenure.token);
        }
    }

    /// The tenure can no longer be trusted: whoever still waits has to be sought for again.
    pub(super) fn tenure_is_lost(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let mut inner = self.inner();
        if !inner.is_tenure(tenure) {
            return;
        }
        if let Some(holder) = inner.holder.take() {
            holder.take_away();
        }
        inner.tenure = None;
        if inner.waiters.iter().any(|waiter| !waiter.outcome.is_closed()) {
            inner.is_seeking = true;
            self.desk.spawn(hand_off::seek(Arc::clone(self), None, true));
        } else {
            inner.waiters.clear();
            self.close_if_empty(inner);
        }
    }

    /// Asks the store now and then, beside the passing, whether others wait; and for more fences.
    fn look_around_if_due(self: &Arc<Self>, inner: &mut Inner, tenure: &Arc<Tenure>, now: Moment) {
        let state = &mut inner.cohort;
        let looked_long_ago = state.looked_at.is_none_or(|looked| now.since(looked) >= self.cohort.time);
        let needs_fences = state.reserve.is_none() && state.passes_since_look >= LOOK_AFTER_PASSES;
        if state.others_wait || state.is_looking || !(needs_fences || looked_long_ago) {
            return;
        }
        state.is_looking = true;
        let (lease, fences) = (tenure.lease_to_ask_for(now), FENCE_BLOCK);
        let renewal = Renewal { mutex: self.name.clone(), token: tenure.token, lease, fences };
        self.desk.spawn(look_around(Arc::clone(self), Arc::clone(tenure), renewal));
    }

    fn has_looked(self: &Arc<Self>, tenure: &Arc<Tenure>, answer: Option<(Option<Fences>, bool)>) {
        let now = self.desk.clock.monotonic();
        let mut inner = self.inner();
        if !inner.is_tenure(tenure) {
            return;
        }
        inner.cohort.is_looking = false;
        inner.cohort.looked_at = Some(now);
        inner.cohort.passes_since_look = 0;
        if let Some((fences, others_wait)) = answer {
            inner.cohort.others_wait = others_wait;
            if let Some(fences) = fences {
                inner.cohort.add(fences);
                inner.highest_fence = fences.last;
            }
        }
        if std::mem::take(&mut inner.cohort.waits_for_fences)
            && let GivenBack::ToRelease(tenure) = self.pass_or_end(inner, Arc::clone(tenure), now)
        {
            self.desk.release_in_background(tenure.name.clone(), tenure.token);
        }
    }
}

async fn look_around(room: Arc<Room>, tenure: Arc<Tenure>, renewal: Renewal) {
    let sent_at = room.desk.clock.monotonic();
    tenure.is_about_to_be_renewed(sent_at, renewal.lease);
    match room.desk.store.mutex_renew(std::slice::from_ref(&renewal)).await.as_deref() {
        Ok([Renew::Renewed { fences, others_wait }]) => {
            tenure.extend(sent_at, renewal.lease);
            room.has_looked(&tenure, Some((*fences, *others_wait)));
        }
        Ok(_) => tenure.lose("the store gave it to somebody else, or forgot it"),
        // The keeper asks again; until then the fences that are left are the bound.
        Err(_) => {
            room.desk.keeper.schedule(&tenure, room.desk.clock.monotonic());
            room.has_looked(&tenure, None);
        }
    }
}

impl Inner {
    /// Whether the tenure may go on with the next waiter of this process.
    fn may_pass(&self, tenure: &Tenure, cohort: Cohort, now: Moment) -> bool {
        let state = &self.cohort;
        let is_long = state.began.is_some_and(|began| now.since(began) >= cohort.time);
        let budget_is_spent = state.others_wait && (state.passes >= cohort.passes || is_long);
        let Some(next) = self.waiters.front() else { return false };
        let has_time = tenure.has_time_for(next.terms.lease, now);
        !budget_is_spent && has_time
    }

    fn is_tenure(&self, tenure: &Arc<Tenure>) -> bool {
        self.tenure.as_ref().is_some_and(|current| Arc::ptr_eq(current, tenure))
    }

    /// Gives the lock to the first waiter who is still there, if there is a fence for it.
    fn pass_to_next(&mut self, tenure: &Arc<Tenure>, now: Moment) -> bool {
        let Some(fence) = self.cohort.fence() else { return false };
        while let Some(waiter) = self.waiters.pop_front() {
            if waiter.outcome.is_closed() {
                self.gone_away = self.gone_away.saturating_sub(1);
                continue;
            }
            let until = tenure.serve(waiter.terms, now);
            let hold = Hold::new(tenure, fence, now, until, waiter.owner);
            match waiter.outcome.send(Ok(MutexGuard::new(&hold))) {
                Ok(()) => {
                    tenure.desk.metrics.wait.record(now.since(waiter.since).as_secs_f64());
                    self.holder = Some(hold);
                    self.cohort.fences.0 += 1;
                    self.cohort.passes += 1;
                    self.cohort.passes_since_look += 1;
                    return true;
                }
                // It went away just now. Its guard must not give back what it never had.
                Err(Ok(guard)) => guard.disarm(),
                Err(Err(_)) => {}
            }
        }
        false
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
