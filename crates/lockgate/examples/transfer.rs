//! Money between accounts: two locks at a time, in both directions, and nobody waits for ever.
//!
//! ```sh
//! cargo run --example transfer                         # in this process's memory
//! cargo run --example transfer -- redis://127.0.0.1    # the same, on Redis
//! ```
//!
//! By hand this is the textbook deadlock: one locks account 1 and waits for 2, the other locks 2 and waits for 1. Several keys
//! of one `#[locked]` are taken in the order of their names, whatever the order in which they are written.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use lockgate::lock::LockError;
use lockgate::{Gate, locked};
use tokio::task::JoinSet;

struct Bank {
    gate: Gate,
    name: String,
    accounts: [AtomicI64; 4],
}

impl Bank {
    /// Reads two balances, and writes two: whoever comes in between makes them wrong.
    #[locked(key = ["{self.name}:{from}", "{self.name}:{to}"], gate = self.gate, wait = "10s", lease = "5s")]
    async fn transfer(&self, from: usize, to: usize, amount: i64) -> Result<(), LockError> {
        let (paid, received) =
            (self.accounts[from].load(Ordering::SeqCst), self.accounts[to].load(Ordering::SeqCst));
        tokio::task::yield_now().await;
        self.accounts[from].store(paid - amount, Ordering::SeqCst);
        self.accounts[to].store(received + amount, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let (gate, name) = (Gate::open(&url).await?, format!("account-{}", std::process::id()));
    let bank = Arc::new(Bank { gate, name, accounts: [1_000; 4].map(AtomicI64::new) });

    let mut transfers = JoinSet::new();
    for number in 0..400_usize {
        let bank = Arc::clone(&bank);
        let (from, to) = (number % 4, (number + 1 + number / 4 % 3) % 4);
        transfers.spawn(async move { bank.transfer(from, to, 7).await });
    }
    let count = transfers.len();
    while let Some(transferred) = transfers.join_next().await {
        transferred??;
    }
    let balances: Vec<_> = bank.accounts.iter().map(|account| account.load(Ordering::SeqCst)).collect();
    assert_eq!(balances.iter().sum::<i64>(), 4_000);
    println!("{count} transfers that cross each other: {balances:?}, and nobody waited for ever");
    bank.gate.shutdown().await;
    Ok(())
}
