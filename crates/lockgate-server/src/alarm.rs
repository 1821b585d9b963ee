//! Timers for what nearly always ends in time.
//!
//! **Promise:** an alarm goes off at its time and not before, as a timer of the runtime does. What it does not do is to set such a timer for
//! every request and to take it back again, each time under the lock that all timers share: an alarm that is dropped leaves its timer as
//! it is, for the next alarm. Whoever has it when it goes off too early sets it right, once in as many seconds as alarms are set for.
//! **Not promised:** that a task is forgotten when it ends: the timer that it leaves keeps what wakes it until another alarm takes the
//! timer over, or until it goes off.
//!
//! ```text
//! request 1   until 12:00:30 ─ answered
//! request 2                    until 12:00:31 ─ answered          one timer, set for 12:00:30 all the while
//! …
//! request 9                                    until 12:00:40 ··· woken at 12:00:30: not yet; the timer is set for 12:00:40
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// So many timers are kept for the next alarms.
const MOST_KEPT: usize = 10_000;

/// Where alarms come from that are set for about as long. Clones share their timers.
#[derive(Clone, Default)]
pub(crate) struct Alarms(Arc<Mutex<Vec<Timer>>>);

/// A timer of a runtime, which ends with it.
struct Timer {
    runtime: Id,
    sleep: Pin<Box<Sleep>>,
}

/// Goes off once.
pub(crate) struct Alarm {
    at: Instant,
    /// There until this is dropped.
    timer: Option<Timer>,
    home: Alarms,
}

impl Alarms {
    fn kept(&self) -> MutexGuard<'_, Vec<Timer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::disallowed_methods, reason = "the runtime's own time, which its timers go by")]
    pub(crate) fn after(&self, time: Duration) -> Alarm {
        self.at(Instant::now() + time)
    }

    fn at(&self, at: Instant) -> Alarm {
        let runtime = Handle::current().id();
        let kept = self.kept().pop().filter(|kept| kept.runtime == runtime);
        let mut timer =
            kept.unwrap_or_else(|| Timer { runtime, sleep: Box::pin(tokio::time::sleep_until(at)) });
        // Too early is set right when it goes off; too late would not be.
        if timer.sleep.deadline() > at {
            timer.sleep.as_mut().reset(at);
        }
        Alarm { at, timer: Some(timer), home: self.clone() }
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} timers at rest", self.kept().len())
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let Some(timer) = &mut self.timer else { return Poll::Ready(()) };
        loop {
            ready!(timer.sleep.as_mut().poll(context));
            if timer.sleep.deadline() >= at {
                return Poll::Ready(());
            }
            timer.sleep.as_mut().reset(at);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut kept = self.home.kept();
        if kept.len() < MOST_KEPT {
            kept.extend(self.timer.take());
        }
    }
}

/// For the timeouts of connections.
impl hyper::rt::Timer for Alarms {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(self.after(duration))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(self.at(deadline.into()))
    }
}

impl hyper::rt::Sleep for Alarm {}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::disallowed_methods, reason = "the time of the test's runtime, which stands still")]
    fn now() -> Instant {
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_goes_off_at_its_time_whatever_its_timer_was_set_for() {
        let alarms = Alarms::default();
        // The first sets a timer; the others find it set too early, gone off long ago, and set too late.
        for (pause, set_for) in [(0, 30), (10, 30), (100, 30), (0, 5)] {
            // As a request that is answered at once: its timer was asked, and goes on.
            tokio::time::timeout(SECOND, alarms.after(30 * SECOND)).await.unwrap_err();
            tokio::time::advance(pause * SECOND).await;
            let began = now();
            alarms.after(set_for * SECOND).await;
            let took = now() - began;
            assert!((set_for * SECOND..(set_for + 1) * SECOND).contains(&took), "{took:?} for {set_for} s");
            assert_eq!(alarms.kept().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_are_one_timer_that_is_left_as_it_is() {
        let alarms = Alarms::default();
        let first = alarms.after(30 * SECOND).at;
        for _ in 0..100 {
            tokio::time::advance(SECOND / 10).await;
            let alarm = alarms.after(30 * SECOND);
            assert_eq!(alarm.timer.as_ref().unwrap().sleep.deadline(), first);
            assert!(alarm.at > first);
        }
        assert_eq!(alarms.kept().len(), 1);
    }

    #[test]
    fn the_timer_of_a_runtime_that_has_ended_is_used_by_nobody() {
        let alarms = Alarms::default();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async { alarms.after(SECOND / 1_000).await });
        }
        assert_eq!(alarms.kept().len(), 1);
    }
}
