//! Readers and writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use lockgate::lock::{LockError, Owner, ReadGuard, Released, RwLock, WriteGuard};
use lockgate::store::WRITER;
use lockgate::testing::eventually_async;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{Place, SHORT, SOON, assert_free, on_both_stores};

fn lock_of(place: &Place, gate: usize) -> RwLock {
    place.gates[gate].rw_lock("prices").unwrap()
}

async fn waiting(place: &Place) -> usize {
    let in_the_store = lock_of(place, 0).status().await.unwrap().waiting;
    usize::try_from(in_the_store).unwrap() + place.standing()
}

/// Begins to wait to write, and returns when it has its place.
async fn writer_waits(place: &Place, lock: RwLock) -> JoinHandle<Result<WriteGuard, LockError>> {
    let before = waiting(place).await;
    let waiter = tokio::spawn(async move { lock.write().await });
    assert!(eventually_async(SOON, async || waiting(place).await > before).await, "it has no place");
    waiter
}

async fn reader_waits(place: &Place, lock: RwLock) -> JoinHandle<Result<ReadGuard, LockError>> {
    let before = waiting(place).await;
    let waiter = tokio::spawn(async move { lock.read().await });
    assert!(eventually_async(SOON, async || waiting(place).await > before).await, "it has no place");
    waiter
}

async fn has_it<T>(waiter: JoinHandle<Result<T, LockError>>) -> T {
    timeout(SOON, waiter).await.expect("it waits for ever").unwrap().unwrap()
}

/// What the lock protects, and who is in it: readers are counted up, a writer makes it a million less.
#[derive(Default)]
struct Hall {
    inside: AtomicI64,
    most_readers: AtomicI64,
    last_fence: AtomicU64,
    written: AtomicU64,
}

const A_WRITER: i64 = -1_000_000;

