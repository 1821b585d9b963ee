//! What the store has given to this process, under one token.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::desk::Desk;
use super::news::Expecting;
use super::room::Room;
use super::terms::Terms;
use crate::clock::Moment;
use crate::store::{Lease, Lock, Token};

/// A store may count whole milliseconds from the beginning of the present one, so a lease may end this much early.
const ROUNDING: Duration = Duration::from_millis(1);

/// A tenure: from the grant until it is given back or lost. Its holders, one after the other or together, are those of its
/// room.
pub(super) struct Tenure {
    pub(super) desk: Arc<Desk>,
    pub(super) room: Arc<Room>,
    pub(super) lock: Lock,
    pub(super) token: Token,
    /// Tells it from others on the keeper's agenda.
    pub(super) id: u64,
    /// Until when the store is known to keep it for us, in nanoseconds of our clock.
    trusted_until: AtomicU64,
    /// What was sent to renew it; `trusted_until` changes under it.
    renewals: Mutex<Renewals>,
    /// Until when the present holders want it, the last of them; `u64::MAX`: as long as one holds it.
    wanted_until: AtomicU64,
    /// When the lease of the first of them ends; `u64::MAX`: none does by itself.
    first_end: AtomicU64,
    /// The longest lease of the present holders, in nanoseconds.
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

/// The renewals of a tenure that were sent.
#[derive(Default)]
struct Renewals {
    last_sent_at: Option<Moment>,
    unanswered: u32,
    /// The shortest lease among those that may still be carried out.
    shortest: Option<Duration>,
}

/// What the keeper should do about a tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    Nothing,
    LookAgain(Moment),
    Renew(Lease),
    /// The holder's lease is over, but not that of the tenure.
    TakeFromHolder,
    Lost,
}

/// What will have to be done about a tenure, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Renewal(Moment),
    /// The lease of the holder, or of the tenure.
    End(Moment),
}

