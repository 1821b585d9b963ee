//! The embedded store: decisions in this process's memory, no service needed.
//!
//! **Promise:** the same answers as Redis, for one process. **Not promised:** anything after the process ends; the
//! state is gone with it.
//!
//! One mutex around all of it: a step is a few hash look-ups, far shorter than handing work to another thread, and a
//! single order of all steps is what makes each of them atomic.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::news::SharedListener;
use super::{
    About, Acquire, Answer, Attempt, CouponOpen, CouponStatus, CouponTerms, EarId, Fence, Hearing, Issue,
    Listener, MutexStatus, News, Persistence, Release, Renew, Renewal, Store, Token,
};
use crate::clock::{Clock, Moment, Timestamp};
use crate::config::DEFAULT_CLAIM;
use crate::key::Name;

mod coupon;
mod mutex;

/// See the [module](self).
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    claim: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mutexes: mutex::Mutexes,
    coupons: HashMap<Name, coupon::Coupon>,
    ears: Ears,
}

/// Who hears.
#[derive(Default)]
struct Ears(HashMap<EarId, SharedListener>);

impl std::fmt::Debug for Ears {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The time of one step: read once, so that one step sees one time.
#[derive(Clone, Copy, Debug)]
struct Now {
    monotonic: Moment,
    wall: Timestamp,
}

/// The news of one step. They are told when the step is over, so that whoever hears them may take the next.
struct Post<'a> {
    ears: &'a HashMap<EarId, SharedListener>,
    /// For how long a waiter holds what was given to it before it has said a word.
    claim: Duration,
    to_tell: Vec<(SharedListener, News)>,
}

impl<'a> Post<'a> {
    fn new(ears: &'a HashMap<EarId, SharedListener>, claim: Duration) -> Self {
        Self { ears, claim, to_tell: Vec::new() }
    }

    fn listener(&self, ear: EarId) -> Option<SharedListener> {
        self.ears.get(&ear).cloned()
    }

    fn tell(&mut self, listener: SharedListener, news: News) {
        self.to_tell.push((listener, news));
    }

    fn tell_all(&mut self, news: &News) {
        self.to_tell.extend(self.ears.values().map(|listener| (Arc::clone(listener), news.clone())));
    }
}

impl MemoryStore {
    /// An empty store that goes by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_claim(clock, DEFAULT_CLAIM)
    }

    /// An empty store that goes by `clock`, with another [claim lease](crate::config::Config::claim).
    #[must_use]
    pub fn with_claim(clock: Clock, claim: Duration) -> Self {
        Self { clock, claim, state: Arc::default() }
    }

    /// Takes the state for one step.
    fn step(&self) -> (MutexGuard<'_, State>, Now) {
        let state = lock(&self.state);
        (state, Now { monotonic: self.clock.monotonic(), wall: self.clock.wall() })
    }

    /// One step on the mutexes; its news are told afterwards.
    fn mutex_step<T>(&self, step: impl FnOnce(&mut mutex::Mutexes, Now, &mut Post<'_>) -> T) -> T {
        let (mut state, now) = self.step();
        let State { mutexes, ears, .. } = &mut *state;
        let mut post = Post::new(&ears.0, self.claim);
        let answer = step(mutexes, now, &mut post);
        let to_tell = post.to_tell;
        drop(state);
        for (listener, news) in to_tell {
            listener.hear(news);
        }
        answer
    }
}

/// Every step leaves the state whole before anything in it could panic.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the ear out of the store when it is dropped.
struct Registration {
    state: Arc<Mutex<State>>,
    ear: EarId,
    /// Kept, because its end would look like the end of the store.
    _is_listening: watch::Sender<bool>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The listener is dropped outside: what it owns may come back to the store.
        let listener = lock(&self.state).ears.0.remove(&self.ear);
        drop(listener);
    }
}

impl Store for MemoryStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        Box::pin(async move {
            attempt.check()?;
            Ok(self.mutex_step(|mutexes, now, post| mutex::mutex_acquire(mutexes, now, post, mutex, attempt)))
        })
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        Box::pin(async move {
            super::mutex::check_renewals(renewals)?;
            Ok(self.mutex_step(|mutexes, now, _| mutex::mutex_renew(mutexes, now, renewals)))
        })
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(async move {
            Ok(self.mutex_step(|mutexes, now, post| mutex::mutex_release(mutexes, now, post, mutex, *token)))
        })
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        Box::pin(async move {
            next.check()?;
            Ok(self
                .mutex_step(|mutexes, now, post| mutex::mutex_yield(mutexes, now, post, mutex, *token, next)))
        })
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        Box::pin(async move { Ok(self.mutex_step(|mutexes, now, _| mutex::mutex_read(mutexes, now, mutex))) })
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        Box::pin(async move {
            Ok(self.mutex_step(|mutexes, now, post| mutex::mutex_break(mutexes, now, post, mutex)))
        })
    }

    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        let (tells, is_listening) = watch::channel(true);
        lock(&self.state).ears.0.insert(ear, Arc::clone(&listener));
        listener.hear(News::Listening);
        Hearing::new(is_listening, Registration { state: Arc::clone(&self.state), ear, _is_listening: tells })
    }

    fn coupon_open<'a>(&'a self, coupon: &'a Name, terms: &'a CouponTerms) -> Answer<'a, CouponOpen> {
        Box::pin(async move {
            let (mut state, now) = self.step();
            Ok(coupon::coupon_open(&mut state.coupons, now, coupon, terms))
        })
    }

    fn coupon_issue<'a>(&'a self, coupon: &'a Name, users: &'a [Name]) -> Answer<'a, Vec<Issue>> {
        Box::pin(async move {
            super::coupon::check_batch(users)?;
            let (mut state, now) = self.step();
            Ok(coupon::coupon_issue(&mut state.coupons, now, coupon, users))
        })
    }

    fn coupon_read<'a>(&'a self, coupon: &'a Name) -> Answer<'a, Option<CouponStatus>> {
        Box::pin(async move {
            let (state, now) = self.step();
            Ok(coupon::coupon_read(&state.coupons, now, coupon))
        })
    }

    fn about(&self) -> Answer<'_, About> {
        Box::pin(ready(Ok(About {
            description: "memory".into(),
            persistence: Persistence::None,
            run_ids: Vec::new(),
        })))
    }
}
