//! The locks in programs that are not asynchronous.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use lockgate::blocking::{Gate, Quorum};
use lockgate::clock::Clock;
use lockgate::lock::{LockError, Owner, Ran, Released};
use lockgate::testing::services::{Persistence, Redis};

const SHORT: Duration = Duration::from_millis(400);

/// On the embedded store, and on Redis.
fn on_both(test: fn(&str)) {
    test("memory");
    let redis = Redis::start(Persistence::Off).unwrap();
    test(&redis.url());
}

#[test]
fn threads_take_turns() {
    on_both(|url| {
        let (gate, counter) = (Gate::open(url).unwrap(), Arc::new(AtomicU64::new(0)));
        thread::scope(|threads| {
            for _ in 0..8 {
                let (gate, counter) = (gate.clone(), Arc::clone(&counter));
                threads.spawn(move || {
                    let mutex = gate.mutex("m").unwrap();
                    for round in 0..50 {
                        let guard = mutex.lock().unwrap();
                        let seen = counter.load(Ordering::SeqCst);
                        thread::yield_now();
                        counter.store(seen + 1, Ordering::SeqCst);
                        if round % 2 == 0 {
                            drop(guard);
                        } else {
                            assert_eq!(guard.release().unwrap(), Released::Released);
                        }
                    }
                });
            }
        });
        assert_eq!(counter.load(Ordering::SeqCst), 400);
    });
}

#[test]
fn a_guard_that_is_dropped_has_given_the_lock_back() {
    on_both(|url| {
        let (ours, other) = (Gate::open(url).unwrap(), Gate::open(url).unwrap());
        for round in 0..20 {
            let mutex = ours.mutex("m").unwrap();
            drop(mutex.lock().unwrap());
            let gate = if url == "memory" { &ours } else { &other };
            assert!(gate.mutex("m").unwrap().try_lock().unwrap().is_some(), "round {round}");
        }
    });
}

#[test]
fn all_of_them_are_there() {
    on_both(|url| {
        let gate = Gate::open(url).unwrap();
        let rw = gate.rw_lock("rw").unwrap().wait(SHORT).cohort(None);
        let (one, two) = (rw.read().unwrap(), rw.try_read().unwrap().unwrap());
        assert_ne!(one.id(), two.id());
        assert!(rw.try_write().unwrap().is_none());
        assert!(matches!(rw.write(), Err(LockError::TimedOut { .. })));
        drop((one, two));
        let reader = rw.write().unwrap().downgrade().unwrap();
        assert!(rw.try_read().unwrap().is_some() && rw.try_write().unwrap().is_none());
        reader.check().unwrap();
        drop(reader);

        let semaphore = gate.semaphore("s", 2).unwrap();
        let both = semaphore.acquire_many(2).unwrap();
        assert!(semaphore.try_acquire().unwrap().is_none());
        semaphore.set_permits(3).unwrap();
        assert_eq!(semaphore.try_acquire_many(1).unwrap().unwrap().permits(), 1);
        assert_eq!(both.release().unwrap(), Released::Released);

        let owner = Owner::new();
        let multi =
            gate.multi_lock(["b", "a"]).unwrap().owned_by(&owner).lease(Duration::from_secs(5)).unwrap();
        let guard = multi.lock().unwrap();
        assert_eq!(guard.fences().count(), 2);
        assert!(gate.mutex("a").unwrap().try_lock().unwrap().is_none());
        drop(guard);

        let latch = gate.count_down_latch("l").unwrap().wait_at_most(Duration::from_secs(10));
        latch.set(1).unwrap();
        let counting = thread::spawn({
            let latch = latch.clone();
            move || latch.count_down().unwrap()
        });
        latch.wait().unwrap();
        assert_eq!(counting.join().unwrap().remaining, 0);

        let once = gate.once("o", Duration::from_secs(60)).unwrap();
        assert_eq!(once.run(|turn| turn.fence().get() > 0).unwrap(), Ran::Done(true));
        assert!(matches!(once.run(|_| ()).unwrap(), Ran::NotDue { .. }));
        gate.shutdown();
        assert!(matches!(gate.mutex("m").unwrap().lock(), Err(LockError::ShuttingDown)));
    });
}

#[test]
fn the_watchdog_runs_while_the_thread_works() {
    let gate = Gate::open("memory").unwrap();
    let guard = gate.mutex("m").unwrap().watchdog(SHORT).unwrap().lock().unwrap();
    let clock = Clock::system();
    let began = clock.monotonic();
    while clock.monotonic().since(began) < SHORT * 2 {
        guard.check().unwrap();
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_quorum_of_three() {
    let servers: Vec<_> = (0..3).map(|_| Redis::start(Persistence::Off).unwrap()).collect();
    let quorum = Quorum::open(servers.iter().map(Redis::url)).unwrap();
    let mutex = quorum.mutex("m").unwrap().wait(SHORT);
    let guard = mutex.lock().unwrap();
    assert!(mutex.try_lock().unwrap().is_none());
    assert_eq!(guard.release().unwrap(), Released::Released);
    drop(mutex.lock().unwrap());
    assert!(mutex.try_lock().unwrap().is_some());
}

#[test]
fn a_guard_may_be_dropped_in_asynchronous_code() {
    let gate = Gate::open("memory").unwrap();
    let guard = gate.mutex("m").unwrap().lock().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move { drop(guard) });
    let mutex = gate.mutex("m").unwrap().wait(Duration::from_secs(10));
    drop(mutex.lock().expect("it is kept"));
    runtime.block_on(async move { drop(gate) });
}
