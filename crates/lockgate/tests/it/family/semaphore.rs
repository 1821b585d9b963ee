//! So many at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::{LockError, PermitGuard, Released, Semaphore};
use lockgate::testing::eventually_async;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{Place, SHORT, SOON, assert_free, on_both_stores};

fn semaphore(place: &Place, gate: usize, permits: u32) -> Semaphore {
    place.gates[gate].semaphore("exports", permits).unwrap()
}

async fn waiting(place: &Place) -> usize {
    let in_the_store = semaphore(place, 0, 1).status().await.unwrap().waiting;
    usize::try_from(in_the_store).unwrap() + place.standing()
}

/// Begins to wait for so many, and returns when it has its place.
async fn waits(
    place: &Place,
    semaphore: Semaphore,
    permits: u32,
) -> JoinHandle<Result<PermitGuard, LockError>> {
    let before = waiting(place).await;
    let waiter = tokio::spawn(async move { semaphore.acquire_many(permits).await });
    assert!(eventually_async(SOON, async || waiting(place).await > before).await, "it has no place");
    waiter
}

async fn has_it(waiter: JoinHandle<Result<PermitGuard, LockError>>) -> PermitGuard {
    timeout(SOON, waiter).await.expect("it waits for ever").unwrap().unwrap()
}

async fn all_have_it<const N: usize>(
    waiters: [JoinHandle<Result<PermitGuard, LockError>>; N],
) -> Vec<PermitGuard> {
    let mut all = Vec::new();
    for waiter in waiters {
        all.push(has_it(waiter).await);
    }
    all
}

async fn is_free(place: &Place) {
    place.leaves_nothing_behind().await;
    assert!(eventually_async(SOON, async || semaphore(place, 0, 1).status().await.unwrap().taken == 0).await);
    assert_free(&semaphore(place, 0, 1).status().await.unwrap());
}

async fn crowd(place: &Place, total: u32, recipe: fn(Semaphore) -> Semaphore) {
    let (taken, mut crowd) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    for task in 0..30_u32 {
        let gate = usize::try_from(task).unwrap() % place.gates.len();
        let (semaphore, taken) = (recipe(semaphore(place, gate, total)), Arc::clone(&taken));
        crowd.spawn(async move {
            for round in 0..40 {
                let wanted = 1 + (task + round) % 3;
                if round % 7 == 3 {
                    let _ =
                        timeout(Duration::from_micros(u64::from(task) * 30), semaphore.acquire_many(wanted))
                            .await;
                    continue;
                }
                let guard = semaphore.acquire_many(wanted).await.unwrap();
                let now = taken.fetch_add(wanted, Ordering::SeqCst) + wanted;
                assert!(now <= total, "{now} of {total} are taken");
                tokio::task::yield_now().await;
                taken.fetch_sub(wanted, Ordering::SeqCst);
                if round % 2 == 0 {
                    drop(guard);
                } else {
                    assert_eq!(guard.release().await.unwrap(), Released::Released);
                }
            }
        });
    }
    timeout(Duration::from_secs(90), crowd.join_all()).await.expect("somebody waits for ever");
    is_free(place).await;
}

