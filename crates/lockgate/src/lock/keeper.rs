//! The watchdog: renews what is held, in batches, and tells holders when a lease can no longer be trusted.
//!
//! **Promise:** a tenure whose holder wants it longer than its lease is renewed when a third of the lease has passed (a
//! claim: a quarter). Renewals that are due at about the same time go as one call. While a renewal gets no answer, it is
//! tried again until the lease is over, counted from *before* the last renewal that was answered was sent; then the
//! tenure is lost, whatever is answered later.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::desk::Desk;
use super::tenure::{Care, Tenure};
use crate::clock::Moment;
use crate::error::StoreError;
use crate::store::{Lease, Lock, PermitRenewal, Renew, Renewal};

/// What is due within this time goes along.
const GATHER: Duration = Duration::from_millis(5);

/// How many renewals go in one call: short enough that others do not wait long behind it.
const BATCH: usize = 128;

/// When to look at which tenure.
#[derive(Default)]
pub(super) struct Keeper {
    agenda: Mutex<BTreeMap<(Moment, u64), Weak<Tenure>>>,
    /// Until when the task sleeps, in nanoseconds: what is due later need not wake it.
    asleep_until: AtomicU64,
    is_running: AtomicBool,
    wake: Notify,
    next_id: AtomicU64,
}

impl Keeper {
    /// A number for a new tenure.
    pub(super) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn agenda(&self) -> MutexGuard<'_, BTreeMap<(Moment, u64), Weak<Tenure>>> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at `tenure` when it is `due`, and not at the time that was set before.
    pub(super) fn schedule(&self, tenure: &Arc<Tenure>, due: Moment) {
        {
            let mut agenda = self.agenda();
            agenda.remove(&(tenure.due(), tenure.id));
            if !tenure.is_held() {
                return;
            }
            tenure.set_due(due);
            agenda.insert((due, tenure.id), Arc::downgrade(tenure));
        }
        if due.as_nanos() < self.asleep_until.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    /// Looks at `tenure` no more.
    pub(super) fn forget(&self, tenure: &Tenure) {
        self.agenda().remove(&(tenure.due(), tenure.id));
    }

    /// How many tenures are looked after.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn count(&self) -> usize {
        self.agenda().len()
    }

    /// Starts the task, unless it runs already.
    pub(super) fn start(&self, desk: &Arc<Desk>) {
        if !self.is_running.swap(true, Ordering::AcqRel) {
            desk.handle().spawn(keep(Arc::downgrade(desk)));
        }
    }

    /// Ends the task soon.
    pub(super) fn stop(&self) {
        self.wake.notify_one();
    }

    /// Takes what is due, or soon will be, from the agenda.
    fn take_due(&self, now: Moment) -> Vec<Arc<Tenure>> {
        let mut agenda = self.agenda();
        // Awake: nobody need wake us.
        self.asleep_until.store(0, Ordering::SeqCst);
        let later = agenda.split_off(&(now + GATHER, 0));
        let due = std::mem::replace(&mut *agenda, later);
        let due: Vec<_> = due.into_values().filter_map(|tenure| tenure.upgrade()).collect();
        // Off the agenda: whatever comes next is early enough to be written into it.
        due.iter().for_each(|tenure| tenure.set_due(Moment::from_nanos(u64::MAX)));
        due
    }

    /// When the next is due; until then the task sleeps.
    fn fall_asleep(&self) -> Moment {
        let agenda = self.agenda();
        let next = agenda.first_key_value().map_or(Moment::from_nanos(u64::MAX), |((due, _), _)| *due);
        // Under the lock, so that whoever adds something earlier afterwards sees it, and wakes us.
        self.asleep_until.store(next.as_nanos(), Ordering::SeqCst);
        next
    }
}

/// Looks after the tenures of a desk for as long as the desk is there.
async fn keep(desk: Weak<Desk>) {
    loop {
        // The desk must be free to go while we sleep; its end wakes us.
        let (keeper, clock) = {
            let Some(desk) = desk.upgrade() else { return };
            look_after_what_is_due(&desk);
            (Arc::clone(&desk.keeper), desk.clock.clone())
        };
        let next = keeper.fall_asleep();
        tokio::select! {
            () = keeper.wake.notified() => {}
            () = clock.sleep_until(next) => {}
        }
        // Whatever is wrong with the agenda, others get their turn.
        tokio::task::yield_now().await;
    }
}

