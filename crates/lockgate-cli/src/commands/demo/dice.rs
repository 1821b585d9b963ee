//! Chance that can be repeated: who comes when and does what follows from the seed.

use std::time::Duration;

use crate::commands::Failure;

/// Throws the same for the same seed (splitmix64).
#[derive(Debug)]
pub(super) struct Dice(u64);

pub(super) fn fresh_seed() -> Result<u32, Failure> {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes)
        .map_err(|why| format!("the system has no randomness to give: {why}; give --seed"))?;
    Ok(u32::from_be_bytes(bytes))
}

impl Dice {
    /// Those of one shopper: what others do does not change them.
    pub(super) fn of(seed: u32, shopper: u32) -> Self {
        let mut dice = Self(u64::from(seed) << 32 | u64::from(shopper));
        dice.throw();
        dice
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.throw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn percent(&mut self) -> u64 {
        self.throw() % 100
    }

    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_and_another_one_does_not() {
        let throws = |seed, shopper| {
            let mut dice = Dice::of(seed, shopper);
            (0..8).map(|_| dice.percent()).collect::<Vec<_>>()
        };
        assert_eq!(throws(7, 1), throws(7, 1));
        assert_ne!(throws(7, 1), throws(8, 1));
        assert_ne!(throws(7, 1), throws(7, 2));
    }
}
