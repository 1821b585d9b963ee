//! The places that were left before the head came to them, counted in blocks: so that a position costs the same however long
//! the line is.

use std::collections::BTreeMap;

/// How many places are counted together.
const BLOCK: u64 = 1_024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// How many in each block; none of them is zero.
    by_block: BTreeMap<u64, u64>,
    all: u64,
}

impl Gaps {
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn add(&mut self, place: u64) {
        *self.by_block.entry(place / BLOCK).or_default() += 1;
        self.all += 1;
    }

    pub(super) fn remove(&mut self, place: u64) {
        let block = place / BLOCK;
        if let Some(count) = self.by_block.get_mut(&block) {
            *count -= 1;
            self.all -= 1;
            if *count == 0 {
                self.by_block.remove(&block);
            }
        }
    }

    /// How many are before that place.
    pub(super) fn before(&self, place: u64, is_gap: impl Fn(u64) -> bool) -> u64 {
        let block = place / BLOCK;
        let whole_blocks: u64 = self.by_block.range(..block).map(|(_, count)| count).sum();
        if !self.by_block.contains_key(&block) {
            return whole_blocks;
        }
        let in_its_block = (block * BLOCK..place).filter(|place| is_gap(*place)).count();
        whole_blocks + in_its_block as u64
    }
}
