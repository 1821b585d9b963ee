//! The waiters of one process for one lock, and what the process has of it.
//!
//! **Promise:** in a room the first to come is the first to be served. What is given back goes to the next waiter here,
//! under the same tenure and (if it is exclusive) with a higher fence, as long as the cohort's bounds allow it; otherwise to
//! the next process, and the room queues again. A waiter that goes away is passed over, and one that goes away at the moment
//! when it is given the lock passes it on, because what it is given is a guard.
//!
//! | `stays` | `is_seeking` | means |
//! | --- | --- | --- |
//! | none | no | empty; leaves the desk |
//! | none | yes | waits for the store, for the first of `waiters` |
//! | one that is all of the lock | no | held here; whoever waits gets it from its holder |
//! | others | yes, if somebody waits | held here, and more of it is asked for |
//!
//! Whatever changes, [`Room::settle`] brings it in order: whoever can be served is, what nobody uses ends, and if somebody
//! waits who cannot hope for what is here, the store is asked.
//!
//! A room of its own, known to nobody else, is what a lock without cohort has: then every waiter has its own place in
//! the store's queue, and it is first come, first served between processes too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard as StdGuard, PoisonError};

use tokio::sync::oneshot;

use super::desk::Desk;
use super::error::LockError;
use super::guard::{Guard, Hold};
use super::hand_off;
use super::keeper::Renewals;
use super::news::{Expecting, Waker};
use super::owner::Owner;
use super::readers;
use super::stay::{CohortState, Stay, Waiter, is_exclusive};
use super::tenure::Tenure;
use super::terms::{Cohort, Terms};
use crate::clock::Moment;
use crate::error::InvalidInput;
use crate::store::{FENCE_BLOCK, Fence, Fences, LoanMark, Lock, Renew, Share, Token};

/// What a waiter is told in the end.
pub(super) type Outcome = Result<Guard, LockError>;

/// See the [module](self).
pub(super) struct Room {
    pub(super) desk: Arc<Desk>,
    pub(super) lock: Lock,
    pub(super) cohort: Cohort,
    /// What its tokens are marked with.
    mark: Option<LoanMark>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiters: VecDeque<Waiter>,
    /// How many of `waiters` have gone away.
    gone_away: usize,
    /// What this process has of the lock. More than one only of a lock that can be shared.
    stays: Vec<Stay>,
    is_seeking: bool,
    /// What is sought, and what wakes the search, to see that nobody wants that any more.
    search: Option<(Share, Waker)>,
    /// Nobody may come in any more: another room has taken the name.
    is_closed: bool,
    highest_fence: Fence,
}

/// What the store has given.
pub(super) struct Grant {
    pub(super) expecting: Expecting,
    pub(super) share: Share,
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

/// Whether a search should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Still,
    /// The first one who waits wants more than what is sought, or less, and would wait too long for it.
    SomethingElse,
    NoLonger,
}

impl Room {
    pub(super) fn shared(desk: &Arc<Desk>, lock: &Lock, cohort: Cohort) -> Arc<Self> {
        Self::new(desk, lock, cohort, None)
    }

    fn new(desk: &Arc<Desk>, lock: &Lock, cohort: Cohort, mark: Option<LoanMark>) -> Arc<Self> {
        Arc::new(Self { desk: Arc::clone(desk), lock: lock.clone(), cohort, mark, inner: Mutex::default() })
    }

    /// A room for one waiter.
    pub(super) fn private(desk: &Arc<Desk>, lock: &Lock, mark: Option<LoanMark>) -> Arc<Self> {
        Self::new(desk, lock, Cohort { passes: 0, time: std::time::Duration::ZERO }, mark)
    }

    /// A new token, to ask for the lock with.
    pub(super) fn token(&self) -> Token {
        match self.mark {
            Some(mark) => Token::marked_for_ear(self.desk.ear, mark),
            None => Token::for_ear(self.desk.ear),
        }
    }

    fn inner(&self) -> StdGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_of_a_mutex(&self) -> bool {
        matches!(self.lock, Lock::Mutex(_))
    }

