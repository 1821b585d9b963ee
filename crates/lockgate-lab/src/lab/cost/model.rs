//! The estimate: how many calls, and how late the next one is.

use std::time::Duration;

use serde::Serialize;

use super::millis;
use super::policy::Policy;
use super::round::Measured;

/// W, L and b.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) waiters: u32,
    pub(super) hold: Duration,
    pub(super) backoff: Duration,
}

/// What is to be expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// How many calls a hold costs.
    pub calls: f64,
    /// How that comes about.
    pub formula: &'static str,
    /// How long the lock is free before the next one has it; `None` where that does not depend on b.
    pub delay_ms: Option<f64>,
}

impl Model {
    pub(super) fn of(&self, policy: Policy) -> Prediction {
        let waiters = f64::from(self.waiters);
        let backoff_ms = millis(self.backoff);
        let (calls, formula, delay_ms) = match policy {
            Policy::SpinEvery | Policy::SpinPausing => {
                (self.spinning(self.backoff), "W·⌈L/b⌉", Some(backoff_ms / 2.0))
            }
            // Their pauses differ, so they do not come together: the first of W comes sooner than each of them would.
            Policy::LibrarySpin => {
                (self.spinning(self.backoff), "W·⌈L/b⌉", Some(backoff_ms / (waiters + 1.0)))
            }
            Policy::Notify => (1.0 + waiters, "1 + up to W", None),
            Policy::HandOff => (1.0, "1", None),
        };
        Prediction { calls, formula, delay_ms }
    }

    /// `W·⌈L/p⌉`, if it is `p` from one try to the next.
    fn spinning(&self, period: Duration) -> f64 {
        let tries = self.hold.as_nanos().div_ceil(period.as_nanos().max(1));
        f64::from(self.waiters) * f64::from(u32::try_from(tries).unwrap_or(u32::MAX))
    }

    /// When waiters begin to ask, so that they ask ⌈L/b⌉ times within L and no try falls together with the end of it: half of what
    /// is left of L behind the last whole b.
    pub(super) fn first_try_after(&self) -> Duration {
        let rest = self.hold.as_nanos() % self.backoff.as_nanos().max(1);
        let left = if rest == 0 { self.backoff.min(self.hold) } else { nanos(rest) };
        left / 2
    }

    /// Why more or fewer calls were counted than predicted.
    pub(super) fn why_not(&self, policy: Policy, measured: &Measured) -> String {
        let backoff_ms = millis(self.backoff);
        match (policy, measured.period_ms) {
            (_, Some(period_ms)) => {
                // Without rounding up: over many waiters, what is begun and what is cut off make up for each other.
                let corrected = f64::from(self.waiters) * millis(self.hold) / period_ms.max(backoff_ms);
                let (more, left) = (period_ms - backoff_ms, deviation_percent(measured.calls, corrected));
                format!(
                    "from one try to the next it took {period_ms:.2} ms rather than {backoff_ms} ms: the round trip, and a timer \
                     that goes by whole milliseconds, came to {more:.2} ms. With that, W·L/b is {corrected:.0}, and the \
                     deviation {left:+.1} %"
                )
            }
            (Policy::SpinEvery, None) => {
                "the machine was too busy to ask in time; try with a longer --backoff".to_owned()
            }
            (Policy::SpinPausing | Policy::LibrarySpin, None) => {
                let period_ms = f64::from(self.waiters) * millis(self.hold) / measured.calls.max(1.0);
                format!(
                    "on top of each pause of about {backoff_ms} ms come the round trip and a timer that goes by whole \
                     milliseconds: so many calls are one every {period_ms:.1} ms. The shorter the pause, the more this matters"
                )
            }
            (Policy::Notify, None) => {
                "the estimate says \"up to\": who hears of it late, or wakes up late, may not try before the next is told".to_owned()
            }
            (Policy::HandOff, None) => {
                "somebody who has waited for a second without a word asks whether the word was lost, so a long hold costs a \
                 little more than nothing"
                    .to_owned()
            }
        }
    }
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// By how many per cent the one is more than the other.
pub(super) fn deviation_percent(measured: f64, predicted: f64) -> f64 {
    if predicted > 0.0 { (measured / predicted - 1.0) * 100.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(waiters: u32, hold_ms: u64, backoff_ms: u64) -> Model {
        Model { waiters, hold: Duration::from_millis(hold_ms), backoff: Duration::from_millis(backoff_ms) }
    }

    #[test]
    fn the_example_of_the_estimate_comes_out() {
        // b = 50 ms, L = 500 ms, W = 100: ten tries each, a thousand in all, 25 ms late.
        let spin = model(100, 500, 50).of(Policy::SpinEvery);
        assert_eq!((spin.calls, spin.delay_ms), (1_000.0, Some(25.0)));
        assert_eq!(model(100, 500, 50).of(Policy::Notify).calls, 101.0);
        assert_eq!(model(100, 500, 50).of(Policy::HandOff).calls, 1.0);
    }

    #[test]
    fn a_part_of_a_pause_is_a_try() {
        assert_eq!(model(10, 20, 5).of(Policy::SpinEvery).calls, 40.0);
        assert_eq!(model(10, 21, 5).of(Policy::SpinPausing).calls, 50.0);
        assert_eq!(model(1, 3, 5).of(Policy::LibrarySpin).calls, 1.0);
    }

    #[test]
    fn hand_off_depends_on_nothing() {
        let one = model(1, 1, 1).of(Policy::HandOff);
        assert_eq!(one, model(500, 10_000, 1).of(Policy::HandOff));
    }

    #[test]
    fn tries_that_begin_then_are_as_many_as_predicted() {
        for (hold, backoff) in [(20, 5), (21, 5), (500, 50), (3, 5), (5, 5), (7, 2)] {
            let model = model(1, hold, backoff);
            let (first, mut tries) = (model.first_try_after(), 0);
            while first + model.backoff * tries < model.hold {
                tries += 1;
            }
            assert_eq!(f64::from(tries), model.of(Policy::SpinEvery).calls, "{hold} {backoff}");
        }
    }

    #[test]
    fn a_deviation_has_a_sign() {
        assert_eq!(deviation_percent(110.0, 100.0).round(), 10.0);
        assert_eq!(deviation_percent(90.0, 100.0).round(), -10.0);
        assert_eq!(deviation_percent(90.0, 0.0), 0.0);
    }
}
