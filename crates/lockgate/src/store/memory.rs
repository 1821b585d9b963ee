//! The embedded store: decisions in this process's memory, no service needed.
//!
//! **Promise:** the same answers as Redis, for one process. **Not promised:** anything after the process ends; the
//! state is gone with it.
//!
//! One mutex around all of it: a step is a few hash look-ups, far shorter than handing work to another thread, and a
//! single order of all steps is what makes each of them atomic.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    About, Acquire, Answer, CouponOpen, CouponStatus, CouponTerms, Fence, Issue, Lease, Persistence, Release,
    Renew, Store, Token,
};
use crate::clock::{Clock, Moment, Timestamp};
use crate::key::Name;

mod coupon;
mod mutex;

/// See the [module](self).
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mutexes: mutex::Mutexes,
    coupons: HashMap<Name, coupon::Coupon>,
}

/// The time of one step: read once, so that one step sees one time.
#[derive(Clone, Copy, Debug)]
struct Now {
    monotonic: Moment,
    wall: Timestamp,
}

impl MemoryStore {
    /// An empty store that goes by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Takes the state for one step.
    fn step(&self) -> (MutexGuard<'_, State>, Now) {
        // Every step leaves the state whole before anything in it could panic.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state, Now { monotonic: self.clock.monotonic(), wall: self.clock.wall() })
    }
}

impl Store for MemoryStore {
    fn mutex_acquire<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        lease: Lease,
        fence_seen: Fence,
    ) -> Answer<'a, Acquire> {
        Box::pin(async move {
            super::mutex::check_fence_seen(fence_seen)?;
            let (mut state, now) = self.step();
            Ok(mutex::mutex_acquire(&mut state.mutexes, now, mutex, *token, lease, fence_seen))
        })
    }

    fn mutex_renew<'a>(&'a self, mutex: &'a Name, token: &'a Token, lease: Lease) -> Answer<'a, Renew> {
        Box::pin(async move {
            let (mut state, now) = self.step();
            Ok(mutex::mutex_renew(&mut state.mutexes, now, mutex, *token, lease))
        })
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        Box::pin(async move {
            let (mut state, now) = self.step();
            Ok(mutex::mutex_release(&mut state.mutexes, now, mutex, *token))
        })
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
