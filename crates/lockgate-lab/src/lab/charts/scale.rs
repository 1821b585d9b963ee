//! Where a value stands between the first and the last, and at which values lines are drawn.

/// When the largest is more than so many times the smallest, the small ones would be invisible on an even scale.
const UNEVEN_FROM: f64 = 30.0;

/// About so many lines are drawn.
const STEPS: f64 = 4.0;

/// From a value to a place between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// One on which all these values can be told apart. Those that are no positive numbers do not count.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let bounds = |(least, most): (f64, f64), value: f64| (least.min(value), most.max(value));
        let (least, most) = usable.fold((f64::MAX, 0.0), bounds);
        if most <= 0.0 {
            return Self { low: 0.0, high: 1.0, is_log: false };
        }
        if most / least > UNEVEN_FROM {
            return Self { low: 10_f64.powf(least.log10().floor()), high: most * 1.1, is_log: true };
        }
        let step = nice_step(most / STEPS);
        Self { low: 0.0, high: (most / step).ceil() * step, is_log: false }
    }

    pub(super) fn is_log(&self) -> bool {
        self.is_log
    }

    /// 0 at the lower end, 1 at the upper one; what lies beyond is put there.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The values at which lines are drawn, smallest first.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let (mut tick, mut ticks) = (self.low, Vec::new());
        let step = nice_step(self.high / STEPS);
        while tick <= self.high * 1.000_001 {
            ticks.push(tick);
            tick = if self.is_log { tick * 10.0 } else { tick + step };
        }
        ticks
    }
}

/// 1, 2 or 5 with noughts: the next that is at least this.
fn nice_step(at_least: f64) -> f64 {
    let power = 10_f64.powf(at_least.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= at_least * 0.999_999);
    nice.unwrap_or(10.0) * power
}

/// A figure as people write it: no more digits than mean something.
pub(super) fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => grouped(value),
        value if value >= 10.0 => trimmed(format!("{value:.1}")),
        value => trimmed(format!("{value:.2}")),
    }
}

fn trimmed(text: String) -> String {
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `12,345`.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_close_stand_on_an_even_scale_that_begins_at_nothing() {
        let scale = Scale::of([30.0, 120.0, 95.0].into_iter());
        assert!(!scale.is_log());
        assert_eq!(scale.ticks(), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!((scale.place(0.0), scale.place(75.0), scale.place(150.0)), (0.0, 0.5, 1.0));
    }

    #[test]
    fn values_that_are_far_apart_stand_on_powers_of_ten() {
        let scale = Scale::of([4.0, 9_000.0].into_iter());
        assert!(scale.is_log());
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0, 1_000.0]);
        assert!(scale.place(10.0) < scale.place(100.0) && scale.place(9_000.0) < 1.0);
    }

    #[test]
    fn nothing_and_nonsense_have_a_place_too() {
        for scale in [Scale::of(std::iter::empty()), Scale::of([0.0, f64::NAN, f64::INFINITY].into_iter())] {
            assert_eq!(scale.place(0.5), 0.5);
        }
        let scale = Scale::of([7.0].into_iter());
        assert_eq!((scale.place(f64::NAN), scale.place(-1.0), scale.place(1e9)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        let figures = [1_234_567.8, 999.6, 42.04, 7.0, 0.256, 0.0].map(figure);
        assert_eq!(figures, ["1,234,568", "1,000", "42", "7", "0.26", "0"]);
    }
}
