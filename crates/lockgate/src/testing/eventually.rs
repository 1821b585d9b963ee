//! Waiting for a condition instead of for time: as fast as the machine allows, and bounded.

use std::thread;
use std::time::Duration;

use crate::clock::Clock;

/// Short enough that nobody notices it, long enough to leave the processor to whom we wait for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Whether the condition came true within the bound. Looks at once, then every few milliseconds.
///
/// A test that sleeps is slow on a fast machine and wrong on a slow one; a test that asks again is neither.
///
/// ```
/// use lockgate::testing::eventually;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// let done = AtomicBool::new(false);
/// std::thread::scope(|scope| {
///     scope.spawn(|| done.store(true, Ordering::SeqCst));
///     assert!(eventually(Duration::from_secs(5), || done.load(Ordering::SeqCst)));
/// });
/// ```
#[must_use]
pub fn eventually(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let clock = Clock::system();
    let start = clock.monotonic();
    loop {
        if condition() {
            return true;
        }
        if clock.monotonic().since(start) >= bound {
            return false;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// [`eventually`] for a condition that has to be awaited, and for tests that must not block their runtime.
///
/// The bound is one of real time, also in a runtime whose time is paused.
///
/// # Cancel safety
///
/// Dropping the future drops the condition's future with it; nothing else is held.
pub async fn eventually_async(bound: Duration, mut condition: impl AsyncFnMut() -> bool) -> bool {
    let clock = Clock::system();
    let start = clock.monotonic();
    loop {
        if condition().await {
            return true;
        }
        if clock.monotonic().since(start) >= bound {
            return false;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_never_comes_true_is_given_up_at_the_bound() {
        let clock = Clock::system();
        let start = clock.monotonic();
        assert!(!eventually(Duration::from_millis(20), || false));
        assert!(clock.monotonic().since(start) >= Duration::from_millis(20));
    }

    #[test]
    fn a_condition_that_is_true_already_is_looked_at_once() {
        let mut looks = 0;
        assert!(eventually(Duration::ZERO, || {
            looks += 1;
            true
        }));
        assert_eq!(looks, 1);
    }

    #[tokio::test]
    async fn a_condition_may_be_awaited() {
        let mut looks = 0;
        let came_true = eventually_async(Duration::from_secs(5), async || {
            tokio::task::yield_now().await;
            looks += 1;
            looks == 3
        });
        assert!(came_true.await);
    }
}
