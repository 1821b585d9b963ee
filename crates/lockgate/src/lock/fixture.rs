//! What the unit tests of this folder stand on: a desk on the embedded store, and a clock that moves only when told.

use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::news::Registry;
use super::room::{Grant, Room};
use super::tenure::Tenure;
use super::terms::{Cohort, Terms};
use crate::clock::{Clock, Moment};
use crate::config::Config;
use crate::key::Name;
use crate::store::memory::MemoryStore;
use crate::store::{Acquire, Attempt, FENCE_BLOCK, Lease, Lock, Pool, PoolKind, Share, Token};
use crate::testing::breakable::BreakableStore;

pub(super) const CLAIM: Duration = Duration::from_secs(1);

/// What a holder takes of a mutex.
pub(super) const WHOLE: Share = Share { permits: 1, of: 1 };

pub(super) struct Fixture {
    pub(super) clock: Clock,
    pub(super) store: Arc<BreakableStore>,
    pub(super) desk: Arc<Desk>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let clock = Clock::fake();
        // Not at the very beginning of time, where what lies before cannot be told from now.
        clock.advance(Duration::from_secs(1_000));
        let config = Config { clock: clock.clone(), claim: CLAIM, ..Config::default() };
        let inner = MemoryStore::with(&config);
        let store = Arc::new(BreakableStore::new(Arc::new(inner)));
        let desk = Desk::new(Arc::clone(&store) as _, clock.clone(), CLAIM);
        Self { clock, store, desk }
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.monotonic()
    }

    pub(super) fn room(&self, name: &str) -> Arc<Room> {
        Room::shared(&self.desk, &Lock::Mutex(Name::new("mutex", name).unwrap()), Cohort::default())
    }

    pub(super) fn rw_room(&self, name: &str) -> Arc<Room> {
        let pool = Pool { kind: PoolKind::RwLock, name: Name::new("rw_lock", name).unwrap() };
        Room::shared(&self.desk, &Lock::Pool(pool), Cohort::default())
    }

    /// What the store gives to `room` for so long, as a search gets it.
    pub(super) async fn grant(&self, room: &Room, length: Duration, is_claim: bool) -> Grant {
        self.grant_of(room, WHOLE, length, is_claim).await
    }

    pub(super) async fn grant_of(
        &self,
        room: &Room,
        share: Share,
        length: Duration,
        is_claim: bool,
    ) -> Grant {
        let token = Token::for_ear(self.desk.ear);
        let expecting = Registry::expect(&self.desk, token);
        let attempt = Attempt { fences: FENCE_BLOCK, ..Attempt::new(token, lease(length)) };
        let answer = self.desk.acquire(&room.lock, &attempt, share).await.unwrap();
        let Acquire::Granted { fences, lease_left } = answer else { panic!("{answer:?}") };
        let trusted_until = self.now() + lease_left;
        Grant { expecting, share, fences, trusted_until, others_wait: false, is_claim }
    }

    /// A tenure that the store has given for so long, and that serves nobody yet.
    pub(super) async fn tenure(&self, name: &str, length: Duration, is_claim: bool) -> Arc<Tenure> {
        let room = self.room(name);
        let grant = self.grant(&room, length, is_claim).await;
        Tenure::begin(&room, grant.expecting, grant.trusted_until, is_claim)
    }
}

pub(super) fn lease(length: Duration) -> Lease {
    Lease::new(length).unwrap()
}

/// A holder that wants the lock for so long and no longer.
pub(super) fn fixed(length: Duration) -> Terms {
    Terms { lease: lease(length), is_kept: false }
}

/// A holder for whom the watchdog keeps the lock.
pub(super) fn kept(length: Duration) -> Terms {
    Terms { lease: lease(length), is_kept: true }
}
