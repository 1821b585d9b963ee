//! Who in this process waits for which news.
//!
//! **Promise:** whatever the store tells reaches whoever waits for it, or is put right: a grant that nobody waits for is
//! given back, and a wake-up for a waiter that has gone wakes the next one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::desk::Desk;
use crate::clock::{Moment, Timestamp};
use crate::key::Name;
use crate::store::{Fences, Listener, News, Token};

/// A grant that the store pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PushedGrant {
    pub(super) fences: Fences,
    pub(super) granted_at: Timestamp,
    pub(super) lease: Duration,
    pub(super) heard_at: Moment,
}

/// Everybody in this process who waits for news.
#[derive(Default)]
pub(super) struct Registry {
    expected: Mutex<HashMap<Token, Arc<Slot>>>,
    watchers: Mutex<HashMap<Name, VecDeque<Arc<Watcher>>>>,
    /// Those who wait for a latch, by its name: a bell for each latch, and how many hear it.
    latches: Mutex<HashMap<Name, (Arc<Notify>, usize)>>,
}

/// Where news for one token arrive.
#[derive(Default)]
struct Slot {
    grant: Mutex<Option<PushedGrant>>,
    wake: Notify,
}

impl Slot {
    fn receive(&self, grant: PushedGrant) {
        *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant);
        self.wake.notify_one();
    }
}

impl Registry {
    fn expected(&self) -> MutexGuard<'_, HashMap<Token, Arc<Slot>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<Name, VecDeque<Arc<Watcher>>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, news for `token` are expected.
    pub(super) fn expect(desk: &Arc<Desk>, token: Token) -> Expecting {
        let slot = Arc::new(Slot::default());
        desk.registry.expected().insert(token, Arc::clone(&slot));
        Expecting { desk: Arc::clone(desk), token, slot }
    }

    /// From now on, one `Freed` for `name` wakes this watcher, or one that came before it.
    pub(super) fn watch(desk: &Arc<Desk>, name: &Name) -> Watching {
        let watcher = Arc::new(Watcher::default());
        let mut watchers = desk.registry.watchers();
        watchers.entry(name.clone()).or_default().push_back(Arc::clone(&watcher));
        drop(watchers);
        Watching { desk: Arc::clone(desk), name: name.clone(), watcher }
    }

    fn wake_one_watcher(&self, name: &Name) {
        let mut watchers = self.watchers();
        let Some(queue) = watchers.get_mut(name) else { return };
        if let Some(watcher) = queue.pop_front() {
            watcher.is_woken.store(true, Ordering::Release);
            watcher.wake.notify_one();
        }
        if queue.is_empty() {
            watchers.remove(name);
        }
    }

    fn latches(&self) -> MutexGuard<'_, HashMap<Name, (Arc<Notify>, usize)>> {
        self.latches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, this one hears when the latch called `name` opens.
    pub(super) fn hear_latch(desk: &Arc<Desk>, name: &Name) -> HearsLatch {
        let mut latches = desk.registry.latches();
        let (bell, listeners) = latches.entry(name.clone()).or_default();
        *listeners += 1;
        HearsLatch { bell: Arc::clone(bell), desk: Arc::clone(desk), name: name.clone() }
    }

    fn wake_latch(&self, name: &Name) {
        if let Some((bell, _)) = self.latches().get(name) {
            bell.notify_waiters();
        }
    }

    /// Something may have been missed: everybody should ask.
    pub(super) fn wake_all(&self) {
        for (bell, _) in self.latches().values() {
            bell.notify_waiters();
        }
        for slot in self.expected().values() {
            slot.wake.notify_one();
        }
        for watcher in self.watchers().values().flatten() {
            watcher.wake.notify_one();
        }
    }

    /// How many entries there are: tokens, watchers (those of latches among them).
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn counts(&self) -> (usize, usize) {
        let of_latches: usize = self.latches().values().map(|(_, listeners)| *listeners).sum();
        (self.expected().len(), of_latches + self.watchers().values().map(VecDeque::len).sum::<usize>())
    }
}

