//! Was the machine quiet?
//!
//! The same small computation, timed before every slice. On a quiet machine it always takes the same; where it does
//! not, something else took the core, and the figures beside it deserve doubt.

use std::hint::black_box;

use lockgate::clock::Clock;

/// Above this ratio of the slowest to the fastest measurement a machine counts as noisy.
const NOISY_ABOVE: f64 = 1.15;

const STEPS: u64 = 2_000_000;

#[derive(Default)]
pub(super) struct Yardstick {
    clock: Clock,
}

impl Yardstick {
    /// Microseconds for the fixed computation: the better of two, so that one interrupt does not count as noise.
    pub(super) fn measure(&self) -> f64 {
        self.measure_once().min(self.measure_once())
    }

    fn measure_once(&self) -> f64 {
        let before = self.clock.monotonic();
        let mut state = black_box(88_172_645_463_325_252_u64);
        for _ in 0..STEPS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
        self.clock.monotonic().since(before).as_secs_f64() * 1_000_000.0
    }
}

/// The sentence of doubt, when there is reason for it.
pub(super) fn doubt(measurements: &[f64]) -> Option<String> {
    let fastest = measurements.iter().copied().fold(f64::INFINITY, f64::min);
    let slowest = measurements.iter().copied().fold(0.0, f64::max);
    let ratio = slowest / fastest;
    (ratio > NOISY_ABOVE).then(|| {
        format!(
            "the machine was noisy: the same computation took up to {ratio:.2} times as long between slices; \
             trust the ratios more than the figures, or run it again"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_told_and_quiet_is_not() {
        assert_eq!(doubt(&[100.0, 104.0, 99.0]), None);
        assert!(doubt(&[100.0, 130.0]).is_some_and(|sentence| sentence.contains("1.30 times")));
    }
}
