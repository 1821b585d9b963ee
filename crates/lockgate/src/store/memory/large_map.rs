//! A map that grows in small steps.
//!
//! **Promise:** however large it is, no single insertion takes long. A plain `HashMap` moves all its entries when it is full:
//! at ten million users that is a second in which nobody else is served.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// From this size on it is many maps; moving so many entries takes a few milliseconds.
const LARGE: usize = 1 << 15;

/// How many maps it is then. Each grows by itself, when its own turn has come.
const PARTS: usize = 1 << 10;

/// A map of things whose hash is one already (a [`Name`](crate::key::Name) has one that nobody can predict), or that are
/// numbers of our own.
pub(in crate::store::memory) type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Mixes a few numbers into one.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Mixer(u64);

/// Any odd number without a pattern will do: this is the golden ratio's.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.unsigned_abs() as u64);
    }

    fn finish(&self) -> u64 {
        // The upper bits are the good ones, and a map needs both ends.
        self.0 ^ (self.0 >> 32)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(in crate::store::memory) enum LargeMap<K, V> {
    /// Most are.
    Small(HashedMap<K, V>),
    Large(Box<[HashedMap<K, V>]>),
}

impl<K, V> Default for LargeMap<K, V> {
    fn default() -> Self {
        Self::Small(HashedMap::default())
    }
}

impl<K: Hash + Eq, V> LargeMap<K, V> {
    fn part(&self, key: &K) -> &HashedMap<K, V> {
        match self {
            Self::Small(all) => all,
            Self::Large(parts) => &parts[place(key)],
        }
    }

    fn part_mut(&mut self, key: &K) -> &mut HashedMap<K, V> {
        match self {
            Self::Small(all) => all,
            Self::Large(parts) => &mut parts[place(key)],
        }
    }

    pub(in crate::store::memory) fn get(&self, key: &K) -> Option<&V> {
        self.part(key).get(key)
    }

    pub(in crate::store::memory) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.part_mut(key).get_mut(key)
    }

    pub(in crate::store::memory) fn remove(&mut self, key: &K) -> Option<V> {
        self.part_mut(key).remove(key)
    }

    pub(in crate::store::memory) fn insert(&mut self, key: K, value: V) {
        self.entry(key).insert_entry(value);
    }

    pub(in crate::store::memory) fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        if let Self::Small(all) = self
            && all.len() >= LARGE
        {
            let mut parts = Vec::new();
            parts.resize_with(PARTS, HashedMap::default);
            for (key, value) in all.drain() {
                parts[place(&key)].insert(key, value);
            }
            *self = Self::Large(parts.into());
        }
        self.part_mut(&key).entry(key)
    }
}

/// By bits from the middle of the hash: the map inside goes by those at its ends.
fn place<K: Hash>(key: &K) -> usize {
    let hash = BuildHasherDefault::<Mixer>::default().hash_one(key);
    usize::try_from(hash >> 32).unwrap_or(0) % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_before_and_after_it_has_become_large() {
        let mut map = LargeMap::default();
        for key in 0..3 * LARGE {
            map.insert(key, key + 1);
        }
        assert!(matches!(map, LargeMap::Large(_)));
        assert!((0..3 * LARGE).all(|key| map.get(&key) == Some(&(key + 1))));
        assert_eq!((map.remove(&7), map.remove(&7), map.get(&7)), (Some(8), None, None));
        if let Some(value) = map.get_mut(&8) {
            *value = 0;
        }
        assert!(matches!(map.entry(8), Entry::Occupied(entry) if *entry.get() == 0));
    }
}