    /// Stands in line. The second says whether the caller has to [seek](hand_off::seek) for the room. Nothing when the
    /// room is closed: there is another one by now.
    pub(super) fn enter(
        self: &Arc<Self>,
        share: Share,
        terms: Terms,
        owner: Option<Owner>,
    ) -> Option<(oneshot::Receiver<Outcome>, bool)> {
        let (outcome, receiver) = oneshot::channel();
        let is_exclusive = is_exclusive(&self.lock, share);
        let since = self.desk.clock.monotonic();
        let mut inner = self.inner();
        if inner.is_closed {
            return None;
        }
        inner.waiters.push_back(Waiter { share, is_exclusive, terms, owner, since, outcome });
        self.serve_waiters(&mut inner, since);
        let must_seek = inner.must_seek();
        inner.is_seeking |= must_seek;
        let is_served = inner.waiters.is_empty();
        drop(inner);
        if !must_seek && !is_served {
            self.desk.begin_to_listen();
        }
        Some((receiver, must_seek))
    }

    /// Stands in line as the first, and seeks by itself, if nobody is in this room. Then it has to
    /// [begin a tenure](Self::begin_tenure), or to say that it [asked in vain](Self::asked_in_vain).
    pub(super) fn enter_if_empty(
        &self,
        share: Share,
        terms: Terms,
        owner: Option<Owner>,
    ) -> Option<oneshot::Receiver<Outcome>> {
        let (outcome, receiver) = oneshot::channel();
        let (is_exclusive, since) = (is_exclusive(&self.lock, share), self.desk.clock.monotonic());
        let mut inner = self.inner();
        if inner.is_closed || inner.is_seeking || !inner.stays.is_empty() || !inner.waiters.is_empty() {
            return None;
        }
        inner.waiters.push_back(Waiter { share, is_exclusive, terms, owner, since, outcome });
        inner.is_seeking = true;
        Some(receiver)
    }

    /// Who sought for this room has gone. If others wait by now, they are sought for.
    pub(super) fn asked_in_vain(self: &Arc<Self>) {
        let mut inner = self.inner();
        inner.forget_those_who_left();
        if inner.waiters.is_empty() {
            return self.stop_seeking(inner);
        }
        drop(inner);
        self.desk.spawn(hand_off::seek(Arc::clone(self), None, true));
    }

    /// Takes what can be had of what this process has, without waiting: nothing when it cannot, or when others wait for it.
    pub(super) fn try_enter(
        self: &Arc<Self>,
        share: Share,
        terms: Terms,
        owner: Option<Owner>,
    ) -> Option<Guard> {
        let (outcome, mut receiver) = oneshot::channel();
        let is_exclusive = is_exclusive(&self.lock, share);
        let since = self.desk.clock.monotonic();
        let mut inner = self.inner();
        inner.forget_those_who_left();
        if inner.is_closed || !inner.waiters.is_empty() {
            return None;
        }
        inner.waiters.push_back(Waiter { share, is_exclusive, terms, owner, since, outcome });
        self.serve_waiters(&mut inner, since);
        inner.waiters.clear();
        drop(inner);
        receiver.try_recv().ok()?.ok()
    }

    /// Whether nobody else can have anything of it.
    pub(super) fn has_all(&self) -> bool {
        self.inner().stays.iter().any(|stay| stay.is_all)
    }

    /// Whether somebody of this process waits for it.
    pub(super) fn is_waited_for(&self) -> bool {
        let mut inner = self.inner();
        inner.forget_those_who_left();
        !inner.waiters.is_empty()
    }

    /// A waiter has gone away.
    pub(super) fn one_has_gone_away(self: &Arc<Self>) {
        let mut inner = self.inner();
        inner.gone_away += 1;
        if inner.gone_away * 2 >= inner.waiters.len() || !self.is_of_a_mutex() {
            inner.forget_those_who_left();
        }
        inner.wake_a_search_that_is_in_vain();
        // Those behind it may have waited for it alone.
        if !self.is_of_a_mutex() && !inner.waiters.is_empty() {
            let ended = self.settle(inner, self.desk.clock.monotonic());
            self.release_ended(ended);
        }
    }

