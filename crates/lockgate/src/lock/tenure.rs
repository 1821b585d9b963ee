//! What the store has given to this process, under one token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::desk::Desk;
use super::news::Expecting;
use super::room::Room;
use super::terms::Terms;
use crate::clock::Moment;
use crate::key::Name;
use crate::store::{Lease, Token};

/// A tenure: from the grant until it is given back or lost. Its holders, one after the other, are those of its room.
pub(super) struct Tenure {
    pub(super) desk: Arc<Desk>,
    pub(super) room: Arc<Room>,
    pub(super) name: Name,
    pub(super) token: Token,
    /// Tells it from others on the keeper's agenda.
    pub(super) id: u64,
    /// Until when the store is known to keep it for us, in nanoseconds of our clock.
    trusted_until: AtomicU64,
    /// Until when the present holder wants it; `u64::MAX`: as long as it holds it.
    wanted_until: AtomicU64,
    /// The lease of the present holder, in nanoseconds.
    lease: AtomicU64,
    /// When the keeper looks at it next.
    due: AtomicU64,
    /// Given by a push, for the claim lease; the store has not heard from us since.
    is_claim: AtomicBool,
    /// Neither given back nor lost.
    held: AtomicBool,
    /// Wakes those who wait for the loss.
    pub(super) lost: Notify,
    /// As long as it lives, news for this token are ours.
    _expecting: Expecting,
}

/// What the keeper should do about a tenure.
pub(super) enum Care {
    Nothing,
    LookAgain(Moment),
    Renew(Lease),
    /// The holder's lease is over, but not that of the tenure.
    TakeFromHolder,
    Lost,
}

impl Tenure {
    pub(super) fn begin(
        room: &Arc<Room>,
        expecting: Expecting,
        trusted_until: Moment,
        is_claim: bool,
    ) -> Arc<Self> {
        let desk = Arc::clone(&room.desk);
        Arc::new(Self {
            id: desk.keeper.new_id(),
            name: room.name.clone(),
            token: expecting.token(),
            room: Arc::clone(room),
            desk,
            trusted_until: AtomicU64::new(trusted_until.as_nanos()),
            wanted_until: AtomicU64::new(0),
            lease: AtomicU64::new(0),
            due: AtomicU64::new(u64::MAX),
            is_claim: AtomicBool::new(is_claim),
            held: AtomicBool::new(true),
            lost: Notify::new(),
            _expecting: expecting,
        })
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    pub(super) fn is_trusted(&self, now: Moment) -> bool {
        self.is_held() && now < self.trusted_until()
    }

    pub(super) fn trusted_until(&self) -> Moment {
        Moment::from_nanos(self.trusted_until.load(Ordering::Acquire))
    }

    pub(super) fn due(&self) -> Moment {
        Moment::from_nanos(self.due.load(Ordering::Acquire))
    }

    pub(super) fn set_due(&self, due: Moment) {
        self.due.store(due.as_nanos(), Ordering::Release);
    }

    fn lease(&self) -> Duration {
        Duration::from_nanos(self.lease.load(Ordering::Acquire))
    }

    /// The lease of the present holder.
    pub(super) fn present_lease(&self) -> Lease {
        Lease::new(self.lease()).unwrap_or(Lease::MIN)
    }

    /// The next holder has it from `now` on. Returns until when, if its lease ends by itself.
    pub(super) fn serve(self: &Arc<Self>, terms: Terms, now: Moment) -> Option<Moment> {
        let wanted_until = (!terms.is_kept).then(|| now + terms.lease.length());
        let lease_nanos = u64::try_from(terms.lease.length().as_nanos()).unwrap_or(u64::MAX);
        self.lease.store(lease_nanos, Ordering::Release);
        self.wanted_until.store(wanted_until.map_or(u64::MAX, Moment::as_nanos), Ordering::Release);
        let due = self.next_look(now);
        // Most of the time what is on the agenda is early enough, and a pass need not touch it.
        if due < self.due() {
            self.desk.keeper.schedule(self, due);
        }
        wanted_until
    }

    fn wanted_until(&self) -> Moment {
        Moment::from_nanos(self.wanted_until.load(Ordering::Acquire))
    }

    /// When something will have to be done about it.
    fn next_look(&self, now: Moment) -> Moment {
        let (trusted, wanted, lease) = (self.trusted_until(), self.wanted_until(), self.lease());
        if self.is_claim.load(Ordering::Acquire) {
            // Most holders have given it back by then. A lease that is shorter than the claim must be told to the store at
            // once, or others wait too long if we die.
            return if lease <= self.desk.claim { now } else { now + trusted.since(now) / 4 };
        }
        if wanted <= trusted {
            return wanted;
        }
        // The watchdog's beat: a third of the lease after it began.
        (trusted - lease * 2 / 3).max(now)
    }

    /// Whether there is time enough for the next holder to begin: half of its lease, or of the claim.
    pub(super) fn has_time_for(&self, lease: Lease, now: Moment) -> bool {
        let is_claim = self.is_claim.load(Ordering::Acquire);
        let expected = if is_claim { self.desk.claim.min(lease.length()) } else { lease.length() };
        self.trusted_until().since(now) * 2 >= expected
    }

    /// What has to be done now.
    pub(super) fn care(&self, now: Moment) -> Care {
        let (trusted, wanted) = (self.trusted_until(), self.wanted_until());
        if !self.is_held() {
            return Care::Nothing;
        }
        if now >= trusted {
            return Care::Lost;
        }
        if now >= wanted {
            return Care::TakeFromHolder;
        }
        let look = self.next_look(now);
        if look > now + Duration::from_millis(5) {
            return Care::LookAgain(look);
        }
        let lease = if wanted == Moment::from_nanos(u64::MAX) { self.lease() } else { wanted.since(now) };
        // A lease shorter than a millisecond is as good as over.
        Lease::new(lease).map_or(Care::LookAgain(wanted.min(trusted)), Care::Renew)
    }

    /// The store has renewed it, by a call that was sent then; unless the answer comes too late.
    pub(super) fn extend(self: &Arc<Self>, sent_at: Moment, lease: Lease) {
        let now = self.desk.clock.monotonic();
        if !self.is_held() {
            return;
        }
        if !self.is_trusted(now) {
            return self.lose("the answer to its renewal came too late");
        }
        // Stores count whole milliseconds, and the present one has begun already.
        let until = sent_at + lease.length().saturating_sub(Duration::from_millis(1));
        self.trusted_until.store(until.as_nanos(), Ordering::Release);
        self.is_claim.store(false, Ordering::Release);
        self.desk.keeper.schedule(self, self.next_look(now).max(now));
    }

    /// Nobody holds it any more. Says whether somebody did.
    pub(super) fn end(&self) -> bool {
        let was_held = self.held.swap(false, Ordering::AcqRel);
        if was_held {
            self.desk.keeper.forget(self);
        }
        was_held
    }

    /// It can no longer be trusted, and never will be again.
    pub(super) fn lose(self: &Arc<Self>, why: &'static str) {
        if !self.end() {
            return;
        }
        tracing::warn!(name = %self.name, why, "a lock was lost");
        self.desk.metrics.lost.increment(1);
        self.lost.notify_waiters();
        self.room.tenure_is_lost(self);
        // The store may still keep it for us, and others would wait for nothing.
        self.desk.release_in_background(self.name.clone(), self.token);
    }
}