fn look_after_what_is_due(desk: &Arc<Desk>) {
    let now = desk.clock.monotonic();
    let mut to_renew = Vec::new();
    for tenure in desk.keeper.take_due(now) {
        match tenure.care(now, GATHER) {
            Care::Nothing => {}
            // Unless a new holder has asked for an earlier look meanwhile.
            Care::LookAgain(at) if at < tenure.due() => desk.keeper.schedule(&tenure, at),
            Care::LookAgain(_) => {}
            Care::TakeFromHolder => tenure.room.take_from_holder(&tenure),
            Care::Lost => tenure.lose("the lease ran out"),
            Care::Renew(lease) => {
                tenure.is_about_to_be_renewed(now, lease);
                // If no answer comes, this is what happens.
                desk.keeper.schedule(&tenure, tenure.trusted_until());
                to_renew.push((tenure, lease));
            }
        }
    }
    // Mutexes go to one operation of the store, pools to another.
    to_renew.sort_by_key(|(tenure, _)| is_of_a_pool(tenure));
    for of_one_kind in to_renew.chunk_by(|(one, _), (other, _)| is_of_a_pool(one) == is_of_a_pool(other)) {
        for batch in of_one_kind.chunks(BATCH) {
            desk.spawn(renew(Arc::clone(desk), now, batch.to_vec()));
        }
    }
}

fn is_of_a_pool(tenure: &Tenure) -> bool {
    matches!(tenure.lock, Lock::Pool(_))
}

async fn renew(desk: Arc<Desk>, sent_at: Moment, tenures: Vec<(Arc<Tenure>, Lease)>) {
    match Renewals::of(tenures.iter().map(|(tenure, lease)| (&**tenure, *lease, 0))).send(&desk).await {
        Ok(answers) => {
            for ((tenure, lease), answer) in tenures.iter().zip(answers) {
                match answer {
                    Renew::Renewed { .. } => {
                        desk.metrics.of(&tenure.lock).renewals.increment(1);
                        tenure.extend(sent_at, *lease);
                    }
                    Renew::NotHeld => tenure.lose("the store gave it to somebody else, or forgot it"),
                }
            }
        }
        Err(why) => {
            tracing::warn!(%why, locks = tenures.len(), "locks could not be renewed; trying again until they end");
            let now = desk.clock.monotonic();
            for (tenure, _) in tenures.iter().filter(|(tenure, _)| tenure.is_held()) {
                let left = tenure.trusted_until().since(now);
                desk.keeper.schedule(tenure, (now + left / 8).min(tenure.trusted_until()));
            }
        }
    }
}

/// Renewals of tenures of one kind, mutexes or permits, as one call.
pub(super) enum Renewals {
    Mutexes(Vec<Renewal>),
    Pools(Vec<PermitRenewal>),
}

impl Renewals {
    /// For so long, and with so many more fences.
    pub(super) fn one(tenure: &Tenure, lease: Lease, fences: u64) -> Self {
        Self::of([(tenure, lease, fences)].into_iter())
    }

