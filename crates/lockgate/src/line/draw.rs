//! The order of those who came early: drawn once, the same for everybody who computes it.
//!
//! **Promise:** whoever runs the line is bound before anybody has come, and whoever comes cannot steer the draw without knowing
//! the secret. Everything can be computed again by anybody afterwards ([`Audit`](super::Audit)).
//!
//! ```text
//! when the line is made    commitment    = H(secret)                      published at once
//! when it opens            arrivals hash = H(who came, in which order)    fixed by then
//!                          seed          = H(secret ‖ arrivals hash)
//! from then on             place         = permutation of seed (number)   computed, never stored
//! ```
//!
//! **Not promised:** whoever can read the secret in the store *and* let people of their choice arrive last can try many
//! arrival lists until one pleases. Keep the store to yourself, or publish the arrivals hash the moment the line opens.
//!
//! All hashes are SHA-256, each over a text of its own first (`lockgate line … v1`), so that none can be taken for another.

use sha2::{Digest as _, Sha256};

use crate::key::Name;
use crate::store::{LineDrawn, LineSecret};

/// A SHA-256 hash. Shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash256(pub [u8; 32]);

impl std::fmt::Display for Hash256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Hash256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Hash256 {
    /// Reads what [`Display`](std::fmt::Display) wrote.
    #[must_use]
    pub fn parse(hexadecimal: &str) -> Option<Self> {
        if hexadecimal.len() != 64 || !hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hexadecimal.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// A hash over a text that says what it is for, and over a name with its length.
fn hash_for(purpose: &str, line: &Name) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(purpose);
    hash.update((line.as_str().len() as u64).to_be_bytes());
    hash.update(line.as_str());
    hash
}

/// What is published of the secret before anybody comes.
#[must_use]
pub fn commitment(line: &Name, secret: &LineSecret) -> Hash256 {
    let mut hash = hash_for("lockgate line commitment v1", line);
    hash.update(secret.0);
    Hash256(hash.finalize().into())
}

/// What stands for one who came, in the list of arrivals: so that the list can be published without anybody's id.
#[must_use]
pub fn leaf(line: &Name, user: &Name) -> Hash256 {
    let mut hash = hash_for("lockgate line arrival v1", line);
    hash.update(user.as_str());
    Hash256(hash.finalize().into())
}

/// The hash of the list of arrivals, made step by step.
pub(super) struct ArrivalsHash {
    hash: Sha256,
    count: u64,
}

impl ArrivalsHash {
    pub(super) fn new(line: &Name) -> Self {
        Self { hash: hash_for("lockgate line arrivals v1", line), count: 0 }
    }

    pub(super) fn add(&mut self, leaf: &Hash256) {
        self.hash.update(leaf.0);
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Hash256 {
        self.hash.update(self.count.to_be_bytes());
        Hash256(self.hash.finalize().into())
    }
}

/// By what the order is computed.
#[must_use]
pub fn seed(line: &Name, secret: &LineSecret, arrivals: &Hash256) -> Hash256 {
    let mut hash = hash_for("lockgate line seed v1", line);
    hash.update(secret.0);
    hash.update(arrivals.0);
    Hash256(hash.finalize().into())
}

/// The smallest domain has so many bits: a smaller one has too few permutations of this kind.
const FEWEST_BITS: u32 = 8;

/// How often the two halves change places: an even number, so that they end where they began.
const ROUNDS: u8 = 10;

/// A permutation of the numbers below some count, computed one by one: a Feistel network over the next power of two, walked
/// until it comes back among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    seed: [u8; 32],
    count: u64,
    left_bits: u32,
    right_bits: u32,
}

impl Permutation {
    /// The permutation of that draw.
    #[must_use]
    pub fn of(drawn: &LineDrawn) -> Self {
        let bits = (u64::BITS - drawn.early.saturating_sub(1).leading_zeros()).max(FEWEST_BITS);
        Self { seed: drawn.seed, count: drawn.early, left_bits: bits / 2, right_bits: bits - bits / 2 }
    }

    /// The place of that number. Numbers that were not drawn are their own places.
    #[must_use]
    pub fn place_of(&self, number: u64) -> u64 {
        if number >= self.count {
            return number;
        }
        let mut place = self.step(number);
        // It leads back to the number in the end, so it leads through the others that count.
        while place >= self.count {
            place = self.step(place);
        }
        place
    }

    fn step(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value >> self.right_bits, value & mask(self.right_bits));
        let (mut left_bits, mut right_bits) = (self.left_bits, self.right_bits);
        for round in 0..ROUNDS {
            let mixed = left ^ (self.scramble(round, right) & mask(left_bits));
            (left, right) = (right, mixed);
            (left_bits, right_bits) = (right_bits, left_bits);
        }
        left << right_bits | right
    }

    fn scramble(&self, round: u8, half: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update([round]);
        hash.update(half.to_be_bytes());
        let bytes: [u8; 32] = hash.finalize().into();
        bytes[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests;
