//! What this server has seen lately, for the dashboard: which locks were asked for, who was refused and why, what admins did.
//!
//! **Promise:** bounded, whatever comes: the latest stay. Nothing of it is kept when the server ends; what must be kept is in the store,
//! the ledger and the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockgate::ledger::Action;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::MAX_TOLD;

/// How many locks are remembered.
const MAX_LOCKS: usize = 100;

/// How many kinds of refusals are counted: campaigns times reasons.
const MAX_REFUSALS: usize = 1_000;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    /// The latest first.
    locks: Mutex<VecDeque<SeenLock>>,
    refusals: Mutex<Refusals>,
    /// The latest first.
    actions: Mutex<VecDeque<Action>>,
}

/// A lock that was asked for here.
#[derive(Clone, Debug)]
pub(crate) struct SeenLock {
    pub(crate) key: String,
    /// Who got it last.
    pub(crate) owner: Option<String>,
}

/// How often, by what and why; and which of them came last.
#[derive(Debug, Default)]
struct Refusals {
    counts: BTreeMap<Refused, u64>,
    /// In the order in which they were new.
    order: VecDeque<Refused>,
}

/// Of what, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Refused {
    what: &'static str,
    id: String,
    code: &'static str,
}

/// How often somebody was refused something for one reason, since the server started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusalCount {
    /// `coupon`, `deal` or `article`.
    what: &'static str,
    id: String,
    code: &'static str,
    count: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sightings {
    pub(crate) fn note_lock(&self, key: &str) {
        let mut locks = lock(&self.locks);
        if locks.front().is_some_and(|latest| latest.key == key) {
            return;
        }
        let known = locks.iter().position(|known| known.key == key).and_then(|at| locks.remove(at));
        locks.push_front(known.unwrap_or_else(|| SeenLock { key: key.to_owned(), owner: None }));
        locks.truncate(MAX_LOCKS);
    }

    /// Somebody got a lock that was noted.
    pub(crate) fn note_owner(&self, key: &str, owner: String) {
        if let Some(known) = lock(&self.locks).iter_mut().find(|known| known.key == key) {
            known.owner = Some(owner);
        }
    }

    pub(crate) fn owner_of(&self, key: &str) -> Option<String> {
        lock(&self.locks).iter().find(|known| known.key == key)?.owner.clone()
    }

    pub(crate) fn locks(&self) -> Vec<SeenLock> {
        lock(&self.locks).iter().cloned().collect()
    }

    pub(crate) fn note_refusal(&self, what: &'static str, id: &str, code: &'static str) {
        lock(&self.refusals).note(Refused { what, id: id.to_owned(), code });
    }

    pub(crate) fn refusals(&self) -> Vec<RefusalCount> {
        let count = |(Refused { what, id, code }, count): (&Refused, &u64)| RefusalCount {
            what,
            id: id.clone(),
            code,
            count: *count,
        };
        lock(&self.refusals).counts.iter().map(count).collect()
    }

    pub(crate) fn note_action(&self, action: Action) {
        let mut actions = lock(&self.actions);
        actions.push_front(action);
        actions.truncate(MAX_TOLD);
    }

    pub(crate) fn actions(&self) -> Vec<Action> {
        lock(&self.actions).iter().cloned().collect()
    }
}

impl Refusals {
    /// When there are too many kinds, the one goes that was new the longest ago.
    fn note(&mut self, refused: Refused) {
        if let Some(count) = self.counts.get_mut(&refused) {
            *count += 1;
            return;
        }
        if self.order.len() >= MAX_REFUSALS
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(refused.clone());
        self.counts.insert(refused, 1);
    }
}

#[cfg(test)]
mod tests {
    use lockgate::clock::Timestamp;
    use lockgate::store::Token;

    use super::*;

    #[test]
    fn the_latest_stay() {
        let seen = Sightings::default();
        for key in 0..300 {
            seen.note_lock(&format!("lock-{key}"));
            seen.note_lock("busy");
            seen.note_refusal("coupon", &format!("coupon-{}", key % 2), "sold-out");
            let (id, at, text) = (Token::random(), Timestamp::from_micros(key), String::new);
            let (action, target, outcome) = (text(), text(), text());
            seen.note_action(Action { id, at, action, target, outcome, address: None });
        }
        let locks = seen.locks();
        let [first, second, last] = [0, 1, 99].map(|at: usize| &*locks[at].key);
        assert_eq!((locks.len(), first, second, last), (100, "busy", "lock-299", "lock-201"));
        let refusals = seen.refusals();
        assert_eq!(refusals.iter().map(|refusal| refusal.count).collect::<Vec<_>>(), [150, 150]);
        assert_eq!((seen.actions().len(), seen.actions()[0].at.as_micros()), (200, 299));
    }

    #[test]
    fn whoever_got_a_lock_last_is_remembered_with_it() {
        let seen = Sightings::default();
        seen.note_owner("a", "nobody asked".to_owned());
        seen.note_lock("a");
        assert_eq!(seen.owner_of("a"), None);
        seen.note_owner("a", "ann".to_owned());
        seen.note_lock("b");
        seen.note_lock("a");
        assert_eq!((seen.owner_of("a").as_deref(), seen.owner_of("b")), (Some("ann"), None));
    }

    #[test]
    fn refusals_are_counted_of_so_many_things_and_no_more() {
        let seen = Sightings::default();
        for id in 0..1_500 {
            seen.note_refusal("deal", &format!("{id}"), "sold-out");
        }
        seen.note_refusal("deal", "1499", "sold-out");
        let refusals = seen.refusals();
        let count_of = |id| refusals.iter().find(|refusal| refusal.id == id).map(|refusal| refusal.count);
        assert_eq!(
            (refusals.len(), count_of("499"), count_of("500"), count_of("1499")),
            (1_000, None, Some(1), Some(2))
        );
    }
}