impl Next {
    fn at(self) -> Moment {
        match self {
            Next::Renewal(at) | Next::End(at) => at,
        }
    }
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
            lock: room.lock.clone(),
            token: expecting.token(),
            room: Arc::clone(room),
            desk,
            trusted_until: AtomicU64::new(trusted_until.as_nanos()),
            renewals: Mutex::default(),
            wanted_until: AtomicU64::new(0),
            first_end: AtomicU64::new(u64::MAX),
            lease: AtomicU64::new(0),
            due: AtomicU64::new(u64::MAX),
            is_claim: AtomicBool::new(is_claim),
            held: AtomicBool::new(true),
            lost: Notify::new(),
            _expecting: expecting,
        })
    }

    /// Whether the store keeps it for the claim lease only, as far as we know.
    pub(super) fn is_claim(&self) -> bool {
        self.is_claim.load(Ordering::Acquire)
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

    /// The lease of the present holder, or what is left of a longer one: a renewal for this time takes nothing away.
    pub(super) fn lease_to_ask_for(&self, now: Moment) -> Lease {
        let left = self.trusted_until().since(now) + ROUNDING * 2;
        Lease::new(self.lease().max(left)).unwrap_or(Lease::MIN)
    }

    /// Has the keeper look at it when its present holder needs it.
    pub(super) fn look_in_time(self: &Arc<Self>, now: Moment) {
        self.desk.keeper.schedule(self, self.next_look(now));
    }

    /// The next holder has it from `now` on, beside others or alone. Returns until when, if its lease ends by itself.
    pub(super) fn serve(self: &Arc<Self>, terms: Terms, now: Moment, beside_others: bool) -> Option<Moment> {
        let until = (!terms.is_kept).then(|| now + terms.lease.length());
        let (lease, end) = (nanos(terms.lease), until.map_or(u64::MAX, Moment::as_nanos));
        if beside_others {
            self.lease.fetch_max(lease, Ordering::AcqRel);
            self.wanted_until.fetch_max(end, Ordering::AcqRel);
            self.first_end.fetch_min(end, Ordering::AcqRel);
        } else {
            self.lease.store(lease, Ordering::Release);
            self.wanted_until.store(end, Ordering::Release);
            self.first_end.store(end, Ordering::Release);
        }
        if self.is_claim.load(Ordering::Acquire) {
            // The claim may be longer than the lease. Its first renewal ends that, and the holder must not have been told more.
            // Beside others, it is renewed for the longest lease of them all.
            let longest = Lease::new(self.lease()).unwrap_or(terms.lease);
            self.trust_no_longer_than(end_of_lease(now, longest));
        }
        let due = self.next_look(now);
        // Most of the time what is on the agenda is early enough, and a pass need not touch it.
        if due < self.due() {
            self.desk.keeper.schedule(self, due);
        }
        until
    }

    /// These are its holders now, with their leases and ends.
    pub(super) fn serve_anew(self: &Arc<Self>, holders: impl Iterator<Item = (Lease, Option<Moment>)>) {
        let (mut lease, mut last, mut first) = (0, 0, u64::MAX);
        for (its_lease, until) in holders {
            let end = until.map_or(u64::MAX, Moment::as_nanos);
            (lease, last, first) = (lease.max(nanos(its_lease)), last.max(end), first.min(end));
        }
        self.lease.store(lease, Ordering::Release);
        self.wanted_until.store(last, Ordering::Release);
        self.first_end.store(first, Ordering::Release);
        self.look_in_time(self.desk.clock.monotonic());
    }

    /// Nobody holds it for the moment: it is kept for the next one.
    pub(super) fn serve_nobody(&self) {
        self.wanted_until.store(u64::MAX, Ordering::Release);
        self.first_end.store(u64::MAX, Ordering::Release);
    }

    fn wanted_until(&self) -> Moment {
        Moment::from_nanos(self.wanted_until.load(Ordering::Acquire))
    }

    /// When the lease of the first of its holders ends.
    pub(super) fn first_end(&self) -> Moment {
        Moment::from_nanos(self.first_end.load(Ordering::Acquire))
    }

    /// When it has to be looked at next.
    fn next_look(&self, now: Moment) -> Moment {
        self.next(now).at().min(self.first_end())
    }

    /// What will have to be done about it next.
    fn next(&self, now: Moment) -> Next {
        let (trusted, wanted, lease) = (self.trusted_until(), self.wanted_until(), self.lease());
        if self.is_claim.load(Ordering::Acquire) {
            // Most holders have given it back by then. A lease that is shorter than the claim must be told to the store at
            // once, or others wait too long if we die.
            return Next::Renewal(if lease <= self.desk.claim { now } else { now + trusted.since(now) / 4 });
        }
        // A renewal never reaches the wanted end to the millisecond.
        if wanted <= trusted + ROUNDING * 2 {
            return Next::End(wanted.min(trusted));
        }
        // The watchdog's beat: a third of the lease after it began.
        Next::Renewal((trusted - lease * 2 / 3).max(now))
    }

    /// Whether the next holder can begin: half of its lease is left (or of the claim), and not so much more than all of it that
    /// others would wait too long if we die; and no shorter renewal is under way, which could undercut its own.
    pub(super) fn has_time_for(&self, lease: Lease, now: Moment) -> bool {
        let is_claim = self.is_claim.load(Ordering::Acquire);
        let is_undercut = self.renewals().shortest.is_some_and(|shortest| shortest < lease.length());
        let is_too_long = self.trusted_until().since(now) > lease.length() * 2 + self.desk.claim;
        if is_undercut || is_too_long {
            return false;
        }
        let expected = if is_claim { self.desk.claim.min(lease.length()) } else { lease.length() };
        self.trusted_until().since(now) * 2 >= expected
    }

    /// What has to be done now. A renewal that would be due within `gather` is made now, with others.
    pub(super) fn care(&self, now: Moment, gather: Duration) -> Care {
        let (trusted, wanted) = (self.trusted_until(), self.wanted_until());
        if !self.is_held() {
            return Care::Nothing;
        }
        if now >= trusted {
            return Care::Lost;
        }
        if now >= self.first_end() {
            return Care::TakeFromHolder;
        }
        // A quarter of a claim is counted from its beginning. Whoever counts a quarter of what is left never gets there.
        let is_claim = self.is_claim.load(Ordering::Acquire);
        match self.next(now) {
            Next::End(at) => return Care::LookAgain(at.min(self.first_end())),
            Next::Renewal(at) if !is_claim && at > now + gather => {
                return Care::LookAgain(at.min(self.first_end()));
            }
            Next::Renewal(_) => {}
        }
        let lease = if wanted == Moment::from_nanos(u64::MAX) { self.lease() } else { wanted.since(now) };
        // A lease shorter than a millisecond is as good as over.
        Lease::new(lease).map_or(Care::LookAgain(wanted.min(trusted)), Care::Renew)
    }

    /// To be called before a renewal is sent. The store may carry it out at any time from then on, and if it makes the lease
    /// shorter, the lock is trusted no longer than that, answer or no answer.
    pub(super) fn is_about_to_be_renewed(&self, sent_at: Moment, lease: Lease) {
        let mut renewals = self.renewals();
        renewals.last_sent_at = renewals.last_sent_at.max(Some(sent_at));
        renewals.unanswered += 1;
        let shortest = renewals.shortest.map_or(lease.length(), |shortest| shortest.min(lease.length()));
        renewals.shortest = Some(shortest);
        self.trust_no_longer_than(end_of_lease(sent_at, lease));
    }

    fn renewals(&self) -> MutexGuard<'_, Renewals> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trust_no_longer_than(&self, end: Moment) {
        if self.trusted_until.fetch_min(end.as_nanos(), Ordering::AcqRel) > end.as_nanos() {
            // Those who sleep until it is lost have to look at the clock anew.
            self.lost.notify_waiters();
        }
    }

    /// The store has carried out the renewal that was sent then; unless that comes too late.
    pub(super) fn extend(self: &Arc<Self>, sent_at: Moment, lease: Lease) {
        let now = self.desk.clock.monotonic();
        if !self.is_held() {
            return;
        }
        if !self.is_trusted(now) {
            return self.lose("the answer to its renewal came too late");
        }
        let mut renewals = self.renewals();
        // One that got no answer stays counted: a late copy of it may still be carried out.
        renewals.unanswered = renewals.unanswered.saturating_sub(1);
        if renewals.unanswered == 0 {
            renewals.shortest = None;
        }
        if Some(sent_at) < renewals.last_sent_at {
            // Another one, perhaps for a shorter time, was sent since: its answer counts.
            return;
        }
        self.trusted_until.store(end_of_lease(sent_at, lease).as_nanos(), Ordering::Release);
        drop(renewals);
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
        tracing::warn!(name = %self.lock.name(), why, "a lock was lost");
        self.desk.metrics.of(&self.lock).lost.increment(1);
        self.lost.notify_waiters();
        self.room.tenure_is_lost(self);
        // The store may still keep it for us, and others would wait for nothing.
        self.desk.release_in_background(self.lock.clone(), self.token);
    }
}

