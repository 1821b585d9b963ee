//! The only place that reads a clock.
//!
//! Two clocks, because they answer different questions and must never be mixed up:
//!
//! - [`Clock::monotonic`] answers *how long ago?* It never goes back, and on Linux it goes on while the machine
//!   is suspended (`CLOCK_BOOTTIME`), so a laptop that slept through a lease knows that the lease is gone. It is
//!   the same for all processes of one machine.
//! - [`Clock::wall`] answers *what time is it?* It may jump. Only a store's home uses it: opening windows and
//!   fences go by the clock of the store, never by that of a caller.
//!
//! Everything else takes a [`Clock`] by value, so that a test can hand in one that stands still until told
//! otherwise (`Clock::fake`, feature `testing`). Clippy's `disallowed-methods` keeps it that way.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where time comes from. Cheap to clone; all clones of a fake clock show the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    fake: Option<Arc<Fake>>,
}

/// What a fake clock shows.
#[derive(Debug)]
struct Fake {
    /// Nanoseconds since boot.
    nanos: AtomicU64,
    /// Microseconds from 1970 to boot, as the wall clock has it now.
    booted_at: AtomicU64,
}

/// The wall time at which a fake clock was "booted": 2026-01-01T00:00:00Z.
#[cfg(any(test, feature = "testing"))]
const FAKE_BOOT: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

impl Clock {
    /// The clock of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self { fake: None }
    }

    /// A clock that stands still until [`Clock::advance`] moves it.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn fake() -> Self {
        let (nanos, booted_at) = (AtomicU64::new(0), AtomicU64::new(FAKE_BOOT.as_micros()));
        Self { fake: Some(Arc::new(Fake { nanos, booted_at })) }
    }

    #[cfg(any(test, feature = "testing"))]
    #[expect(clippy::panic, reason = "a test that moves the real time is wrong in a way worth stopping for")]
    fn faked(&self) -> &Fake {
        match &self.fake {
            Some(fake) => fake,
            None => panic!("only a fake clock can be moved"),
        }
    }

    /// Moves a fake clock forward, for all its clones at once.
    ///
    /// # Panics
    ///
    /// When this is the system's clock, which goes by itself.
    #[cfg(any(test, feature = "testing"))]
    pub fn advance(&self, by: Duration) {
        self.faked().nanos.fetch_add(saturating_nanos(by), Ordering::SeqCst);
    }

    /// Sets the wall time of a fake clock forward, for all its clones at once. The monotonic clock does not notice.
    ///
    /// # Panics
    ///
    /// When this is the system's clock.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_forward(&self, by: Duration) {
        self.faked().booted_at.fetch_add(saturating_micros(by), Ordering::SeqCst);
    }

    /// Sets the wall time of a fake clock back, for all its clones at once. The monotonic clock does not notice.
    ///
    /// # Panics
    ///
    /// When this is the system's clock.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_back(&self, by: Duration) {
        self.faked().booted_at.fetch_sub(saturating_micros(by), Ordering::SeqCst);
    }

    /// How far this machine's time has run. Never goes back.
    #[must_use]
    pub fn monotonic(&self) -> Moment {
        match &self.fake {
            Some(fake) => Moment(fake.nanos.load(Ordering::SeqCst)),
            None => Moment(nanos_since_boot()),
        }
    }

    /// Returns at `moment`. It wakes up now and then, because the runtime's own timers may stand still while the machine
    /// is suspended, and know nothing of a fake clock.
    pub(crate) async fn sleep_until(&self, moment: Moment) {
        let longest_nap = Duration::from_millis(if self.fake.is_some() { 1 } else { 1_000 });
        loop {
            let left = moment.since(self.monotonic());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(longest_nap)).await;
        }
    }

    /// What time this machine believes it is. May jump in both directions.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match &self.fake {
            Some(fake) => {
                let booted_at = Timestamp::from_micros(fake.booted_at.load(Ordering::SeqCst));
                booted_at + Duration::from_nanos(fake.nanos.load(Ordering::SeqCst))
            }
            None => system_wall(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
fn system_wall() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

#[cfg(target_os = "linux")]
fn nanos_since_boot() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Elsewhere the standard library's clock has to do; it may stop during suspend (`docs/guarantees.md`).
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
fn nanos_since_boot() -> u64 {
    use std::sync::OnceLock;
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    saturating_nanos(START.get_or_init(std::time::Instant::now).elapsed())
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn saturating_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A point on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Nanoseconds since the machine booted.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// How long this comes after `earlier`; zero when it does not.
    #[must_use]
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, by: Duration) -> Moment {
        Moment(self.0.saturating_add(saturating_nanos(by)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, by: Duration) -> Moment {
        Moment(self.0.saturating_sub(saturating_nanos(by)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:?}", Duration::from_nanos(self.0))
    }
}

/// A wall time, in microseconds since 1970-01-01T00:00:00Z: what Redis' `TIME` gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "durable", serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time that lies so many microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The time that lies so many milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// How long this comes after `earlier`; zero when it does not.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, by: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(saturating_micros(by)))
    }
}

impl From<SystemTime> for Timestamp {
    /// Times before 1970 become 1970: nothing that Lockgate opens or closes lies there.
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fake_clock_moves_only_when_told_and_moves_all_its_clones() {
        let clock = Clock::fake();
        let clone = clock.clone();
        let (moment, wall) = (clone.monotonic(), clone.wall());
        assert_eq!(clone.monotonic(), moment);

        clock.advance(Duration::from_secs(3));

        assert_eq!(clone.monotonic().since(moment), Duration::from_secs(3));
        assert_eq!(clone.wall().since(wall), Duration::from_secs(3));
    }

    #[test]
    fn a_fake_wall_clock_can_be_set_and_the_other_one_does_not_notice() {
        let clock = Clock::fake();
        let (moment, wall) = (clock.monotonic(), clock.wall());
        clock.set_forward(Duration::from_secs(7));
        assert_eq!((clock.monotonic(), clock.wall()), (moment, wall + Duration::from_secs(7)));
        clock.set_back(Duration::from_secs(10));
        assert_eq!((clock.monotonic(), wall.since(clock.wall())), (moment, Duration::from_secs(3)));
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = Clock::system();
        let mut last = clock.monotonic();
        for _ in 0..10_000 {
            let now = clock.monotonic();
            assert!(now >= last, "{now:?} came after {last:?}");
            last = now;
        }
    }

    #[test]
    fn times_saturate_instead_of_wrapping() {
        assert_eq!((Moment(u64::MAX - 1) + Duration::from_secs(9)).as_nanos(), u64::MAX);
        assert_eq!(Moment(1).since(Moment(2)), Duration::ZERO);
        assert_eq!(Timestamp::from_micros(1).since(Timestamp::from_micros(2)), Duration::ZERO);
    }
}
