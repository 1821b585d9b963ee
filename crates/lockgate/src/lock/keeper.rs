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
use crate::store::{Renew, Renewal};

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
    for batch in to_renew.chunks(BATCH) {
        let (tenures, renewals): (Vec<_>, Vec<_>) = batch
            .iter()
            .map(|(tenure, lease)| {
                let (mutex, token) = (tenure.name.clone(), tenure.token);
                (Arc::clone(tenure), Renewal { mutex, token, lease: *lease, fences: 0 })
            })
            .unzip();
        desk.spawn(renew(Arc::clone(desk), now, tenures, renewals));
    }
}

async fn renew(desk: Arc<Desk>, sent_at: Moment, tenures: Vec<Arc<Tenure>>, renewals: Vec<Renewal>) {
    match desk.store.mutex_renew(&renewals).await {
        Ok(answers) => {
            for ((tenure, renewal), answer) in tenures.iter().zip(&renewals).zip(answers) {
                match answer {
                    Renew::Renewed { .. } => {
                        desk.metrics.renewals.increment(1);
                        tenure.extend(sent_at, renewal.lease);
                    }
                    Renew::NotHeld => tenure.lose("the store gave it to somebody else, or forgot it"),
                }
            }
        }
        Err(why) => {
            tracing::warn!(%why, locks = tenures.len(), "locks could not be renewed; trying again until they end");
            let now = desk.clock.monotonic();
            for tenure in tenures.iter().filter(|tenure| tenure.is_held()) {
                let left = tenure.trusted_until().since(now);
                desk.keeper.schedule(tenure, (now + left / 8).min(tenure.trusted_until()));
            }
        }
    }
}
