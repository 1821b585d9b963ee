//! Who may enter again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::guard::Hold;
use crate::store::Lock;

/// Somebody who may take a lock that it holds already: pass it to [`Mutex::owned_by`](super::Mutex::owned_by).
///
/// Redisson takes the thread for the owner. A task has no thread, so the owner is a value: hand a clone to whoever
/// acts on your behalf, and to nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(u64);

impl Owner {
    /// An owner that is nobody else, in this process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "every owner is another one, so there is no default")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What which owner holds.
#[derive(Default)]
pub(super) struct Owners(Mutex<HashMap<(Lock, Owner), Weak<Hold>>>);

impl Owners {
    fn map(&self) -> MutexGuard<'_, HashMap<(Lock, Owner), Weak<Hold>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold_of(&self, lock: &Lock, owner: &Owner) -> Option<Arc<Hold>> {
        self.map().get(&(lock.clone(), owner.clone()))?.upgrade()
    }

    pub(super) fn remember(&self, owner: &Owner, hold: &Arc<Hold>) {
        self.map().insert((hold.lock().clone(), owner.clone()), Arc::downgrade(hold));
    }

    /// How many are remembered.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn count(&self) -> usize {
        self.map().len()
    }

    /// Forgets what `owner` held, unless it holds something newer.
    pub(super) fn forget(&self, owner: &Owner, hold: &Hold) {
        let mut map = self.map();
        let key = (hold.lock().clone(), owner.clone());
        if map.get(&key).is_some_and(|current| std::ptr::eq(current.as_ptr(), hold)) {
            map.remove(&key);
        }
    }
}
