//! At most once per period.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::lock::{LockError, Once, Ran};
use lockgate::testing::eventually_async;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Place, SHORT, SOON, on_both_stores};

fn report(place: &Place, gate: usize, every: Duration) -> Once {
    place.gates[gate].once("report", every).unwrap()
}

fn is_not_due<T: std::fmt::Debug>(ran: &Ran<T>, at_most: Duration) -> bool {
    matches!(ran, Ran::NotDue { next_in } if *next_in <= at_most)
}

on_both_stores! {
    async fn of_many_who_ask_one_does_it_and_again_in_the_next_period(place: 3) {
        let every = Duration::from_millis(600);
        let done = Arc::new(AtomicU32::new(0));
        for period in 1..=2 {
            let began = Clock::system().monotonic();
            let mut all = JoinSet::new();
            for task in 0..30 {
                let (report, done) = (report(&place, task % 3, every), Arc::clone(&done));
                all.spawn(async move { report.run(async { done.fetch_add(1, Ordering::SeqCst) }).await.unwrap() });
            }
            let outcomes = all.join_all().await;
            assert_eq!(outcomes.iter().filter(|ran| matches!(ran, Ran::Done(_))).count(), 1, "{outcomes:?}");
            assert!(outcomes.iter().filter(|ran| is_not_due(ran, every + SHORT / 8)).count() == 29, "{outcomes:?}");
            assert_eq!(done.load(Ordering::SeqCst), period);
            let again = report(&place, 0, every);
            let due = async || again.status().await.unwrap().holder.is_none();
            assert!(eventually_async(SOON, due).await, "it never ends");
            let took = Clock::system().monotonic().since(began);
            assert!(took >= every - Duration::from_millis(50), "{took:?}");
        }
        place.leaves_nothing_behind().await;
    }

    async fn work_that_takes_longer_than_the_period_is_not_done_twice_at_a_time(place: 2) {
        let every = SHORT;
        let turn = match report(&place, 0, every).turn().await.unwrap() {
            Ran::Done(turn) => turn,
            other => panic!("{other:?}"),
        };
        assert!(turn.fence().get() > 0);
        for _ in 0..8 {
            sleep(every / 4).await;
            turn.check().unwrap();
            assert!(is_not_due(&report(&place, 1, every).run(async {}).await.unwrap(), every + SHORT));
        }
        turn.finish().await;
        // The period is over, so the next may begin at once.
        let next = timeout(every / 2, async {
            while !matches!(report(&place, 1, every).run(async {}).await.unwrap(), Ran::Done(())) {
                sleep(Duration::from_millis(5)).await;
            }
        });
        next.await.expect("a turn that took longer than its period was kept after its end");
        place.leaves_nothing_behind().await;
    }

    async fn work_that_fails_gives_its_turn_back(place: 2) {
        let every = Duration::from_secs(60);
        let failed = report(&place, 0, every).try_run(async { Err::<(), _>("no disk") }).await.unwrap();
        assert_eq!(failed, Ran::Done(Err("no disk")));
        let done = report(&place, 1, every).try_run(async { Ok::<_, &str>("written") }).await.unwrap();
        assert_eq!(done, Ran::Done(Ok("written")));
        assert!(is_not_due(&report(&place, 0, every).run(async {}).await.unwrap(), every + SHORT));
        // Unless somebody says so.
        report(&place, 0, every).force_release().await.unwrap();
        assert_eq!(report(&place, 1, every).run(async {}).await.unwrap(), Ran::Done(()));
        place.leaves_nothing_behind().await;
    }

    async fn a_turn_that_is_dropped_counts(place: 2) {
        let every = Duration::from_secs(60);
        drop(report(&place, 0, every).turn().await.unwrap());
        let again = report(&place, 1, every);
        sleep(Duration::from_millis(30)).await;
        assert!(is_not_due(&again.run(async {}).await.unwrap(), every + SHORT));
        place.leaves_nothing_behind().await;
    }
}

/// A process that ends in the middle: its tasks are gone, and nothing is given back.
async fn dies_in_its_turn(url: String, recipe: fn(Once) -> Once) {
    let dying = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let began = dying.spawn(async move {
        let gate = Gate::open(&url).await.unwrap();
        std::mem::forget(recipe(gate.once("report", Duration::from_secs(60)).unwrap()).turn().await.unwrap());
    });
    began.await.unwrap();
    dying.shutdown_background();
}

#[tokio::test]
async fn a_turn_that_dies_with_its_process_counts_unless_it_may_be_taken_again() {
    let redis = super::Redis::start(super::Persistence::Off).unwrap();
    dies_in_its_turn(redis.url(), |once| once.again_after_a_crash(SHORT).unwrap()).await;
    let gate = Gate::open(&redis.url()).await.unwrap();
    let report = gate.once("report", Duration::from_secs(60)).unwrap();
    assert!(is_not_due(&report.run(async {}).await.unwrap(), SHORT * 2));
    let again = async || matches!(report.run(async {}).await.unwrap(), Ran::Done(()));
    assert!(eventually_async(SOON, again).await, "nobody may take it");
    report.force_release().await.unwrap();
    dies_in_its_turn(redis.url(), |once| once).await;
    sleep(SHORT * 2).await;
    let counts = report.run(async {}).await.unwrap();
    assert!(matches!(counts, Ran::NotDue { next_in } if next_in > Duration::from_secs(50)), "{counts:?}");
}

#[tokio::test]
async fn nonsense_is_refused() {
    let gate = Gate::open("memory").await.unwrap();
    assert!(gate.once("", Duration::from_secs(1)).is_err());
    for nonsense in [Duration::ZERO, Duration::from_secs(25 * 3600)] {
        let refused = gate.once("report", nonsense).unwrap_err();
        assert!(refused.to_string().starts_with("every: "), "{refused}");
    }
    let report = gate.once("report", Duration::from_secs(1)).unwrap();
    assert!(report.again_after_a_crash(Duration::from_secs(2)).is_err());
    gate.shutdown().await;
    let closed = gate.once("report", Duration::from_secs(1)).unwrap().run(async {}).await;
    assert!(matches!(closed, Err(LockError::ShuttingDown)));
}
