//! The same locks in a program without async: threads that take turns.
//!
//! ```sh
//! cargo run --example blocking --features blocking                      # in this process's memory
//! cargo run --example blocking --features blocking -- redis://127.0.0.1 # the same, on Redis
//! ```

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use lockgate::blocking::Gate;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let gate = Gate::open(&url)?;
    let (counter, name) = (AtomicU64::new(0), format!("turns-{}", std::process::id()));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let guard = gate.mutex(&name)?.lock()?;
                        let seen = counter.load(Ordering::SeqCst);
                        thread::yield_now();
                        counter.store(seen + 1, Ordering::SeqCst);
                        guard.check()?;
                    } // given back here
                    Ok::<_, Box<dyn Error + Send + Sync>>(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    assert_eq!(counter.load(Ordering::SeqCst), 800);
    println!("8 threads took 800 turns, one at a time");
    gate.shutdown();
    Ok(())
}