/// News for one token are expected for as long as this lives.
pub(super) struct Expecting {
    desk: Arc<Desk>,
    token: Token,
    slot: Arc<Slot>,
}

impl Expecting {
    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// Takes the grant that was pushed, if one was.
    pub(super) fn take_grant(&self) -> Option<PushedGrant> {
        self.slot.grant.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// As if the store had pushed it.
    #[cfg(test)]
    pub(super) fn receive(&self, grant: PushedGrant) {
        self.slot.receive(grant);
    }

    /// Returns when there are news, or reason to ask, or at `latest`.
    pub(super) async fn news(&self, latest: Moment) {
        tokio::select! {
            () = self.slot.wake.notified() => {}
            () = self.desk.clock.sleep_until(latest) => {}
        }
    }

    /// A handle that makes [`Expecting::news`] return.
    pub(super) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.slot))
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        self.desk.registry.expected().remove(&self.token);
    }
}

/// Makes [`Expecting::news`] return.
#[derive(Clone)]
pub(super) struct Waker(Arc<Slot>);

impl Waker {
    pub(super) fn wake(&self) {
        self.0.wake.notify_one();
    }
}

/// One who wants to hear when a mutex is free.
#[derive(Default)]
struct Watcher {
    is_woken: AtomicBool,
    wake: Notify,
}

/// A place among the watchers of a mutex.
pub(super) struct Watching {
    desk: Arc<Desk>,
    name: Name,
    watcher: Arc<Watcher>,
}

impl Watching {
    /// Returns when woken, or at `latest`.
    pub(super) async fn woken(&self, latest: Moment) {
        tokio::select! {
            () = self.watcher.wake.notified() => {}
            () = self.desk.clock.sleep_until(latest) => {}
        }
    }

    /// The wake-up, if there was one, was not in vain.
    pub(super) fn has_been_of_use(&self) {
        self.watcher.is_woken.store(false, Ordering::Release);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watchers = self.desk.registry.watchers();
        if let Some(queue) = watchers.get_mut(&self.name) {
            queue.retain(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
            if queue.is_empty() {
                watchers.remove(&self.name);
            }
        }
        drop(watchers);
        // Woken, and went without trying: it is the next one's turn.
        if self.watcher.is_woken.load(Ordering::Acquire) {
            self.desk.registry.wake_one_watcher(&self.name);
        }
    }
}

/// Hears when a latch opens.
pub(super) struct HearsLatch {
    /// Rings for all at once.
    pub(super) bell: Arc<Notify>,
    desk: Arc<Desk>,
    name: Name,
}

impl Drop for HearsLatch {
    fn drop(&mut self) {
        let mut latches = self.desk.registry.latches();
        if let Some((_, listeners)) = latches.get_mut(&self.name) {
            *listeners -= 1;
            if *listeners == 0 {
                latches.remove(&self.name);
            }
        }
    }
}

/// Hears for a desk, without keeping it alive.
pub(super) struct DeskListener(pub(super) Weak<Desk>);

impl Listener for DeskListener {
    fn hear(&self, news: News) {
        let Some(desk) = self.0.upgrade() else { return };
        match news {
            News::Listening => desk.registry.wake_all(),
            News::Freed(name) => desk.registry.wake_one_watcher(&name),
            News::Opened(latch) => desk.registry.wake_latch(&latch),
            News::Ask(token) => {
                if let Some(slot) = desk.registry.expected().get(&token) {
                    slot.wake.notify_one();
                }
            }
            News::Granted { lock, token, fences, granted_at, lease } => {
                let slot = desk.registry.expected().get(&token).cloned();
                let Some(slot) = slot else {
                    // It waited, and went: the next one must not wait for it.
                    return desk.release_in_background(lock, token);
                };
                let heard_at = desk.clock.monotonic();
                let grant = PushedGrant { fences, granted_at, lease, heard_at };
                slot.receive(grant);
            }
        }
    }
}
