//! What a mutex counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::lock::Released;
use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::eventually_async;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

/// Sums of everything that was recorded, by name and labels.
#[derive(Clone, Default)]
pub(super) struct Sums(Arc<Mutex<HashMap<String, f64>>>);

struct Sum {
    sums: Sums,
    name: String,
}

impl Sum {
    fn add(&self, value: f64) {
        *self.sums.0.lock().unwrap().entry(self.name.clone()).or_default() += value;
    }
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.add(u32::try_from(value).unwrap().into());
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Sum {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        self.sums.0.lock().unwrap().insert(self.name.clone(), value);
    }
}

impl HistogramFn for Sum {
    fn record(&self, value: f64) {
        let is_plausible = !self.name.contains("_seconds") || (0.0..60.0).contains(&value);
        assert!(is_plausible, "{}: {value} s", self.name);
        self.add(1.0);
    }
}

impl Sums {
    fn sum(&self, key: &Key) -> Arc<Sum> {
        let labels: String =
            key.labels().map(|label| format!(" {}={}", label.key(), label.value())).collect();
        Arc::new(Sum { sums: self.clone(), name: format!("{}{labels}", key.name()) })
    }

    pub(super) fn of(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0.0)
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sum(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.sum(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.sum(key))
    }
}

/// Gates on one store, whose clock moves only when told.
fn two_gates(sums: &Sums, clock: &Clock) -> (Gate, Gate) {
    let mut config = Config::default();
    config.clock = clock.clone();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let gate = || Gate::on_with(Arc::clone(&store), &config);
    metrics::with_local_recorder(sums, || (gate(), gate()))
}

/// Returns when the sum is what it should be.
pub(super) async fn reaches(sums: &Sums, name: &str, expected: f64) {
    let is_reached = async || sums.of(name) >= expected;
    assert!(eventually_async(SOON, is_reached).await, "{name} stays at {}", sums.of(name));
    assert_eq!(sums.of(name), expected, "{name}");
}

