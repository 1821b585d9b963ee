//! A store that breaks on demand, around any other.
//!
//! **Promise:** while broken, every call meets exactly the [`Break`] that was asked for; healed, it is the store inside,
//! with everything that it has done meanwhile. News are broken for themselves: see [`Deafness`].

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    About, Acquire, Answer, Attempt, CouponOpen, CouponStatus, CouponTerms, EarId, Fence, Hearing, Issue,
    Listener, MutexStatus, News, Release, Renew, Renewal, Store, Token,
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

/// How the news of a store can get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deafness {
    /// Whoever begins to listen from now on never hears anything, and knows it: as when the subscription is forbidden.
    Known,
    /// Whoever listens is told that it hears, and hears nothing: as when messages get lost on their way.
    Unknown,
}

/// See the [module](self).
pub struct BreakableStore {
    inner: Arc<dyn Store>,
    all: watch::Sender<Option<Break>>,
    next: Mutex<Vec<Break>>,
    calls: AtomicU64,
    is_known_to_be_deaf: AtomicBool,
    loses_news: Arc<AtomicBool>,
}

impl BreakableStore {
    /// Wraps `inner`, whole for now.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            all: watch::Sender::new(None),
            next: Mutex::default(),
            calls: AtomicU64::new(0),
            is_known_to_be_deaf: AtomicBool::new(false),
            loses_news: Arc::default(),
        }
    }

    /// Breaks every call from now on until [`heal`](Self::heal).
    pub fn break_all(&self, how: Break) {
        self.all.send_replace(Some(how));
    }

    /// Breaks only the next call (the ones after it, if called several times).
    pub fn break_next(&self, how: Break) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).insert(0, how);
    }

    /// Lets no news through from now on until [`heal`](Self::heal). Calls are not concerned.
    pub fn deafen(&self, how: Deafness) {
        match how {
            Deafness::Known => self.is_known_to_be_deaf.store(true, Ordering::SeqCst),
            Deafness::Unknown => self.loses_news.store(true, Ordering::SeqCst),
        }
    }

    /// Makes it whole; calls that hang go on. Who began to listen during a [known](Deafness::Known) deafness stays deaf.
    pub fn heal(&self) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.is_known_to_be_deaf.store(false, Ordering::SeqCst);
        self.loses_news.store(false, Ordering::SeqCst);
        self.all.send_replace(None);
    }

    /// How many calls have met what was in force when they were made, the whole ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Lets `call` meet what is in force.
    fn meet<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let in_force = next.or(*self.all.borrow());
            self.calls.fetch_add(1, Ordering::SeqCst);
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

    /// News get lost when the store is [deafened](BreakableStore::deafen) and not when its calls are broken: whoever waits
    /// for them must cope.
    fn listen(&self, ear: EarId, listener: Arc<dyn Listener>) -> Hearing {
        if self.is_known_to_be_deaf.load(Ordering::SeqCst) {
            let (tells, is_listening) = watch::channel(false);
            // Kept, because the end of what tells would look like the end of the store.
            return Hearing::new(is_listening, tells);
        }
        let loses_news = Arc::clone(&self.loses_news);
        self.inner.listen(ear, Arc::new(Muffled { listener, loses_news }))
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

/// A listener that hears only what is not lost.
struct Muffled {
    listener: Arc<dyn Listener>,
    loses_news: Arc<AtomicBool>,
}

impl Listener for Muffled {
    fn hear(&self, news: News) {
        // That it hears, it is told: this is what makes it believe so.
        if news == News::Listening || !self.loses_news.load(Ordering::SeqCst) {
            self.listener.hear(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::store::memory::MemoryStore;
    use crate::store::{IfTaken, Lease};

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

    /// Writes down what it hears.
    #[derive(Default)]
    struct Heard(Mutex<Vec<News>>);

    impl Listener for Heard {
        fn hear(&self, news: News) {
            self.0.lock().unwrap().push(news);
        }
    }

    /// Frees a mutex that is watched.
    async fn something_is_told(store: &BreakableStore) {
        let (mutex, holder) = (Name::new("mutex", "m").unwrap(), Token::random());
        let attempt = Attempt::new(holder, Lease::new(Duration::from_secs(1)).unwrap());
        store.mutex_acquire(&mutex, &Attempt { if_taken: IfTaken::Watch, ..attempt }).await.unwrap();
        store.mutex_release(&mutex, &holder).await.unwrap();
    }

    #[tokio::test]
    async fn a_store_that_is_known_to_be_deaf_never_listens() {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        store.deafen(Deafness::Known);
        let heard = Arc::new(Heard::default());
        let hearing = store.listen(EarId::random(), Arc::clone(&heard) as Arc<dyn Listener>);
        assert!(!hearing.is_listening());
        something_is_told(&store).await;
        assert_eq!(*heard.0.lock().unwrap(), []);
    }

    #[tokio::test]
    async fn a_store_that_loses_news_seems_to_listen() {
        let store = BreakableStore::new(Arc::new(MemoryStore::new(Clock::fake())));
        let heard = Arc::new(Heard::default());
        store.deafen(Deafness::Unknown);
        let hearing = store.listen(EarId::random(), Arc::clone(&heard) as Arc<dyn Listener>);
        assert!(hearing.is_listening());
        something_is_told(&store).await;
        assert_eq!(*heard.0.lock().unwrap(), [News::Listening]);
        store.heal();
        something_is_told(&store).await;
        assert_eq!(heard.0.lock().unwrap().len(), 2, "healed, and still deaf");
    }
}
