//! All that the locks of one gate share in this process.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::keeper::Keeper;
use super::metrics::AllMetrics;
use super::news::{DeskListener, Registry};
use super::owner::Owners;
use super::room::Room;
use super::terms::Cohort;
use crate::clock::Clock;
use crate::error::StoreError;
use crate::store::{Acquire, Attempt, EarId, Hearing, Lock, Release, Share, Store, Token};

/// How often a release that got no answer is tried again, by somebody who does not wait for it.
const RELEASE_ATTEMPTS: u32 = 5;

/// See the [module](self).
pub(crate) struct Desk {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) claim: Duration,
    pub(super) ear: EarId,
    pub(super) keeper: Arc<Keeper>,
    pub(super) registry: Registry,
    pub(super) owners: Owners,
    pub(super) metrics: AllMetrics,
    rooms: Mutex<HashMap<Lock, Arc<Room>>>,
    dropped: Dropped,
    hearing: OnceLock<Hearing>,
    handle: OnceLock<Handle>,
    background: TaskTracker,
    is_closing: AtomicBool,
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Clock, claim: Duration) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            claim,
            ear: EarId::random(),
            keeper: Arc::default(),
            registry: Registry::default(),
            owners: Owners::default(),
            metrics: AllMetrics::new(),
            rooms: Mutex::default(),
            dropped: Dropped::default(),
            hearing: OnceLock::new(),
            handle: OnceLock::new(),
            background: TaskTracker::new(),
            is_closing: AtomicBool::new(false),
        })
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<Lock, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called by every wait: it runs in a runtime, so that whatever has to go on without it can.
    pub(super) fn settle_in(self: &Arc<Self>) {
        if self.handle.get().is_none() {
            // Somebody else may have been faster, with the same runtime.
            let _ = self.handle.set(Handle::current());
            self.keeper.start(self);
        }
    }

    /// The runtime in which this desk's tasks run.
    #[expect(clippy::expect_used, reason = "every tenure begins in a wait, and every wait settles in first")]
    pub(super) fn handle(&self) -> &Handle {
        self.handle.get().expect("a wait has settled in")
    }

    /// Runs `task` without anybody who waits for it, except for [`Desk::shut_down`].
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn_on(task, self.handle());
    }

    /// The room in which this process's waiters for `lock` stand.
    pub(super) fn room(self: &Arc<Self>, lock: &Lock, cohort: Cohort) -> Arc<Room> {
        let mut rooms = self.rooms();
        if let Some(room) = rooms.get(lock) {
            return Arc::clone(room);
        }
        let room = Room::shared(self, lock, cohort);
        rooms.insert(lock.clone(), Arc::clone(&room));
        room
    }

    /// The room for `lock` if somebody is in it.
    pub(super) fn room_in_use(&self, lock: &Lock) -> Option<Arc<Room>> {
        self.rooms().get(lock).cloned()
    }

    /// Asks the store for a lock, of whatever kind.
    pub(super) async fn acquire(
        &self,
        lock: &Lock,
        attempt: &Attempt,
        share: Share,
    ) -> Result<Acquire, StoreError> {
        match lock {
            Lock::Mutex(name) => self.store.mutex_acquire(name, attempt).await,
            Lock::Pool(pool) => self.store.permit_acquire(pool, attempt, share).await,
        }
    }

    /// Gives back to the store whatever `token` has of a lock.
    pub(super) async fn release(&self, lock: &Lock, token: &Token) -> Result<Release, StoreError> {
        match lock {
            Lock::Mutex(name) => self.store.mutex_release(name, token).await,
            Lock::Pool(pool) => self.store.permit_release(pool, token).await,
        }
    }

    /// Closes a room that nobody is in any more.
    pub(super) fn close_room(&self, room: &Room) {
        let mut rooms = self.rooms();
        if rooms.get(&room.lock).is_some_and(|current| std::ptr::eq(&raw const **current, room)) {
            rooms.remove(&room.lock);
        }
    }

    /// Returns when the store's news are heard.
    pub(super) async fn listening(self: &Arc<Self>) {
        self.hearing().listening().await;
    }

    /// Whether the store's news are heard already.
    pub(super) fn is_listening(&self) -> bool {
        self.hearing.get().is_some_and(Hearing::is_listening)
    }

    /// Begins to listen, for somebody who may have to queue soon.
    pub(super) fn begin_to_listen(self: &Arc<Self>) {
        self.hearing();
    }

    fn hearing(self: &Arc<Self>) -> &Hearing {
        self.hearing.get_or_init(|| self.store.listen(self.ear, Arc::new(DeskListener(Arc::downgrade(self)))))
    }

    /// Gives back whatever `token` has of `lock`, without anybody who waits for it.
    pub(super) fn release_in_background(self: &Arc<Self>, lock: Lock, token: Token) {
        let desk = Arc::clone(self);
        self.spawn(async move { desk.release_until_answered(&lock, token).await });
    }

    /// The same for a lock that was dropped: if this process wants it again at this very moment, it is one step.
    pub(super) fn release_dropped(self: &Arc<Self>, lock: Lock, token: Token) {
        let dropped = self.dropped.add(&lock, token);
        let desk = Arc::clone(self);
        self.spawn(async move {
            if let Some(to_give_back) = dropped.claim(&desk, &lock) {
                desk.release_until_answered(&lock, to_give_back.token()).await;
            }
        });
    }

    /// What was dropped of `lock` a moment ago, to be given back by the caller.
    pub(super) fn take_dropped(self: &Arc<Self>, lock: &Lock) -> Option<ToGiveBack> {
        self.dropped.of(lock).into_iter().find_map(|dropped| dropped.claim(self, lock))
    }

    /// Returns when what was dropped of `lock` before this call has been given back.
    ///
    /// # Errors
    ///
    /// When the store does not answer; the release goes on in the background then.
    pub(super) async fn dropped_is_given_back(self: &Arc<Self>, lock: &Lock) -> Result<(), StoreError> {
        for dropped in self.dropped.of(lock) {
            let Some(to_give_back) = dropped.claim(self, lock) else {
                dropped.is_given_back.cancelled().await;
                continue;
            };
            if let Err(why) = self.release(lock, &to_give_back.token()).await {
                self.release_in_background(lock.clone(), to_give_back.token());
                return Err(why);
            }
        }
        Ok(())
    }

    /// Gives back whatever `token` has of `lock`; asks again a few times if there is no answer.
    pub(super) async fn release_until_answered(&self, lock: &Lock, token: Token) {
        for attempt in 1..=RELEASE_ATTEMPTS {
            match self.release(lock, &token).await {
                Ok(_) => return,
                Err(why) if attempt == RELEASE_ATTEMPTS => {
                    tracing::warn!(name = %lock.name(), %why, "a lock could not be given back; it ends with its lease");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100) * attempt).await,
            }
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Lets nobody wait any more, and returns when everything that was dropped has been given back.
    pub(crate) async fn shut_down(&self) {
        self.is_closing.store(true, Ordering::Release);
        let rooms: Vec<_> = self.rooms().values().cloned().collect();
        for room in rooms {
            room.send_waiters_home();
        }
        self.registry.wake_all();
        self.background.close();
        self.background.wait().await;
    }

    /// What is left behind: for tests that want to see nothing.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn traces(&self) -> Traces {
        let (expected, watching) = self.registry.counts();
        let rooms: Vec<_> = self.rooms().values().cloned().collect();
        Traces {
            rooms: rooms.len(),
            standing: rooms.iter().map(|room| room.standing()).sum(),
            expected,
            watching,
            kept: self.keeper.count(),
            owned: self.owners.count(),
            background: self.background.len(),
        }
    }
}