#[tokio::test]
async fn waits_holds_and_hand_overs_are_counted() {
    let (sums, clock) = (Sums::default(), Clock::fake());
    let (ours, other) = two_gates(&sums, &clock);
    let [mutex, others] = [&ours, &other].map(|gate| gate.mutex("m").unwrap());

    let guard = mutex.lock().await.unwrap();
    let waiters =
        [mutex.clone(), others].map(|mutex| tokio::spawn(async move { mutex.lock().await.map(drop) }));
    // One behind the holder, one in the store's queue.
    let both_wait = async || ours.lock_traces().standing == 1 && mutex.status().await.unwrap().waiting == 1;
    assert!(eventually_async(SOON, both_wait).await);
    assert_eq!(sums.of("lockgate_lock_waiting lock=mutex"), 2.0);
    drop(guard);
    for waiter in waiters {
        timeout(SOON, waiter).await.expect("it waits for ever").unwrap().unwrap();
    }
    assert_eq!(sums.of("lockgate_lock_waiting lock=mutex"), 0.0);
    assert_eq!(
        (sums.of("lockgate_lock_wait_seconds lock=mutex"), sums.of("lockgate_lock_hold_seconds lock=mutex")),
        (3.0, 3.0)
    );
    assert_eq!(sums.of("lockgate_lock_hand_overs_total lock=mutex kind=local"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hand_overs_total lock=mutex kind=remote"), 1.0);

    let _held = mutex.lock().await.unwrap();
    mutex.wait(Duration::from_millis(10)).lock().await.unwrap_err();
    assert_eq!(sums.of("lockgate_lock_timed_out_total lock=mutex"), 1.0);
}

#[tokio::test]
async fn renewals_and_losses_are_counted() {
    let (sums, clock) = (Sums::default(), Clock::fake());
    let (gate, _) = two_gates(&sums, &clock);
    let (mutex, beat) = (gate.mutex("m").unwrap(), Duration::from_millis(100));

    let kept = gate.mutex("kept").unwrap().watchdog(beat * 3).unwrap().lock().await.unwrap();
    let fixed = mutex.lease(beat * 6).unwrap().lock().await.unwrap();
    let token = fixed.cancellation_token();
    // Each renewal of the one shows that the watchdog has looked at what is due. At the last look, a millisecond before the
    // end of the other, that is due too, and still there is nothing to renew.
    for renewals in 1..=6 {
        clock.advance(if renewals == 6 { Duration::from_millis(99) } else { beat });
        reaches(&sums, "lockgate_lock_renewals_total lock=mutex", f64::from(renewals)).await;
    }
    assert_eq!(fixed.release().await.unwrap(), Released::Released);

    gate.mutex("kept").unwrap().force_release().await.unwrap();
    clock.advance(beat);
    timeout(SOON, kept.lost()).await.expect("the watchdog did not notice");
    reaches(&sums, "lockgate_lock_lost_total lock=mutex", 1.0).await;
    drop(kept);

    clock.advance(beat * 12);
    // Whoever would have cancelled the token has gone.
    assert!(eventually_async(SOON, async || gate.lock_traces().expected == 0).await);
    assert!(!token.is_cancelled(), "a lock that was given back in time counts as lost");
    assert_eq!(sums.of("lockgate_lock_lost_total lock=mutex"), 1.0);
    assert_eq!(sums.of("lockgate_lock_renewals_total lock=mutex"), 6.0);
}

#[tokio::test]
async fn every_kind_of_lock_is_counted_under_its_own_name() {
    let (sums, clock) = (Sums::default(), Clock::fake());
    let (ours, other) = two_gates(&sums, &clock);
    let rw = ours.rw_lock("rw").unwrap();
    let (one, two) = (rw.read().await.unwrap(), rw.read().await.unwrap());
    let waiting = tokio::spawn({
        let lock = other.rw_lock("rw").unwrap();
        async move { lock.write().await.unwrap() }
    });
    reaches(&sums, "lockgate_lock_waiting lock=rwlock", 1.0).await;
    drop((one, two));
    drop(timeout(SOON, waiting).await.unwrap().unwrap());
    assert_eq!(sums.of("lockgate_lock_wait_seconds lock=rwlock"), 3.0);
    assert_eq!(sums.of("lockgate_lock_hold_seconds lock=rwlock"), 3.0);
    assert_eq!(sums.of("lockgate_lock_hand_overs_total lock=rwlock kind=remote"), 1.0);
    assert_eq!(sums.of("lockgate_lock_waiting lock=rwlock"), 0.0);

    let semaphore = ours.semaphore("s", 1).unwrap();
    let held = semaphore.acquire().await.unwrap();
    let impatient = semaphore.clone().wait(Duration::from_millis(20)).acquire().await;
    assert!(impatient.is_err());
    drop(held);
    assert_eq!(sums.of("lockgate_lock_timed_out_total lock=semaphore"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hold_seconds lock=semaphore"), 1.0);

    ours.multi_lock(["a", "b"]).unwrap().lock().await.unwrap().release().await.unwrap();
    assert_eq!(sums.of("lockgate_lock_wait_seconds lock=multi"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hold_seconds lock=multi"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hold_seconds lock=mutex"), 2.0);

    let latch = ours.count_down_latch("l").unwrap();
    latch.set(1).await.unwrap();
    latch.count_down().await.unwrap();
    latch.wait().await.unwrap();
    assert_eq!(sums.of("lockgate_lock_wait_seconds lock=latch"), 1.0);

    let mut config = Config::default();
    config.clock = clock.clone();
    let stores = (0..3).map(|_| Arc::new(MemoryStore::new(clock.clone())) as Arc<dyn Store>).collect();
    let quorum = metrics::with_local_recorder(&sums, || lockgate::lock::Quorum::on(stores, &config)).unwrap();
    quorum.mutex("m").unwrap().lock().await.unwrap().release().await.unwrap();
    assert_eq!(sums.of("lockgate_lock_wait_seconds lock=quorum"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hold_seconds lock=quorum"), 1.0);
}
