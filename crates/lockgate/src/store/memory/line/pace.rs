//! How fast the line moves: measured, recent times counting more.
//!
//! A count of the places passed that fades with time, divided by the time that is left in it. It does not fade while the line
//! stands still on purpose.

use std::time::Duration;

use crate::store::LineTerms;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    passed: f64,
    /// For how long the line has run, in seconds.
    running: f64,
}

impl Pace {
    pub(super) fn go_on(&mut self, step_ms: u64, terms: &LineTerms) {
        let seconds = Duration::from_millis(step_ms).as_secs_f64();
        self.passed *= (-seconds / time_constant(terms)).exp();
        self.running += seconds;
    }

    pub(super) fn passed(&mut self, people: u64) {
        self.passed += u32::try_from(people).map_or(f64::from(u32::MAX), f64::from);
    }

    /// People in a million seconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the number is never negative"
    )]
    pub(super) fn measured(&self, terms: &LineTerms) -> Option<u64> {
        let (time_constant, every) = (time_constant(terms), terms.every.as_secs_f64());
        if self.passed == 0.0 && self.running < every {
            return None;
        }
        // The first batch comes at the beginning of its interval, and counts for all of it.
        let measured_over = time_constant * (1.0 - (-(self.running + every) / time_constant).exp());
        Some((self.passed / measured_over * 1e6).round() as u64)
    }
}

/// In seconds: long enough to see several batches.
fn time_constant(terms: &LineTerms) -> f64 {
    (5.0 * terms.every.as_secs_f64()).max(10.0)
}