/// Locks that were dropped a moment ago and are not given back yet.
#[derive(Default)]
struct Dropped(Mutex<HashMap<Lock, Vec<Arc<DroppedLock>>>>);

struct DroppedLock {
    token: Token,
    /// Somebody gives it back, or has.
    is_claimed: AtomicBool,
    is_given_back: CancellationToken,
}

impl DroppedLock {
    /// For the first who asks: it has to be given back by it.
    fn claim(self: &Arc<Self>, desk: &Arc<Desk>, of: &Lock) -> Option<ToGiveBack> {
        let is_first = !self.is_claimed.swap(true, Ordering::AcqRel);
        is_first.then(|| ToGiveBack { desk: Arc::clone(desk), of: of.clone(), lock: Arc::clone(self) })
    }
}

/// A dropped lock that its owner gives back. Until this is dropped, others wait for it.
pub(super) struct ToGiveBack {
    desk: Arc<Desk>,
    of: Lock,
    lock: Arc<DroppedLock>,
}

impl ToGiveBack {
    pub(super) fn token(&self) -> Token {
        self.lock.token
    }
}

impl Drop for ToGiveBack {
    fn drop(&mut self) {
        self.desk.dropped.remove(&self.of, self.lock.token);
        self.lock.is_given_back.cancel();
    }
}

impl Dropped {
    fn map(&self) -> MutexGuard<'_, HashMap<Lock, Vec<Arc<DroppedLock>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, of: &Lock, token: Token) -> Arc<DroppedLock> {
        let (is_claimed, is_given_back) = (AtomicBool::new(false), CancellationToken::new());
        let lock = Arc::new(DroppedLock { token, is_claimed, is_given_back });
        self.map().entry(of.clone()).or_default().push(Arc::clone(&lock));
        lock
    }

    fn of(&self, lock: &Lock) -> Vec<Arc<DroppedLock>> {
        self.map().get(lock).cloned().unwrap_or_default()
    }

    fn remove(&self, of: &Lock, token: Token) {
        let mut map = self.map();
        let Some(locks) = map.get_mut(of) else { return };
        locks.retain(|lock| lock.token != token);
        if locks.is_empty() {
            map.remove(of);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.keeper.stop();
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("ear", &self.ear).finish_non_exhaustive()
    }
}

/// What the locks of a gate have in memory at this moment.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Names that somebody holds or waits for.
    pub rooms: usize,
    /// Waiters that have no place of their own in the store's queue, because another one of this process holds the lock or
    /// stands there for them.
    pub standing: usize,
    /// Tokens for which news are expected.
    pub expected: usize,
    /// Waiters of the notify policy.
    pub watching: usize,
    /// Tenures that the watchdog looks after.
    pub kept: usize,
    /// Locks that an owner may enter again.
    pub owned: usize,
    /// Tasks under way in the background.
    pub background: usize,
}
