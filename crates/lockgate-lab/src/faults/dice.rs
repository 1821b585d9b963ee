//! Chance that can be repeated: everything random in a run comes from its seed.

use std::time::Duration;

/// A generator of numbers (splitmix64): small, and good enough to choose moments.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to before `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from 0 to before 1.
    pub(super) fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.below(1 << 20)).unwrap_or(0)) / f64::from(1 << 20)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// So many milliseconds, in steps of a microsecond.
    pub(super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(from * 1_000 + self.below((to - from) * 1_000))
    }

    /// One of several; there must be one.
    pub(super) fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        let count = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        choices[usize::try_from(self.below(count)).unwrap_or(0)].clone()
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        choices[usize::try_from(self.below(count)).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let (mut one, mut two) = (Dice::new(7), Dice::new(7));
        assert!((0..100).all(|_| one.next() == two.next()));
        assert_ne!(Dice::new(7).next(), Dice::new(8).next());
    }
}