impl Hall {
    fn reader_enters(&self) {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now > 0, "a reader beside a writer");
        self.most_readers.fetch_max(now, Ordering::SeqCst);
    }

    fn reader_leaves(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn writer_enters(&self, fence: u64) {
        assert_eq!(self.inside.fetch_add(A_WRITER, Ordering::SeqCst), 0, "a writer beside somebody");
        assert!(self.last_fence.swap(fence, Ordering::SeqCst) < fence, "the fence did not rise");
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    fn writer_leaves(&self) {
        self.inside.fetch_sub(A_WRITER, Ordering::SeqCst);
    }
}

async fn works(lock: RwLock, hall: Arc<Hall>, rounds: u64, seed: u64) {
    let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..rounds {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = (dice >> 33) % 100;
        if roll < 25 {
            let guard = lock.write().await.unwrap();
            hall.writer_enters(guard.fence().get());
            tokio::task::yield_now().await;
            hall.writer_leaves();
            if roll < 6 {
                // Goes on as a reader: from here on readers may be beside it, and no writer.
                hall.reader_enters();
                let guard = guard.downgrade().await.unwrap();
                tokio::task::yield_now().await;
                hall.reader_leaves();
                drop(guard);
            } else {
                assert_eq!(guard.release().await.unwrap(), Released::Released);
            }
        } else if roll < 35 {
            // Whoever goes away while it waits must leave nothing behind.
            let _ = timeout(Duration::from_micros(roll * 40), lock.read()).await;
            let _ = timeout(Duration::from_micros(roll * 40), lock.write()).await;
        } else {
            let guard = lock.read().await.unwrap();
            hall.reader_enters();
            tokio::task::yield_now().await;
            guard.check().unwrap();
            hall.reader_leaves();
            drop(guard);
        }
    }
}

async fn crowd(place: &Place, recipe: fn(RwLock) -> RwLock) {
    let (hall, mut crowd) = (Arc::new(Hall::default()), JoinSet::new());
    for task in 0..24_u64 {
        let gate = usize::try_from(task).unwrap() % place.gates.len();
        crowd.spawn(works(recipe(lock_of(place, gate)), Arc::clone(&hall), 60, task + 1));
    }
    timeout(Duration::from_secs(90), crowd.join_all()).await.expect("somebody waits for ever");
    assert_eq!(hall.inside.load(Ordering::SeqCst), 0);
    assert!(hall.written.load(Ordering::SeqCst) > 100);
    place.leaves_nothing_behind().await;
    assert!(
        eventually_async(SOON, async || lock_of(place, 0).status().await.unwrap().taken == 0).await,
        "{:?}",
        lock_of(place, 0).status().await
    );
    assert_free(&lock_of(place, 0).status().await.unwrap());
}

on_both_stores! {
    async fn readers_share_it_and_a_writer_has_it_alone(place: 2) {
        let [ours, theirs] = [0, 1].map(|gate| lock_of(&place, gate));
        let (one, two, three) = (ours.read().await.unwrap(), ours.read().await.unwrap(), theirs.read().await.unwrap());
        assert_ne!(one.id(), two.id());
        assert!(ours.try_write().await.unwrap().is_none() && theirs.try_write().await.unwrap().is_none());
        drop((one, two));
        assert!(ours.try_write().await.unwrap().is_none(), "another process reads");
        three.release().await.unwrap();
        let writer = ours.write().await.unwrap();
        assert!(ours.try_read().await.unwrap().is_none() && theirs.try_read().await.unwrap().is_none());
        assert_eq!(writer.release().await.unwrap(), Released::Released);
        assert!(theirs.try_write().await.unwrap().is_some());
        place.leaves_nothing_behind().await;
    }

    async fn a_run_of_readers_enters_together_and_waits_behind_the_writer_before_it(place: 3) {
        let first = lock_of(&place, 0).read().await.unwrap();
        let writer = writer_waits(&place, lock_of(&place, 1)).await;
        let mut readers = Vec::new();
        for gate in [1, 2, 1, 2, 2] {
            readers.push(reader_waits(&place, lock_of(&place, gate)).await);
        }
        // There is room for all of them, but the writer was there before.
        sleep(Duration::from_millis(50)).await;
        assert!(readers.iter().all(|reader| !reader.is_finished()), "a reader has overtaken the writer");
        drop(first);
        let writer = has_it(writer).await;
        assert!(readers.iter().all(|reader| !reader.is_finished()));
        drop(writer);
        let mut all = Vec::new();
        for reader in readers {
            all.push(has_it(reader).await);
        }
        assert_eq!(all.iter().filter(|reader| reader.check().is_ok()).count(), 5, "not at the same time");
        drop(all);
        place.leaves_nothing_behind().await;
    }

    async fn without_cohorts_readers_and_writers_of_all_processes_keep_their_order(place: 3) {
        let lock = |gate| lock_of(&place, gate).cohort(None);
        let held = lock(0).write().await.unwrap();
        let early = reader_waits(&place, lock(1)).await;
        let writer = writer_waits(&place, lock(2)).await;
        let late = reader_waits(&place, lock(0)).await;
        drop(held);
        let early = has_it(early).await;
        sleep(Duration::from_millis(30)).await;
        assert!(!writer.is_finished() && !late.is_finished());
        drop(early);
        let writer = has_it(writer).await;
        assert!(!late.is_finished());
        drop(writer);
        drop(has_it(late).await);
        place.leaves_nothing_behind().await;
    }

    async fn a_writer_becomes_a_reader_and_readers_come_in_but_no_writer(place: 2) {
        let writer = lock_of(&place, 0).write().await.unwrap();
        let local = reader_waits(&place, lock_of(&place, 0)).await;
        let remote = reader_waits(&place, lock_of(&place, 1)).await;
        let next = writer_waits(&place, lock_of(&place, 1)).await;
        let reader = writer.downgrade().await.unwrap();
        let (local, remote) = (has_it(local).await, has_it(remote).await);
        sleep(Duration::from_millis(30)).await;
        assert!(!next.is_finished(), "a writer beside readers");
        reader.check().unwrap();
        drop((reader, local, remote));
        drop(has_it(next).await);
        place.leaves_nothing_behind().await;
    }

    async fn a_reader_cannot_become_a_writer_and_is_told_so(place: 1) {
        let owner = Owner::new();
        let lock = lock_of(&place, 0).owned_by(&owner);
        let reader = lock.read().await.unwrap();
        for refused in [lock.write().await.unwrap_err(), lock.try_write().await.unwrap_err()] {
            assert!(matches!(refused, LockError::Upgrade { .. }), "{refused:?}");
            assert!(refused.to_string().contains("release the read lock first"), "{refused}");
        }
        reader.check().unwrap();
        drop(reader);
        assert!(lock.try_write().await.unwrap().is_some());
        place.leaves_nothing_behind().await;
    }

    async fn a_nested_read_enters_even_while_a_writer_waits(place: 2) {
        let owner = Owner::new();
        let lock = lock_of(&place, 0).owned_by(&owner);
        let outer = lock.read().await.unwrap();
        let [here, there] = [0, 1].map(|gate| lock_of(&place, gate));
        let writers = [writer_waits(&place, here).await, writer_waits(&place, there).await];
        let inner = timeout(SOON, lock.read()).await.expect("it waits for itself").unwrap();
        drop(outer);
        sleep(Duration::from_millis(30)).await;
        assert!(writers.iter().all(|writer| !writer.is_finished()), "the nested read was given back with the outer one");
        drop(inner);
        for writer in writers {
            drop(has_it(writer).await);
        }
        // In what an owner writes, it may read and write.
        let outer = lock.write().await.unwrap();
        let (inner, read) = (lock.write().await.unwrap(), lock.read().await.unwrap());
        assert_eq!(outer.release().await.unwrap(), Released::StillHeld);
        drop((inner, read));
        place.leaves_nothing_behind().await;
    }

    async fn readers_who_stay_long_after_a_writer_of_their_process_let_others_read(place: 2) {
        let writer = lock_of(&place, 0).write().await.unwrap();
        let reader = reader_waits(&place, lock_of(&place, 0)).await;
        drop(writer);
        // It has it from the writer, and so has all of it; after a moment it needs no more than a reader.
        let reader = has_it(reader).await;
        let other = timeout(SOON, lock_of(&place, 1).read()).await.expect("it waits for a reader").unwrap();
        reader.check().unwrap();
        let status = lock_of(&place, 1).status().await.unwrap();
        assert_eq!((status.taken, status.holding, status.total), (2, 2, Some(WRITER)));
        drop((reader, other));
        assert!(lock_of(&place, 1).try_write().await.unwrap().is_some() || {
            eventually_async(SOON, async || lock_of(&place, 1).try_write().await.unwrap().is_some()).await
        });
        place.leaves_nothing_behind().await;
    }

    async fn a_writer_of_the_same_process_is_not_starved_by_its_readers(place: 1) {
        let lock = lock_of(&place, 0);
        let mut readers = JoinSet::new();
        for _ in 0..8 {
            let lock = lock.clone();
            // Always some of them inside.
            readers.spawn(async move {
                loop {
                    let guard = lock.read().await.unwrap();
                    sleep(Duration::from_millis(3)).await;
                    drop(guard);
                }
            });
        }
        sleep(Duration::from_millis(50)).await;
        for _ in 0..10 {
            drop(timeout(SOON, lock.write()).await.expect("starved").unwrap());
        }
        readers.shutdown().await;
        place.leaves_nothing_behind().await;
    }

    async fn a_writer_of_another_process_is_not_starved_by_readers(place: 3) {
        let mut readers = JoinSet::new();
        for task in 0..8 {
            let lock = lock_of(&place, task % 2);
            readers.spawn(async move {
                loop {
                    let guard = lock.read().await.unwrap();
                    sleep(Duration::from_millis(3)).await;
                    drop(guard);
                }
            });
        }
        sleep(Duration::from_millis(50)).await;
        for _ in 0..10 {
            drop(timeout(SOON, lock_of(&place, 2).write()).await.expect("starved").unwrap());
        }
        readers.shutdown().await;
        place.leaves_nothing_behind().await;
    }

    async fn the_watchdog_keeps_readers_and_writers_beyond_their_lease(place: 2) {
        let lock = lock_of(&place, 0).watchdog(SHORT).unwrap();
        let reader = lock.read().await.unwrap();
        sleep(SHORT * 2).await;
        reader.check().unwrap();
        assert!(lock_of(&place, 1).try_write().await.unwrap().is_none());
        drop(reader);
        let writer = lock.write().await.unwrap();
        sleep(SHORT * 2).await;
        writer.check().unwrap();
        assert!(lock_of(&place, 1).try_read().await.unwrap().is_none());
        drop(writer);
        place.leaves_nothing_behind().await;
    }

    async fn a_reader_with_a_fixed_lease_is_told_when_it_is_over_and_others_are_not(place: 2) {
        let kept = lock_of(&place, 0).read().await.unwrap();
        let fixed = lock_of(&place, 0).lease(SHORT).unwrap().read().await.unwrap();
        timeout(SOON, fixed.lost()).await.expect("it outlives its lease");
        assert!(fixed.check().is_err());
        kept.check().unwrap();
        assert!(lock_of(&place, 1).try_write().await.unwrap().is_none());
        drop(kept);
        assert!(eventually_async(SOON, async || lock_of(&place, 1).try_write().await.unwrap().is_some()).await);
        assert_eq!(fixed.release().await.unwrap(), Released::WasLost);
        place.leaves_nothing_behind().await;
    }

    async fn a_reader_whose_fixed_lease_is_not_used_up_does_not_end_the_watch_over_the_others(place: 1) {
        let kept = lock_of(&place, 0).watchdog(SHORT * 2).unwrap().read().await.unwrap();
        let fixed = lock_of(&place, 0).lease(SHORT * 2).unwrap().read().await.unwrap();
        drop(fixed);
        sleep(SHORT * 6).await;
        kept.check().expect("nobody has renewed it");
        drop(kept);
        place.leaves_nothing_behind().await;
    }

    async fn taken_away_by_force_all_lose_it(place: 2) {
        let lock = lock_of(&place, 0).watchdog(SHORT).unwrap();
        let reader = lock.read().await.unwrap();
        let fence = lock_of(&place, 1).force_release().await.unwrap();
        let writer = timeout(SOON, lock_of(&place, 1).write()).await.expect("it is not free").unwrap();
        assert!(writer.fence() > fence);
        timeout(SOON, reader.lost()).await.expect("it was not told");
        drop((reader, writer));
        place.leaves_nothing_behind().await;
    }

    async fn a_wait_that_is_too_long_ends(place: 2) {
        let held = lock_of(&place, 0).read().await.unwrap();
        let lock = lock_of(&place, 1).wait(Duration::from_millis(30));
        assert!(matches!(lock.write().await, Err(LockError::TimedOut { .. })));
        drop(lock.read().await.unwrap());
        assert!(matches!(lock.wait(Duration::ZERO).write().await, Err(LockError::TimedOut { .. })));
        drop(held);
        place.leaves_nothing_behind().await;
    }

    async fn a_crowd_with_cohorts_reads_and_writes(place: 3) {
        crowd(&place, |lock| lock).await;
    }

    async fn a_crowd_without_cohorts_reads_and_writes(place: 3) {
        crowd(&place, |lock| lock.cohort(None)).await;
    }
}
