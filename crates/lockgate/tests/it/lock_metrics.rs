//! What a mutex counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockgate::Gate;
use lockgate::testing::eventually_async;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Sums of everything that was recorded, by name and labels.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<HashMap<String, f64>>>);

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
    fn set(&self, _: f64) {}
}

impl HistogramFn for Sum {
    fn record(&self, value: f64) {
        assert!((0.0..60.0).contains(&value), "{}: {value} s", self.name);
        self.add(1.0);
    }
}

impl Sums {
    fn sum(&self, key: &Key) -> Arc<Sum> {
        let labels: String =
            key.labels().map(|label| format!(" {}={}", label.key(), label.value())).collect();
        Arc::new(Sum { sums: self.clone(), name: format!("{}{labels}", key.name()) })
    }

    fn of(&self, name: &str) -> f64 {
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

#[tokio::test]
async fn waits_holds_hand_overs_renewals_and_losses_are_counted() {
    let sums = Sums::default();
    let first = Gate::open("memory").await.unwrap();
    let store = first.store();
    let (ours, other) =
        metrics::with_local_recorder(&sums, || (Gate::on(store.clone()), Gate::on(store.clone())));
    let [mutex, others] = [&ours, &other].map(|gate| gate.mutex("m").unwrap());

    let guard = mutex.lock().await.unwrap();
    let waiters =
        [mutex.clone(), others].map(|mutex| tokio::spawn(async move { mutex.lock().await.map(drop) }));
    assert!(eventually_async(Duration::from_secs(5), async || sums.of("lockgate_lock_waiting") >= 2.0).await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(guard);
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    assert_eq!(sums.of("lockgate_lock_waiting"), 0.0);
    assert_eq!((sums.of("lockgate_lock_wait_seconds"), sums.of("lockgate_lock_hold_seconds")), (3.0, 3.0));
    assert_eq!(sums.of("lockgate_lock_hand_overs_total kind=local"), 1.0);
    assert_eq!(sums.of("lockgate_lock_hand_overs_total kind=remote"), 1.0);

    let kept = mutex.clone().watchdog(Duration::from_millis(300)).unwrap().lock().await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(sums.of("lockgate_lock_renewals_total") >= 2.0);
    mutex.force_release().await.unwrap();
    kept.lost().await;
    assert_eq!(sums.of("lockgate_lock_lost_total"), 1.0);

    let renewals = sums.of("lockgate_lock_renewals_total");
    let fixed = mutex.clone().lease(Duration::from_millis(600)).unwrap().lock().await.unwrap();
    let token = fixed.cancellation_token();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let more = sums.of("lockgate_lock_renewals_total") - renewals;
    assert!(more <= 1.0, "a fixed lease was renewed {more} times");
    fixed.release().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert!(!token.is_cancelled(), "a lock that was given back in time counts as lost");

    let _held = mutex.lock().await.unwrap();
    mutex.wait(Duration::from_millis(10)).lock().await.unwrap_err();
    assert_eq!(sums.of("lockgate_lock_timed_out_total"), 1.0);
}