    /// How many wait without a place of their own in the store: another one of this room holds the lock, or asks for it.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn standing(&self) -> usize {
        let inner = self.inner();
        let waiting = inner.waiters.iter().filter(|waiter| !waiter.has_left()).count();
        waiting.saturating_sub(usize::from(inner.is_seeking))
    }

    /// What the first waiter asks for, and on what terms. Nothing: nobody waits, and nobody seeks any more.
    pub(super) fn wanted(&self, search: Waker) -> Option<(Share, Terms)> {
        let mut inner = self.inner();
        inner.forget_those_who_left();
        let Some(first) = inner.waiters.front() else {
            self.stop_seeking(inner);
            return None;
        };
        let wanted = (first.share, first.terms);
        inner.search = Some((wanted.0, search));
        Some(wanted)
    }

    /// Whether there is somebody to seek so much for. If not, nobody seeks any more.
    pub(super) fn is_still_wanted(&self, share: Share) -> Wanted {
        let mut inner = self.inner();
        inner.forget_those_who_left();
        match inner.waiters.front() {
            Some(first) if first.share != share => Wanted::SomethingElse,
            Some(_) => Wanted::Still,
            None => {
                self.stop_seeking(inner);
                Wanted::NoLonger
            }
        }
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
        if inner.stays.is_empty() && !inner.is_seeking && inner.waiters.is_empty() {
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
        inner.gone_away = 0;
        self.stop_seeking(inner);
        for waiter in waiters {
            // Those who have gone away need not be told.
            let _ = waiter.outcome.send(Err(why.clone()));
        }
    }

    /// There are only so many permits: those who want more are told.
    pub(super) fn refuse_who_wants_more_than(&self, total: u32) {
        let mut inner = self.inner();
        let (stay, refused) =
            std::mem::take(&mut inner.waiters).into_iter().partition(|waiter| waiter.share.permits <= total);
        inner.waiters = stay;
        drop(inner);
        let refused: VecDeque<Waiter> = refused;
        for waiter in refused {
            let why = beyond(&self.lock, waiter.share.permits, total);
            let _ = waiter.outcome.send(Err(why.into()));
        }
    }

    /// The gate is shutting down.
    pub(super) fn send_waiters_home(&self) {
        let mut inner = self.inner();
        for waiter in inner.waiters.drain(..) {
            let _ = waiter.outcome.send(Err(LockError::ShuttingDown));
        }
        inner.wake_a_search_that_is_in_vain();
    }

    /// The store has given it to this room: the first waiter gets it.
    pub(super) fn begin_tenure(self: &Arc<Self>, grant: Grant) {
        let now = self.desk.clock.monotonic();
        let tenure = Tenure::begin(self, grant.expecting, grant.trusted_until, grant.is_claim);
        let cohort = CohortState::begin(now, grant.fences, grant.others_wait);
        let mut inner = self.inner();
        inner.is_seeking = false;
        inner.search = None;
        inner.highest_fence = inner.highest_fence.max(grant.fences.last);
        inner.stays.push(Stay::begin(tenure, grant.share, cohort));
        let ended = self.settle(inner, now);
        self.release_ended(ended);
    }

    /// A holder has no more use for the lock.
    pub(super) fn give_back(self: &Arc<Self>, hold: &Arc<Hold>) -> GivenBack {
        let now = self.desk.clock.monotonic();
        let tenure = hold.tenure();
        let mut inner = self.inner();
        if !inner.stay_of(tenure).is_some_and(|stay| stay.dismiss(hold)) {
            return GivenBack::WasLost;
        }
        if !tenure.is_trusted(now) {
            drop(inner);
            tenure.lose("the lease ran out");
            return GivenBack::WasLost;
        }
        match self.settle(inner, now) {
            Some(ended) => GivenBack::ToRelease(ended),
            None => GivenBack::PassedOn,
        }
    }

    /// Brings everything in order after a change. Returns what has ended and is to be released in the store.
    fn settle(self: &Arc<Self>, mut inner: StdGuard<'_, Inner>, now: Moment) -> Option<Arc<Tenure>> {
        self.serve_waiters(&mut inner, now);
        let ended = inner.take_what_is_over(self.cohort, now);
        let must_seek = inner.must_seek();
        inner.is_seeking |= must_seek;
        if must_seek {
            drop(inner);
        } else {
            inner.wake_a_search_that_is_in_vain();
            self.close_if_empty(inner);
        }
        if let Some(ended) = &ended {
            ended.end();
        }
        if !must_seek {
            return ended;
        }
        // A mutex is given back and asked for again in one step.
        let (yielded, ended) = if self.is_of_a_mutex() { (ended, None) } else { (None, ended) };
        let yielded = yielded.map(|tenure| tenure.token);
        self.desk.spawn(hand_off::seek(Arc::clone(self), yielded, true));
        ended
    }

    /// Serves who can be served, in their order, and sees to what that entails.
    fn serve_waiters(self: &Arc<Self>, inner: &mut Inner, now: Moment) {
        let served = inner.serve_waiters(self.cohort, now);
        self.desk.metrics.of(&self.lock).passed_locally.increment(served.under_an_old_tenure);
        if !served.anybody {
            return;
        }
        // Who has just got it from the store knows how things stand there.
        let looked_at = if served.under_an_old_tenure > 0 { &mut inner.stays[..] } else { &mut [] };
        for stay in looked_at {
            if stay.cohort.begins_to_look(self.cohort, now) {
                let fences = if stay.is_all { FENCE_BLOCK } else { 0 };
                self.desk.spawn(look_around(Arc::clone(self), Arc::clone(&stay.tenure), now, fences));
            }
        }
        self.look_after_readers(inner, now);
    }

    fn look_after_readers(self: &Arc<Self>, inner: &mut Inner, now: Moment) {
        for stay in &mut inner.stays {
            if !stay.has_only_readers() {
                stay.readers_since = None;
                continue;
            }
            stay.readers_since.get_or_insert(now);
            if !std::mem::replace(&mut stay.is_watched, true) {
                self.desk.spawn(readers::look_after(Arc::clone(self), Arc::clone(&stay.tenure)));
            }
        }
    }

    /// Since when only readers are in what this process has as a writer. Nothing: it is no longer so, and nobody looks
    /// after them any more.
    pub(super) fn readers_since(&self, tenure: &Arc<Tenure>) -> Option<Moment> {
        let mut inner = self.inner();
        let stay = inner.stay_of(tenure)?;
        if !stay.has_only_readers() {
            stay.readers_since = None;
        }
        stay.is_watched = stay.readers_since.is_some();
        stay.readers_since
    }

    /// What this process has as a writer is only a reader's from now on, if only readers have been in it since then; whether
    /// it is.
    pub(super) fn become_a_readers(self: &Arc<Self>, tenure: &Arc<Tenure>, since: Moment) -> bool {
        let mut inner = self.inner();
        let Some(stay) = inner.stay_of(tenure) else { return false };
        if !stay.has_only_readers() || stay.readers_since != Some(since) {
            return false;
        }
        stay.become_a_readers();
        let ended = self.settle(inner, self.desk.clock.monotonic());
        self.release_ended(ended);
        true
    }

    /// A writer goes on as a reader; whether it was one until now. The store does not know it yet.
    pub(super) fn downgrade(self: &Arc<Self>, hold: &Arc<Hold>) -> bool {
        let mut inner = self.inner();
        if !inner.stay_of(hold.tenure()).is_some_and(|stay| stay.downgrade(hold)) {
            return false;
        }
        let ended = self.settle(inner, self.desk.clock.monotonic());
        self.release_ended(ended);
        true
    }

    /// A holder wants it no longer than that, from now on.
    pub(super) fn end_at(&self, hold: &Arc<Hold>, until: Moment) {
        if let Some(stay) = self.inner().stay_of(hold.tenure()) {
            stay.end_at(hold, until);
        }
    }

    fn release_ended(&self, ended: Option<Arc<Tenure>>) {
        if let Some(tenure) = ended {
            self.desk.release_in_background(tenure.lock.clone(), tenure.token);
        }
    }

    /// A holder's lease is over, that of the tenure is not: the next one gets it.
    pub(super) fn take_from_holder(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let now = self.desk.clock.monotonic();
        let mut inner = self.inner();
        let Some(stay) = inner.stay_of(tenure) else { return };
        // Another one may have it by now, whose lease is not over.
        let taken = stay.take_from_those_whose_time_is_over(now);
        if taken == 0 {
            return tenure.look_in_time(now);
        }
        self.desk.metrics.of(&self.lock).lost.increment(u64::try_from(taken).unwrap_or(u64::MAX));
        tracing::warn!(name = %self.lock.name(), "a holder kept the lock longer than its lease; it is given to the next");
        let ended = self.settle(inner, now);
        if ended.is_none() {
            tenure.look_in_time(now);
        }
        self.release_ended(ended);
    }

    /// The tenure can no longer be trusted: whoever still waits has to be sought for again.
    pub(super) fn tenure_is_lost(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let mut inner = self.inner();
        let Some(place) = inner.stays.iter().position(|stay| Arc::ptr_eq(&stay.tenure, tenure)) else {
            return;
        };
        inner.stays.swap_remove(place).take_from_all();
        let ended = self.settle(inner, self.desk.clock.monotonic());
        self.release_ended(ended);
    }

    fn has_looked(self: &Arc<Self>, tenure: &Arc<Tenure>, answer: Option<(Option<Fences>, bool)>) {
        let now = self.desk.clock.monotonic();
        let mut inner = self.inner();
        let Some(stay) = inner.stay_of(tenure) else { return };
        stay.cohort.has_looked(now, answer);
        let was_waited_for = std::mem::take(&mut stay.cohort.waits_for_fences);
        if let Some((Some(fences), _)) = answer {
            inner.highest_fence = inner.highest_fence.max(fences.last);
        }
        if was_waited_for {
            let ended = self.settle(inner, now);
            self.release_ended(ended);
        }
    }
}

