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
    locks: Mutex<VecDeque<String>>,
    refusals: Mutex<BTreeMap<Refused, u64>>,
    /// The latest first.
    actions: Mutex<VecDeque<Action>>,
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
    /// `coupon` or `deal`.
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
        if locks.front().is_some_and(|latest| latest == key) {
            return;
        }
        locks.retain(|known| known != key);
        locks.push_front(key.to_owned());
        locks.truncate(MAX_LOCKS);
    }

    pub(crate) fn locks(&self) -> Vec<String> {
        lock(&self.locks).iter().cloned().collect()
    }

    pub(crate) fn note_refusal(&self, what: &'static str, id: &str, code: &'static str) {
        let mut refusals = lock(&self.refusals);
        let refused = Refused { what, id: id.to_owned(), code };
        if refusals.len() < MAX_REFUSALS || refusals.contains_key(&refused) {
            *refusals.entry(refused).or_default() += 1;
        }
    }

    pub(crate) fn refusals(&self) -> Vec<RefusalCount> {
        let count = |(Refused { what, id, code }, count): (&Refused, &u64)| RefusalCount {
            what,
            id: id.clone(),
            code,
            count: *count,
        };
        lock(&self.refusals).iter().map(count).collect()
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
        assert_eq!((locks.len(), &*locks[0], &*locks[1], &*locks[99]), (100, "busy", "lock-299", "lock-201"));
        let refusals = seen.refusals();
        assert_eq!(refusals.iter().map(|refusal| refusal.count).collect::<Vec<_>>(), [150, 150]);
        assert_eq!((seen.actions().len(), seen.actions()[0].at.as_micros()), (200, 299));
    }

    #[test]
    fn refusals_are_counted_of_so_many_things_and_no_more() {
        let seen = Sightings::default();
        for id in 0..1_500 {
            seen.note_refusal("deal", &format!("{id}"), "sold-out");
        }
        seen.note_refusal("deal", "7", "sold-out");
        let refusals = seen.refusals();
        assert_eq!(refusals.len(), 1_000);
        assert_eq!(refusals.iter().find(|refusal| refusal.id == "7").unwrap().count, 2);
    }
}
