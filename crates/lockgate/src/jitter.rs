//! Pauses that are not all alike.

use std::time::Duration;

/// The pause, give or take a half, so that those who failed together do not come back together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let mut byte = [128];
    // Without randomness, the pause itself will do.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.5 + f64::from(byte[0]) / 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread() {
        let second = Duration::from_secs(1);
        let pauses: Vec<_> = (0..100).map(|_| jittered(second)).collect();
        assert!(pauses.iter().all(|pause| (second / 2..=second * 3 / 2).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause < second) && pauses.iter().any(|pause| *pause > second));
    }
}
