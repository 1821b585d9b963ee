use proptest::prelude::*;

use super::*;

fn drawn(seed: u64, early: u64) -> LineDrawn {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    LineDrawn { early, arrivals_hash: [0; 32], seed: bytes }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everybody_has_a_place_of_their_own(seed: u64, early in 0_u64..600) {
        let permutation = Permutation::of(&drawn(seed, early));
        let mut places: Vec<_> = (0..early).map(|number| permutation.place_of(number)).collect();
        places.sort_unstable();
        prop_assert!(places.into_iter().eq(0..early));
        prop_assert_eq!(permutation.place_of(early), early);
    }
}

/// How far the counts are from even ones, in units of what chance does.
fn chi_square(counts: &[u64], expected: f64) -> f64 {
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

#[test]
fn every_number_gets_every_place_equally_often() {
    for early in [2_u64, 5, 16] {
        let draws = 100 * early;
        for number in [0, early - 1] {
            let mut counts = vec![0_u64; usize::try_from(early).unwrap()];
            for seed in 0..draws {
                let place = Permutation::of(&drawn(seed, early)).place_of(number);
                counts[usize::try_from(place).unwrap()] += 1;
            }
            // Chance alone exceeds this once in a hundred thousand runs; the seeds are fixed, so it never will.
            let freedom = (early - 1) as f64;
            let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 10.0;
            let found = chi_square(&counts, 100.0);
            assert!(found < limit, "{early} people, number {number}: {found} > {limit}: {counts:?}");
        }
    }
}

#[test]
fn neighbours_are_parted() {
    let permutation = Permutation::of(&drawn(7, 10_000));
    let ahead = (1..10_000).filter(|n| permutation.place_of(*n) > permutation.place_of(*n - 1)).count();
    assert!((4_800..5_200).contains(&ahead), "{ahead} of 9999 are behind the one who came before them");
}

#[test]
fn hashes_are_told_apart_and_can_be_read() {
    let (line, other) = (Name::new("line", "a").unwrap(), Name::new("line", "b").unwrap());
    let secret = LineSecret([7; 32]);
    let hashes = [
        commitment(&line, &secret),
        commitment(&other, &secret),
        commitment(&line, &LineSecret([8; 32])),
        seed(&line, &secret, &Hash256([0; 32])),
        seed(&line, &secret, &Hash256([1; 32])),
        leaf(&line, &other),
        leaf(&other, &line),
        ArrivalsHash::new(&line).finish(),
    ];
    for (at, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..at].contains(hash));
        assert_eq!(Hash256::parse(&hash.to_string()), Some(*hash));
    }
    for wrong in ["", "12", &"é".repeat(32), &"g".repeat(64), &"+1".repeat(32)] {
        assert_eq!(Hash256::parse(wrong), None, "{wrong}");
    }
}

/// Whoever checks a draw with another program must come to the same result, in years too.
#[test]
fn the_hashes_stay_what_they_are() {
    let line = Name::new("line", "concert").unwrap();
    let secret = LineSecret([1; 32]);
    let mut arrivals = ArrivalsHash::new(&line);
    for user in ["alice", "bob", "carol"] {
        arrivals.add(&leaf(&line, &Name::new("user", user).unwrap()));
    }
    let arrivals = arrivals.finish();
    let seed = seed(&line, &secret, &arrivals);
    let permutation = Permutation::of(&LineDrawn { early: 3, arrivals_hash: arrivals.0, seed: seed.0 });
    let places: Vec<_> = (0..3).map(|number| permutation.place_of(number)).collect();
    let found = format!("{} {arrivals} {seed} {places:?}", commitment(&line, &secret));
    assert_eq!(found, KNOWN);
}

/// Computed by another program.
const KNOWN: &str = "90af95965668a3178f04ee16ac61856de4c9948929df8e23bb924389eaad7c41 \
    ec118570a4adc5ec197a2dab3fb834c8f0f62bae343d5e915aaa2853bdf9e271 \
    a0ce875e75f709342c5d3d1c0121301b76762f6f1a17e2d3a07d4131561ab847 [2, 0, 1]";
