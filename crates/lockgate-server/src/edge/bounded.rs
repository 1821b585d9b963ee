//! A map that forgets rather than grows.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use governor::nanos::Nanos;
use governor::state::StateStore;

/// At most so many entries. One more, and the lesser half of them is dropped, by value: with times as values, those that
/// come first and so matter least.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    entries: Mutex<HashMap<K, V>>,
    most: usize,
}

impl<K: Copy + Eq + Hash, V: Copy + Ord> Bounded<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: Mutex::new(HashMap::new()), most }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.lock().get(key).copied()
    }

    pub(super) fn insert(&self, key: K, value: V) {
        self.put(&mut self.lock(), key, value);
    }

    fn put(&self, entries: &mut HashMap<K, V>, key: K, value: V) {
        if entries.len() >= self.most && !entries.contains_key(&key) {
            drop_lesser_half(entries);
        }
        entries.insert(key, value);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Every change is one insertion or one removal: a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_lesser_half<K: Copy + Eq + Hash, V: Copy + Ord>(entries: &mut HashMap<K, V>) {
    let mut order: Vec<(V, K)> = entries.iter().map(|(key, value)| (*value, *key)).collect();
    let dropped = order.len().div_ceil(2);
    if dropped < order.len() {
        order.select_nth_unstable_by(dropped, |(one, _), (other, _)| one.cmp(other));
    }
    for (_, key) in order.into_iter().take(dropped) {
        entries.remove(&key);
    }
}

/// What a rate limiter remembers of a client is when its budget will be whole again. The lesser half is that of those who have
/// used the least.
impl<K: Copy + Eq + Hash> StateStore for Bounded<K, Nanos> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut entries = self.lock();
        let (answer, whole_again) = decide(entries.get(key).copied())?;
        self.put(&mut entries, *key, whole_again);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_has_more_than_it_may_and_keeps_the_greatest() {
        let bounded = Bounded::new(100);
        for key in 0..10_000_u32 {
            bounded.insert(key, if key % 1_000 == 7 { u32::MAX } else { key });
            assert!(bounded.len() <= 100);
        }
        for precious in (7..10_000).step_by(1_000) {
            assert_eq!(bounded.get(&precious), Some(u32::MAX), "{precious}");
        }
        assert_eq!((bounded.get(&1), bounded.get(&9_999)), (None, Some(9_999)));
    }

    #[test]
    fn even_one_place_is_enough_to_go_on() {
        let bounded = Bounded::new(1);
        for key in 0..5 {
            bounded.insert(key, key);
            assert_eq!((bounded.len(), bounded.get(&key)), (1, Some(key)));
        }
    }
}
