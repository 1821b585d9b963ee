//! A price list that everybody reads and one changes: nobody ever sees half of a change, and no writer is starved.
//!
//! ```sh
//! cargo run --example readers                          # in this process's memory
//! cargo run --example readers -- redis://127.0.0.1     # three gates on Redis, as three processes would have
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Two numbers that must always be read as they were written: together.
#[derive(Default)]
struct PriceList {
    version: AtomicU64,
    copy_of_it: AtomicU64,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let first = Gate::open(&url).await?;
    let gates = [first.clone(), Gate::on(Arc::clone(first.store())), Gate::on(Arc::clone(first.store()))];
    let (prices, name) = (Arc::new(PriceList::default()), format!("prices-{}", std::process::id()));

    let mut readers = JoinSet::new();
    for reader in 0..60 {
        let (lock, prices) = (gates[reader % 3].rw_lock(&name)?, Arc::clone(&prices));
        readers.spawn(async move {
            for _ in 0..50 {
                let _guard = lock.read().await?;
                let version = prices.version.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                assert_eq!(prices.copy_of_it.load(Ordering::SeqCst), version, "half of a change");
            }
            Outcome::Ok(())
        });
    }

    let lock = gates[0].rw_lock(&name)?.wait(Duration::from_secs(10));
    for version in 1..=20 {
        let guard = lock.write().await?;
        prices.version.store(version, Ordering::SeqCst);
        tokio::task::yield_now().await;
        prices.copy_of_it.store(version, Ordering::SeqCst);
        // Go on as a reader: the others come in, and nobody changes what was just written.
        let guard = guard.downgrade().await?;
        assert_eq!(prices.version.load(Ordering::SeqCst), version);
        guard.release().await?;
    }
    while let Some(reader) = readers.join_next().await {
        reader??;
    }
    println!("60 readers read 3,000 times, and 20 changes were made in between; nobody saw half of one");
    for gate in gates {
        gate.shutdown().await;
    }
    Ok(())
}
