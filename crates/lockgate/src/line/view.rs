//! Where everybody stands, computed: one answer of the store serves all who watch in this process.

use std::sync::Arc;

use super::facts::Facts;
use super::standing::{Whereabouts, estimate};
use super::watchers::KnownPlace;
use crate::clock::Moment;
use crate::store::{Crowd, LineState, LineTerms, LineTick, Standing};

/// How many places are counted together.
const BLOCK: u64 = 1_024;

/// The line at one moment.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) edition: u64,
    /// Before it was asked for.
    pub(super) as_of: Moment,
    /// How often something had been done to the line here before it was asked for.
    pub(super) changes: u64,
    /// When everybody who watches was last told.
    pub(super) told_at: Moment,
    terms: LineTerms,
    pub(super) crowd: Crowd,
    pub(super) head: u64,
    pub(super) tail: u64,
    /// The number of leaves that the gaps belong to; `None`: nobody has asked for them yet.
    pub(super) leaves: Option<u64>,
    gaps: Arc<Gaps>,
}

/// When the line was asked how it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) as_of: Moment,
    /// How often something had been done to the line here by then.
    pub(super) changes: u64,
}

/// What can be seen of a place.
pub(super) enum Sight {
    /// Where somebody stands.
    At(Whereabouts),
    /// Nobody was there yet: the view is older than the ticket.
    Nothing,
    /// Something has happened to it: only the ticket itself tells what.
    Passed,
}

/// Who has left, from some place on.
#[derive(Clone, Debug, Default)]
struct Gaps {
    from: u64,
    bits: Vec<u8>,
    /// How many before each block.
    before_block: Vec<u64>,
}

impl Gaps {
    fn new(from: u64, bits: Vec<u8>) -> Self {
        let mut before_block = vec![0];
        let mut all = 0;
        for block in bits.chunks(block_bytes()) {
            all += ones(block);
            before_block.push(all);
        }
        Self { from, bits, before_block }
    }

    /// How many have left from `from` up to the place, itself excluded.
    fn before(&self, place: u64) -> u64 {
        let at = place.saturating_sub(self.from).min(self.bits.len() as u64 * 8);
        let block = index(at / BLOCK);
        let counted = self.before_block.get(block).copied().unwrap_or(0);
        let whole_bytes = self.bits.get(block * block_bytes()..index(at / 8)).map_or(0, ones);
        let rest = self
            .bits
            .get(index(at / 8))
            .map_or(0, |byte| u64::from(byte.checked_shr(8 - bit(at)).unwrap_or(0).count_ones()));
        counted + whole_bytes + rest
    }

    fn is_gone(&self, place: u64) -> bool {
        let byte = place.checked_sub(self.from).and_then(|at| self.bits.get(index(at / 8)));
        byte.is_some_and(|byte| byte & 0x80_u8.wrapping_shr(bit(place)) != 0)
    }
}

const fn block_bytes() -> usize {
    (BLOCK / 8) as usize
}

/// Which bit of its byte a place has, the highest being the first.
const fn bit(place: u64) -> u32 {
    (place % 8) as u32
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u32 = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones()).sum();
    u64::from(in_words + rest.iter().map(|byte| byte.count_ones()).sum::<u32>())
}

impl View {
    /// What the tick says; of what it does not say, that is as before.
    pub(super) fn new(facts: &Facts, tick: &LineTick, before: Option<&View>, asked: Asked) -> Self {
        let Asked { as_of, changes } = asked;
        let LineTick { crowd, head, tail, .. } = *tick;
        let (leaves, gaps) = match (&tick.gone, before) {
            (Some(bits), _) => (Some(tick.leaves), Arc::new(Gaps::new(head / 8 * 8, bits.clone()))),
            (None, Some(before)) => (before.leaves, Arc::clone(&before.gaps)),
            (None, None) => (None, Arc::default()),
        };
        Self {
            edition: facts.edition,
            as_of,
            changes,
            told_at: as_of,
            terms: facts.terms,
            crowd,
            head,
            tail,
            leaves,
            gaps,
        }
    }

    /// Where somebody stands who waits at that place.
    pub(super) fn look(&self, KnownPlace { edition, place }: KnownPlace) -> Sight {
        if edition != self.edition {
            return Sight::Passed;
        }
        let waiting = self.crowd.waiting;
        match self.standing(place) {
            _ if place >= self.tail => Sight::Nothing,
            Some(Standing::Early) => Sight::At(Whereabouts::Early { waiting }),
            Some(Standing::Waiting { position }) => {
                let wait = estimate(position, &self.crowd, &self.terms);
                Sight::At(Whereabouts::Waiting { position, waiting, wait })
            }
            _ => Sight::Passed,
        }
    }

    /// How it stands with somebody who waits at that place; nothing, if nobody does.
    pub(super) fn standing(&self, place: u64) -> Option<Standing> {
        match self.crowd.state {
            LineState::Early if self.is_waiting(place) => Some(Standing::Early),
            LineState::Running | LineState::Paused if self.is_waiting(place) => {
                let gaps = self.gaps.before(place) - self.gaps.before(self.head);
                Some(Standing::Waiting { position: place - self.head + 1 - gaps })
            }
            _ => None,
        }
    }

    /// Whether all places are others since, or the line has been stopped or set in motion.
    pub(super) fn is_other_than(&self, before: &View) -> bool {
        (self.edition, self.crowd.state) != (before.edition, before.crowd.state)
    }

    fn is_waiting(&self, place: u64) -> bool {
        (self.head..self.tail).contains(&place) && !self.gaps.is_gone(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn counting_in_blocks_is_counting(
            from in (0_u64..10).prop_map(|from| from * 8),
            bits in prop::collection::vec(any::<u8>(), 0..400),
            place in 0_u64..3_600,
        ) {
            let is_gone = |place: u64| {
                let at = place - from;
                bits.get(usize::try_from(at / 8).unwrap()).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
            };
            let gaps = Gaps::new(from, bits.clone());
            let counted = (from..place.max(from)).filter(|place| is_gone(*place)).count() as u64;
            prop_assert_eq!(gaps.before(place), counted);
            if place >= from {
                prop_assert_eq!(gaps.is_gone(place), is_gone(place));
            }
        }
    }
}
