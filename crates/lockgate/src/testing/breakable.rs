//! A store that breaks on demand, around any other.
//!
//! **Promise:** while broken, every call meets exactly the [`Break`] that was asked for; healed, it is the store inside,
//! with everything that it has done meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    About, Acquire, Answer, Attempt, CouponOpen, CouponStatus, CouponTerms, EarId, Fence, Hearing, Issue,
    Listener, MutexStatus, Release, Renew, Renewal, Store, Token,
};

/// How a store can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Calls do not reach the store: they end with [`StoreError::Unavailable`], and nothing happens.
    Refuse,
    /// The store itself refuses, and would again: calls end with [`StoreError::Refused`], and nothing happens.
    Reject,
    /// Calls reach the store and happen, and their answers are lost: they end with [`StoreError::UnknownOutcome`].
    LoseAnswer,
    /// Calls wait until the store is healed, and happen then.
    Hang,
}

/// See the [module](self).
pub struct BreakableStore {
    inner: Arc<dyn Store>,
    all: watch::Sender<Option<Break>>,
    next: Mutex<Vec<Break>>,
}

impl BreakableStore {
    /// Wraps `inner`, whole for now.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, all: watch::Sender::new(None), next: Mutex::default() }
    }

    /// Breaks every call from now on until [`heal`](Self::heal).
    pub fn break_all(&self, how: Break) {
        self.all.send_replace(Some(how));
    }

    /// Breaks only the next call (the ones after it, if called several times).
    pub fn break_next(&self, how: Break) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).insert(0, how);
    }

    /// Makes it whole; calls that hang go on.
    pub fn heal(&self) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.all.send_replace(None);
    }

    /// Lets `call` meet what is in force.
    fn meet<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let in_force = next.or(*self.all.borrow());
            match in_force {
                None => call.await,
                Some(Break::Refuse) => Err(StoreError::Unavailable("broken on purpose".into())),
                Some(Break::Reject) => Err(StoreError::Refused("broken on purpose".into())),
                Some(Break::LoseAnswer) => {
                    call.await?;
                    Err(StoreError::UnknownOutcome("broken on purpose".into()))
                }
                Some(Break::Hang) => {
                    // The sender lives in `self`, so waiting cannot fail.
                    let _ = self.all.subscribe().wait_for(Option::is_none).await;
                    call.await
                }
            }
        })
    }
}

impl fmt::Debug for BreakableStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakableStore")
            .field("inner", &self.inner)
            .field("all", &*self.all.borrow())
            .finish()
    }
}

impl Store for BreakableStore {
    fn mutex_acquire<'a>(&'a self, mutex: &'a Name, attempt: &'a Attempt) -> Answer<'a, Acquire> {
        self.meet(self.inner.mutex_acquire(mutex, attempt))
    }

    fn mutex_renew<'a>(&'a self, renewals: &'a [Renewal]) -> Answer<'a, Vec<Renew>> {
        self.meet(self.inner.mutex_renew(renewals))
    }

    fn mutex_release<'a>(&'a self, mutex: &'a Name, token: &'a Token) -> Answer<'a, Release> {
        self.meet(self.inner.mutex_release(mutex, token))
    }

    fn mutex_yield<'a>(
        &'a self,
        mutex: &'a Name,
        token: &'a Token,
        next: &'a Attempt,
    ) -> Answer<'a, Acquire> {
        self.meet(self.inner.mutex_yield(mutex, token, next))
    }

    fn mutex_read<'a>(&'a self, mutex: &'a Name) -> Answer<'a, MutexStatus> {
        self.meet(self.inner.mutex_read(mutex))
    }

    fn mutex_break<'a>(&'a self, mutex: &'a Name) -> Answer<'a, Fence> {
        self.meet(self.inner.mutex_break(mutex))
    }

    /// News are never broken: they may get lost anyway, and whoever waits for them must cope.
    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        self.inner.listen(ear, listener)
    }

    fn coupon_open<'a>(&'a self, coupon: &'a Name, terms: &'a CouponTerms) -> Answer<'a, CouponOpen> {
        self.meet(self.inner.coupon_open(coupon, terms))
    }

    fn coupon_issue<'a>(&'a self, coupon: &'a Name, users: &'a [Name]) -> Answer<'a, Vec<Issue>> {
        self.meet(self.inner.coupon_issue(coupon, users))
    }

    fn coupon_read<'a>(&'a self, coupon: &'a Name) -> Answer<'a, Option<CouponStatus>> {
        self.meet(self.inner.coupon_read(coupon))
    }

    fn about(&self) -> Answer<'_, About> {
        self.meet(self.inner.about())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::memory::MemoryStore;

    fn broken(how: Break) -> (BreakableStore, Name, [Name; 1]) {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        store.break_all(how);
        (store, Name::new("coupon", "c").unwrap(), [Name::new("user", "u").unwrap()])
    }

    #[tokio::test]
    async fn a_refused_call_does_not_happen() {
        let (store, coupon, _) = broken(Break::Refuse);
        let refused = store.coupon_open(&coupon, &CouponTerms::new(1).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
        store.heal();
        assert_eq!(store.coupon_read(&coupon).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_call_whose_answer_is_lost_has_happened() {
        let (store, coupon, _) = broken(Break::LoseAnswer);
        let lost = store.coupon_open(&coupon, &CouponTerms::new(1).unwrap()).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))));
        store.heal();
        assert!(store.coupon_read(&coupon).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_hanging_call_happens_when_the_store_is_healed() {
        let (store, coupon, _) = broken(Break::Hang);
        let terms = CouponTerms::new(1).unwrap();
        let mut call = store.coupon_open(&coupon, &terms);
        tokio::select! {
            biased;
            _ = &mut call => panic!("it did not hang"),
            () = tokio::task::yield_now() => {}
        }
        store.heal();
        assert!(matches!(call.await, Ok(CouponOpen::Created(_))));
    }

    #[tokio::test]
    async fn only_the_next_call_can_be_broken() {
        let (store, coupon, users) = broken(Break::Refuse);
        store.heal();
        store.break_next(Break::Refuse);
        store.break_next(Break::LoseAnswer);
        assert!(matches!(store.coupon_issue(&coupon, &users).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(store.coupon_issue(&coupon, &users).await, Err(StoreError::UnknownOutcome(_))));
        assert_eq!(store.coupon_issue(&coupon, &users).await.unwrap(), [Issue::Unknown]);
    }
}