on_both_stores! {
    async fn as_many_as_there_are_permits_and_no_more(place: 2) {
        let [ours, theirs] = [0, 1].map(|gate| semaphore(&place, gate, 3));
        let one = ours.acquire().await.unwrap();
        let two = theirs.acquire_many(2).await.unwrap();
        assert_eq!((one.permits(), two.permits()), (1, 2));
        assert!(ours.try_acquire().await.unwrap().is_none() && theirs.try_acquire().await.unwrap().is_none());
        assert_eq!(two.release().await.unwrap(), Released::Released);
        let rest = ours.try_acquire_many(2).await.unwrap().unwrap();
        assert!(theirs.try_acquire().await.unwrap().is_none());
        drop((one, rest));
        is_free(&place).await;
    }

    async fn who_wants_many_is_not_starved_by_those_who_want_one(place: 3) {
        let mut small = JoinSet::new();
        for task in 0..9 {
            let semaphore = semaphore(&place, task % 3, 4);
            small.spawn(async move {
                loop {
                    let guard = semaphore.acquire().await.unwrap();
                    sleep(Duration::from_millis(3)).await;
                    drop(guard);
                }
            });
        }
        sleep(Duration::from_millis(50)).await;
        for round in 0..8 {
            let many = semaphore(&place, round % 3, 4);
            drop(timeout(SOON, many.acquire_many(4)).await.expect("starved").unwrap());
        }
        small.shutdown().await;
        is_free(&place).await;
    }

    async fn who_comes_later_does_not_overtake_even_if_there_is_enough_for_it(place: 2) {
        let one = semaphore(&place, 0, 3).acquire().await.unwrap();
        let all = waits(&place, semaphore(&place, 0, 3), 3).await;
        let behind = [waits(&place, semaphore(&place, 0, 3), 1).await, waits(&place, semaphore(&place, 1, 3), 1).await];
        assert!(semaphore(&place, 1, 3).try_acquire().await.unwrap().is_none());
        sleep(Duration::from_millis(30)).await;
        assert!(behind.iter().all(|waiter| !waiter.is_finished()), "overtaken");
        drop(one);
        let all = has_it(all).await;
        assert!(behind.iter().all(|waiter| !waiter.is_finished()));
        drop(all);
        for waiter in behind {
            drop(has_it(waiter).await);
        }
        is_free(&place).await;
    }

    async fn one_that_goes_away_lets_those_behind_it_in(place: 2) {
        let one = semaphore(&place, 0, 3).acquire().await.unwrap();
        let all = waits(&place, semaphore(&place, 0, 3), 3).await;
        let behind = [waits(&place, semaphore(&place, 0, 3), 1).await, waits(&place, semaphore(&place, 1, 3), 1).await];
        all.abort();
        // Sooner than they would ask by themselves.
        let told = timeout(Duration::from_secs(3), all_have_it(behind)).await;
        drop(told.expect("nobody tells them"));
        drop(one);
        is_free(&place).await;
    }

    async fn nonsense_is_refused_and_nothing_is_taken(place: 1) {
        let gate = &place.gates[0];
        assert_eq!(
            gate.semaphore("exports", 0).unwrap_err().to_string(),
            "permits: a semaphore has 1 to 1000000 permits, not 0"
        );
        assert!(gate.semaphore("exports", 1_000_001).is_err() && gate.semaphore("", 3).is_err());
        let semaphore = semaphore(&place, 0, 3);
        let none = semaphore.acquire_many(0).await.unwrap_err();
        assert_eq!(none.to_string(), "permits: 0 of them is nothing; name at least one, or release them");
        for refused in [semaphore.acquire_many(4).await, semaphore.try_acquire_many(4).await.map(Option::unwrap)] {
            assert_eq!(
                refused.unwrap_err().to_string(),
                "permits: 4 of \"exports\" can never be had, there are 3; ask for fewer, or raise their number"
            );
        }
        let held = semaphore.acquire().await.unwrap();
        for absurd in [u32::MAX, u32::MAX - 1, 1_000_001] {
            let refused = semaphore.try_acquire_many(absurd).await.unwrap_err();
            assert!(refused.to_string().contains("can never be had"), "{refused}");
            assert!(semaphore.acquire_many(absurd).await.is_err());
        }
        held.release().await.unwrap();
        let refused = semaphore.set_permits(0).await.unwrap_err();
        assert!(refused.to_string().contains("permits"), "{refused}");
        is_free(&place).await;
    }

    async fn more_permits_let_waiters_in_at_once(place: 2) {
        let held = semaphore(&place, 0, 1).acquire().await.unwrap();
        let waiters = [waits(&place, semaphore(&place, 1, 1), 1).await, waits(&place, semaphore(&place, 1, 1), 1).await];
        semaphore(&place, 0, 1).set_permits(3).await.unwrap();
        for waiter in waiters {
            drop(has_it(waiter).await);
        }
        drop(held);
        // Whatever number others give.
        let many = semaphore(&place, 1, 1).acquire_many(3).await.unwrap();
        drop(many);
        semaphore(&place, 0, 1).reset_permits().await.unwrap();
        let is_back = async || semaphore(&place, 0, 1).try_acquire_many(3).await.is_err();
        assert!(eventually_async(SOON, is_back).await, "the number stays");
        is_free(&place).await;
    }

    async fn fewer_permits_take_nothing_away_and_are_kept_to_also_where_they_are_passed_on(place: 1) {
        let inside = Arc::new(AtomicU32::new(0));
        let mut crowd = JoinSet::new();
        for _ in 0..20 {
            let (semaphore, inside) = (semaphore(&place, 0, 8), Arc::clone(&inside));
            crowd.spawn(async move {
                loop {
                    let guard = semaphore.acquire().await.unwrap();
                    inside.fetch_add(1, Ordering::SeqCst);
                    sleep(Duration::from_millis(1)).await;
                    guard.check().unwrap();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
        assert!(eventually_async(SOON, async || inside.load(Ordering::SeqCst) == 8).await);
        semaphore(&place, 0, 8).set_permits(2).await.unwrap();
        assert!(eventually_async(SOON, async || inside.load(Ordering::SeqCst) <= 2).await, "it stays as it was");
        for _ in 0..50 {
            assert!(inside.load(Ordering::SeqCst) <= 2);
            sleep(Duration::from_millis(1)).await;
        }
        crowd.shutdown().await;
        is_free(&place).await;
    }

    async fn who_waits_for_more_than_are_left_is_told_and_stands_in_nobodys_way(place: 2) {
        let held = semaphore(&place, 0, 4).acquire_many(2).await.unwrap();
        let too_many = waits(&place, semaphore(&place, 0, 4), 4).await;
        let behind = waits(&place, semaphore(&place, 1, 4), 1).await;
        semaphore(&place, 1, 4).set_permits(3).await.unwrap();
        drop(has_it(behind).await);
        let told = timeout(SOON, too_many).await.expect("it waits for ever").unwrap().unwrap_err();
        assert!(told.to_string().contains("there are 3"), "{told}");
        held.check().unwrap();
        drop(held);
        is_free(&place).await;
    }

    async fn the_watchdog_keeps_permits_and_a_fixed_lease_ends(place: 2) {
        let kept = semaphore(&place, 0, 2).watchdog(SHORT).unwrap().acquire().await.unwrap();
        let fixed = semaphore(&place, 0, 2).lease(SHORT).unwrap().acquire().await.unwrap();
        assert!(semaphore(&place, 1, 2).try_acquire().await.unwrap().is_none());
        let next = timeout(SOON, semaphore(&place, 1, 2).acquire()).await.expect("it does not end").unwrap();
        assert!(fixed.check().is_err());
        sleep(SHORT).await;
        kept.check().unwrap();
        drop((kept, fixed, next));
        is_free(&place).await;
    }

    async fn taken_away_by_force_all_lose_them(place: 2) {
        let held = semaphore(&place, 0, 2).watchdog(SHORT).unwrap().acquire_many(2).await.unwrap();
        semaphore(&place, 1, 2).force_release().await.unwrap();
        drop(semaphore(&place, 1, 2).try_acquire_many(2).await.unwrap().expect("they are not free"));
        timeout(SOON, held.lost()).await.expect("it was not told");
        drop(held);
        is_free(&place).await;
    }

    async fn a_crowd_with_cohorts_never_takes_too_many(place: 3) {
        crowd(&place, 5, |semaphore| semaphore).await;
    }

    async fn a_crowd_without_cohorts_never_takes_too_many(place: 3) {
        crowd(&place, 5, |semaphore| semaphore.cohort(None)).await;
    }
}

#[tokio::test]
async fn permits_of_a_process_that_is_gone_come_back_with_their_lease() {
    let redis = super::Redis::start(super::Persistence::Off).unwrap();
    let dying = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let url = redis.url();
    let taken = dying.spawn(async move {
        let gate = Gate::open(&url).await.unwrap();
        let semaphore = gate.semaphore("exports", 3).unwrap().watchdog(SHORT).unwrap();
        std::mem::forget(semaphore.acquire_many(3).await.unwrap());
    });
    taken.await.unwrap();
    // Its tasks are gone, and nothing is given back: as if the process were dead.
    dying.shutdown_background();
    let gate = Gate::open(&redis.url()).await.unwrap();
    let semaphore = gate.semaphore("exports", 3).unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let guard = timeout(SOON, semaphore.acquire_many(3)).await.expect("they never come back").unwrap();
    drop(guard);
}