/// Asks the store, beside the passing, whether others wait; and for more fences.
async fn look_around(room: Arc<Room>, tenure: Arc<Tenure>, now: Moment, fences: u64) {
    let lease = tenure.lease_to_ask_for(now);
    let sent_at = room.desk.clock.monotonic();
    tenure.is_about_to_be_renewed(sent_at, lease);
    match Renewals::one(&tenure, lease, fences).send(&room.desk).await.as_deref() {
        Ok([Renew::Renewed { fences, others_wait }]) => {
            tenure.extend(sent_at, lease);
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

/// Why so many permits can never be had.
pub(super) fn beyond(lock: &Lock, wanted: u32, total: u32) -> InvalidInput {
    let problem = format!(
        "{wanted} of {:?} can never be had, there are {total}; ask for fewer, or raise their number",
        lock.name().as_str()
    );
    InvalidInput::new("permits", problem)
}

/// How serving went.
#[derive(Default)]
struct Served {
    anybody: bool,
    under_an_old_tenure: u64,
}

impl Inner {
    fn forget_those_who_left(&mut self) {
        self.waiters.retain(|waiter| !waiter.has_left());
        self.gone_away = 0;
    }

    fn forget_those_who_left_the_front(&mut self) {
        while self.waiters.front().is_some_and(Waiter::has_left) {
            self.waiters.pop_front();
            self.gone_away = self.gone_away.saturating_sub(1);
        }
    }

    fn stay_of(&mut self, tenure: &Arc<Tenure>) -> Option<&mut Stay> {
        self.stays.iter_mut().find(|stay| Arc::ptr_eq(&stay.tenure, tenure))
    }

    fn serve_waiters(&mut self, bounds: Cohort, now: Moment) -> Served {
        let mut served = Served::default();
        loop {
            self.forget_those_who_left_the_front();
            let Some(first) = self.waiters.front() else { return served };
            let able = self.stays.iter_mut().find(|stay| stay.can_serve(first, bounds, now));
            let Some(stay) = able else { return served };
            let is_fresh = stay.is_fresh();
            let Some(first) = self.waiters.pop_front() else { return served };
            if stay.serve(first, now) {
                served.anybody = true;
                served.under_an_old_tenure += u64::from(!is_fresh);
            }
        }
    }

    fn wake_a_search_that_is_in_vain(&self) {
        if let Some((sought, search)) = &self.search
            && self.waiters.front().is_none_or(|first| first.share != *sought)
        {
            search.wake();
        }
    }

    /// Takes out a tenure under which nobody holds anything and nobody is about to.
    fn take_what_is_over(&mut self, bounds: Cohort, now: Moment) -> Option<Arc<Tenure>> {
        let first = self.waiters.front();
        let over = self.stays.iter_mut().position(|stay| stay.is_over(first, bounds, now))?;
        Some(self.stays.swap_remove(over).tenure)
    }

    /// Whether the store has to be asked: somebody waits, nobody asks, and what is here will not do.
    fn must_seek(&self) -> bool {
        !self.is_seeking
            && !self.stays.iter().any(|stay| stay.is_all)
            && self.waiters.iter().any(|waiter| !waiter.has_left())
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