    fn of<'a>(tenures: impl Iterator<Item = (&'a Tenure, Lease, u64)>) -> Self {
        let (mut mutexes, mut pools) = (Vec::new(), Vec::new());
        for (tenure, lease, fences) in tenures {
            let token = tenure.token;
            match tenure.lock.clone() {
                Lock::Mutex(mutex) => mutexes.push(Renewal { mutex, token, lease, fences }),
                Lock::Pool(pool) => pools.push(PermitRenewal { pool, token, lease, fences }),
            }
        }
        if pools.is_empty() { Renewals::Mutexes(mutexes) } else { Renewals::Pools(pools) }
    }

    pub(super) async fn send(&self, desk: &Desk) -> Result<Vec<Renew>, StoreError> {
        match self {
            Renewals::Mutexes(renewals) => desk.store.mutex_renew(renewals).await,
            Renewals::Pools(renewals) => desk.store.permit_renew(renewals).await,
        }
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use super::super::fixture::{CLAIM, Fixture, fixed, kept};
    use super::*;
    use crate::testing::breakable::Break;

    const SECOND: Duration = Duration::from_secs(1);

    /// A desk whose keeper looks when it is told to, and at no other time.
    fn by_hand() -> Fixture {
        let fixture = Fixture::new();
        fixture.desk.keeper.is_running.store(true, Ordering::Release);
        fixture.desk.settle_in();
        fixture
    }

    /// Lets so much time pass, a millisecond at a time, as the keeper's task does; returns how many calls were made.
    async fn look_after_for(fixture: &Fixture, time: Duration) -> u64 {
        let (before, end) = (fixture.store.calls(), fixture.now() + time);
        while fixture.now() < end {
            if fixture.desk.keeper.fall_asleep() <= fixture.now() {
                look_after_what_is_due(&fixture.desk);
            }
            while fixture.desk.traces().background > 0 {
                tokio::task::yield_now().await;
            }
            fixture.clock.advance(Duration::from_millis(1));
        }
        fixture.store.calls() - before
    }

    #[tokio::test]
    async fn what_is_off_the_agenda_comes_back_to_it_with_its_next_holder() {
        let fixture = by_hand();
        let (keeper, tenure) = (&fixture.desk.keeper, fixture.tenure("m", 10 * SECOND, false).await);
        tenure.serve(fixed(SECOND), fixture.now(), false);
        assert_eq!(keeper.take_due(fixture.now()).len(), 0, "taken too early");
        fixture.clock.advance(SECOND);
        assert_eq!(keeper.take_due(fixture.now()).len(), 1);
        assert_eq!(keeper.count(), 0);
        // Its end is later than the look that was just taken, and that must not count any more.
        let until = tenure.serve(fixed(5 * SECOND), fixture.now(), false);
        assert_eq!((keeper.count(), Some(tenure.due())), (1, until));
    }

    #[tokio::test]
    async fn a_look_that_came_too_early_is_made_again_in_time() {
        let fixture = by_hand();
        let tenure = fixture.tenure("m", 10 * SECOND, false).await;
        let until = tenure.serve(fixed(5 * SECOND), fixture.now(), false).unwrap();
        fixture.desk.keeper.schedule(&tenure, fixture.now());
        look_after_what_is_due(&fixture.desk);
        assert_eq!((fixture.desk.keeper.count(), tenure.due()), (1, until));
    }

    #[tokio::test]
    async fn a_fixed_lease_is_not_renewed_when_the_store_has_given_all_of_it() {
        let fixture = by_hand();
        let tenure = fixture.tenure("m", SECOND, false).await;
        tenure.serve(fixed(SECOND), fixture.now(), false);
        assert_eq!(look_after_for(&fixture, SECOND).await, 0);
        assert!(tenure.is_held());
        // What ends it now gives it back, and nothing else is called.
        assert_eq!(look_after_for(&fixture, SECOND).await, 1);
        assert!(!tenure.is_held());
        assert_eq!(fixture.desk.keeper.count(), 0);
    }

    #[tokio::test]
    async fn a_fixed_lease_under_a_claim_is_renewed_once_and_ends() {
        let fixture = by_hand();
        let tenure = fixture.tenure("m", CLAIM, true).await;
        tenure.serve(fixed(3 * SECOND), fixture.now(), false);
        assert_eq!(look_after_for(&fixture, CLAIM / 4).await, 0, "most holders have given it back by then");
        assert_eq!(look_after_for(&fixture, 3 * SECOND - CLAIM / 4 - Duration::from_millis(1)).await, 1);
        assert!(tenure.is_held());
        look_after_for(&fixture, SECOND).await;
        assert!(!tenure.is_held(), "it outlives its lease");
    }

    #[tokio::test]
    async fn what_the_watchdog_keeps_is_renewed_three_times_per_lease() {
        let fixture = by_hand();
        let tenure = fixture.tenure("m", 3 * SECOND, false).await;
        tenure.serve(kept(3 * SECOND), fixture.now(), false);
        let renewals = look_after_for(&fixture, 30 * SECOND).await;
        // A second after the last one, less the millisecond that a store may round away each time.
        assert!((29..=31).contains(&renewals), "{renewals}");
        assert!(tenure.is_held());
    }

    #[tokio::test]
    async fn renewals_that_are_due_at_about_the_same_time_go_as_one_call() {
        let fixture = by_hand();
        let mut tenures = Vec::new();
        for name in ["a", "b", "c"] {
            let tenure = fixture.tenure(name, 3 * SECOND, false).await;
            tenure.serve(kept(3 * SECOND), fixture.now(), false);
            tenures.push(tenure);
            fixture.clock.advance(Duration::from_millis(2));
        }
        assert_eq!(look_after_for(&fixture, SECOND * 3 / 2).await, 1);
        let renewed = |tenure: &Arc<Tenure>| tenure.trusted_until().since(fixture.now()) > SECOND * 2;
        assert!(tenures.iter().all(renewed));
    }

    #[tokio::test]
    async fn a_renewal_without_an_answer_is_tried_again_until_the_lease_is_over_and_no_longer() {
        let fixture = by_hand();
        let tenure = fixture.tenure("m", 3 * SECOND, false).await;
        let end = tenure.trusted_until();
        tenure.serve(kept(3 * SECOND), fixture.now(), false);
        fixture.store.break_all(Break::Refuse);
        let tries = look_after_for(&fixture, end.since(fixture.now())).await;
        assert!(tries >= 3, "given up after {tries}");
        assert!(tenure.is_held() && tenure.trusted_until() == end);
        look_after_what_is_due(&fixture.desk);
        assert!(!tenure.is_held(), "trusted beyond its lease");
        fixture.store.heal();
        assert_eq!(fixture.desk.keeper.count(), 0);
    }
}