fn nanos(lease: Lease) -> u64 {
    u64::try_from(lease.length().as_nanos()).unwrap_or(u64::MAX)
}

/// When a lease ends at the earliest that was asked for then.
fn end_of_lease(sent_at: Moment, lease: Lease) -> Moment {
    sent_at + lease.length().saturating_sub(ROUNDING)
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use super::super::fixture::{CLAIM, Fixture, fixed, kept, lease};
    use super::*;

    const GATHER: Duration = Duration::from_millis(5);
    const SECOND: Duration = Duration::from_secs(1);
    const MILLI: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn near_the_end_of_a_fixed_lease_it_waits_for_the_end_and_is_not_renewed() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", 10 * SECOND, false).await;
        let (start, end) = (fixture.now(), tenure.trusted_until());
        assert_eq!(tenure.serve(fixed(10 * SECOND), start, false), Some(start + 10 * SECOND));
        // The last two are within what is gathered: a renewal that were due then would be made.
        for now in [start, start + 9 * SECOND, end - 3 * MILLI, end - Duration::from_nanos(1)] {
            assert_eq!(tenure.care(now, GATHER), Care::LookAgain(end), "{now:?}");
        }
        assert_eq!(tenure.care(end, GATHER), Care::Lost);
    }

    #[tokio::test]
    async fn the_end_of_the_holder_is_not_that_of_the_tenure() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", 10 * SECOND, false).await;
        let start = fixture.now();
        let until = tenure.serve(fixed(4 * SECOND), start, false).unwrap();
        assert_eq!((until, tenure.due()), (start + 4 * SECOND, start + 4 * SECOND));
        assert_eq!(tenure.care(until - MILLI, GATHER), Care::LookAgain(until));
        assert_eq!(tenure.care(until, GATHER), Care::TakeFromHolder);
    }

    #[tokio::test]
    async fn what_the_watchdog_keeps_is_renewed_when_a_third_of_its_lease_has_passed() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", 30 * SECOND, false).await;
        let third = fixture.now() + 10 * SECOND;
        assert_eq!(tenure.serve(kept(30 * SECOND), fixture.now(), false), None);
        assert_eq!(tenure.due(), third);
        assert_eq!(tenure.care(third - 6 * MILLI, GATHER), Care::LookAgain(third));
        let renewal = Care::Renew(lease(30 * SECOND));
        assert_eq!(tenure.care(third - 5 * MILLI, GATHER), renewal, "it could have gone along");
        assert_eq!(tenure.care(third, GATHER), renewal);
    }

    #[tokio::test]
    async fn under_a_claim_a_fixed_lease_is_asked_for_once_and_only_for_what_is_left_of_it() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", CLAIM, true).await;
        let until = tenure.serve(fixed(10 * SECOND), fixture.now(), false).unwrap();
        assert_eq!(tenure.due(), fixture.now() + CLAIM / 4);
        fixture.clock.advance(CLAIM / 4);
        let (now, left) = (fixture.now(), lease(10 * SECOND - CLAIM / 4));
        assert_eq!(tenure.care(now, GATHER), Care::Renew(left));
        tenure.is_about_to_be_renewed(now, left);
        tenure.extend(now, left);
        // The store may count a millisecond less; to ask for that one again would never end.
        assert_eq!(tenure.trusted_until(), until - ROUNDING);
        for now in [now, until - 3 * MILLI] {
            assert_eq!(tenure.care(now, GATHER), Care::LookAgain(until - ROUNDING), "{now:?}");
        }
    }

    #[tokio::test]
    async fn a_lease_shorter_than_the_claim_is_told_to_the_store_at_once() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", CLAIM, true).await;
        tenure.serve(fixed(CLAIM / 2), fixture.now(), false);
        assert_eq!(tenure.due(), fixture.now());
        assert_eq!(tenure.care(fixture.now(), GATHER), Care::Renew(lease(CLAIM / 2)));
        assert!(tenure.trusted_until() <= fixture.now() + CLAIM / 2, "trusted for more than was asked for");
    }

    #[tokio::test]
    async fn who_joins_for_a_short_time_does_not_shorten_the_others_under_a_claim() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", CLAIM, true).await;
        let claimed = tenure.trusted_until();
        tenure.serve(kept(10 * SECOND), fixture.now(), false);
        tenure.serve(fixed(5 * MILLI), fixture.now(), true);
        assert_eq!(tenure.trusted_until(), claimed);
        assert_eq!(tenure.first_end(), fixture.now() + 5 * MILLI);
    }

    #[tokio::test]
    async fn a_renewal_to_a_shorter_lease_counts_from_when_it_is_sent_and_no_older_answer_undoes_it() {
        let fixture = Fixture::new();
        let tenure = fixture.tenure("m", 10 * SECOND, false).await;
        let (first, long, short) = (fixture.now(), lease(10 * SECOND), lease(2 * SECOND));
        tenure.is_about_to_be_renewed(first, long);
        fixture.clock.advance(MILLI);
        let second = fixture.now();
        tenure.is_about_to_be_renewed(second, short);
        let end = second + 2 * SECOND - ROUNDING;
        assert_eq!(tenure.trusted_until(), end);
        tenure.extend(first, long);
        assert_eq!(tenure.trusted_until(), end, "the store may carry the shorter one out after the longer");
        assert!(!tenure.has_time_for(lease(3 * SECOND), second), "the shorter one is still under way");
        tenure.extend(second, short);
        assert!(tenure.has_time_for(lease(3 * SECOND), second));
    }
}
