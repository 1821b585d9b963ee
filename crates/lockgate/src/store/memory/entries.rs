//! What is kept under a name as long as somebody needs it.
//!
//! **Promise:** what is forgotten is never seen again, and takes no memory for long.

use std::collections::HashMap;
use std::hash::Hash;

use super::Now;

/// Something that nobody needs any more after a while.
pub(super) trait Passing {
    /// Whether Redis would have let it expire.
    fn is_forgotten(&self, now: Now) -> bool;
}

/// Entries by their keys.
#[derive(Debug)]
pub(super) struct Entries<K, E> {
    by_key: HashMap<K, E>,
    /// At this size, entries that nobody needs any more are thrown away.
    sweep_at: usize,
}

impl<K, E> Default for Entries<K, E> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), sweep_at: 0 }
    }
}

impl<K: Clone + Eq + Hash, E: Passing> Entries<K, E> {
    /// Throws away what is forgotten. Doubling the threshold makes it a constant cost per call.
    fn sweep(&mut self, now: Now) {
        if self.by_key.len() < self.sweep_at {
            return;
        }
        self.by_key.retain(|_, entry| !entry.is_forgotten(now));
        self.sweep_at = (self.by_key.len() * 2).max(1_024);
    }

    /// The entry of `key`; a new one when there is none, or only one that is forgotten.
    pub(in crate::store::memory) fn entry(&mut self, key: &K, now: Now, new: impl Fn() -> E) -> &mut E {
        self.sweep(now);
        let entry = self.by_key.entry(key.clone()).or_insert_with(&new);
        if entry.is_forgotten(now) {
            *entry = new();
        }
        entry
    }

    /// The entry of `key`, if there is one that is not forgotten.
    pub(in crate::store::memory) fn get(&self, key: &K, now: Now) -> Option<&E> {
        self.by_key.get(key).filter(|entry| !entry.is_forgotten(now))
    }

    /// The same, to be changed.
    pub(in crate::store::memory) fn get_mut(&mut self, key: &K, now: Now) -> Option<&mut E> {
        self.by_key.get_mut(key).filter(|entry| !entry.is_forgotten(now))
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn len(&self) -> usize {
        self.by_key.len()
    }
}
