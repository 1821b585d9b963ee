//! `#[locked]` with real locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate::lock::LockError;
use lockgate::{Gate, locked};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Shop {
    gate: Gate,
    stock: Arc<AtomicU64>,
}

#[derive(Debug)]
enum ShopError {
    Lock(LockError),
    SoldOut,
}

impl From<LockError> for ShopError {
    fn from(why: LockError) -> Self {
        ShopError::Lock(why)
    }
}

impl Shop {
    async fn with(stock: u64) -> Self {
        Self { gate: Gate::open("memory").await.unwrap(), stock: Arc::new(AtomicU64::new(stock)) }
    }

    /// Reads, waits, writes: whoever comes in between makes it wrong.
    #[locked(key = "item:{item}", gate = self.gate, wait = "5s", lease = "5s")]
    async fn buy(&self, item: u64) -> Result<u64, ShopError> {
        let left = self.stock.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        if left == 0 {
            return Err(ShopError::SoldOut);
        }
        self.stock.store(left - 1, Ordering::SeqCst);
        Ok(left - 1)
    }

    /// Holds the same key while it calls `buy`.
    #[locked(key = "item:{item}", gate = self.gate, wait = "1s", lease = "5s")]
    async fn buy_two(&self, item: u64) -> Result<u64, ShopError> {
        self.buy(item).await?;
        self.buy(item).await
    }

    /// Holds another key while it buys twice, beside each other.
    #[locked(key = "cart:{cart}", gate = self.gate, wait = "1s", lease = "5s")]
    async fn buy_side_by_side(&self, cart: u64, item: u64) -> Result<(), ShopError> {
        let (one, other) = tokio::join!(self.buy(item), self.buy(item));
        one.and(other).map(drop)
    }

    /// Holds the key of the item, and calls one that holds that of the cart, which buys the item.
    #[locked(key = "item:{item}", gate = self.gate, wait = "1s", lease = "5s")]
    async fn buy_by_a_cart(&self, cart: u64, item: u64) -> Result<u64, ShopError> {
        self.fill_the_cart(cart, item).await
    }

    #[locked(key = "cart:{cart}", gate = self.gate, wait = "1s", lease = "5s")]
    async fn fill_the_cart(&self, cart: u64, item: u64) -> Result<u64, ShopError> {
        self.buy(item).await
    }

    /// Reads two, waits, writes two.
    #[locked(key = ["account:{from}", "account:{to}"], gate = self.gate, wait = "10s", lease = "5s")]
    async fn transfer(&self, from: u64, to: u64, accounts: &[AtomicU64; 3]) -> Result<(), ShopError> {
        let [of, to] = [from, to].map(|account| &accounts[usize::try_from(account).unwrap()]);
        let (had, has) = (of.load(Ordering::SeqCst), to.load(Ordering::SeqCst));
        tokio::task::yield_now().await;
        of.store(had - 1, Ordering::SeqCst);
        to.store(has + 1, Ordering::SeqCst);
        Ok(())
    }

    /// Holds one of the two that it needs.
    #[locked(key = "account:{from}", gate = self.gate, wait = "1s", lease = "5s")]
    async fn transfer_from_inside(
        &self,
        from: u64,
        to: u64,
        accounts: &[AtomicU64; 3],
    ) -> Result<(), ShopError> {
        self.transfer(from, to, accounts).await
    }

    #[locked(key = "item:{item}", gate = self.gate, wait = "1s", lease = "300ms")]
    async fn hang(&self, item: u64) -> Result<(), ShopError> {
        std::future::pending().await
    }

    #[locked(key = "item:{item}", gate = self.gate, wait = "100ms")]
    async fn impatient(&self, item: u64) -> Result<(), ShopError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_function_runs_once_at_a_time() {
    let shop = Shop::with(150).await;
    let mut buyers = JoinSet::new();
    for _ in 0..200 {
        let shop = shop.clone();
        buyers.spawn(async move { shop.buy(1).await });
    }
    let outcomes = timeout(SOON, buyers.join_all()).await.unwrap();
    let sold = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((sold, shop.stock.load(Ordering::SeqCst)), (150, 0));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(ShopError::SoldOut))));
}

#[tokio::test]
async fn nested_calls_on_the_same_key_enter_again() {
    let shop = Shop::with(10).await;
    assert_eq!(timeout(SOON, shop.buy_two(1)).await.unwrap().unwrap(), 8);
    assert!(shop.gate.mutex("item:1").unwrap().try_lock().await.unwrap().is_some(), "still held");
}

#[tokio::test]
async fn calls_beside_each_other_inside_of_a_locked_function_take_turns() {
    let shop = Shop::with(10).await;
    timeout(SOON, shop.buy_side_by_side(1, 1)).await.unwrap().unwrap();
    assert_eq!(shop.stock.load(Ordering::SeqCst), 8, "both were inside at the same time");
}

#[tokio::test]
async fn a_nested_call_takes_part_in_the_lock_of_a_caller_further_out() {
    let shop = Shop::with(10).await;
    assert_eq!(timeout(SOON, shop.buy_by_a_cart(1, 1)).await.unwrap().unwrap(), 9);
    for key in ["item:1", "cart:1"] {
        assert!(shop.gate.mutex(key).unwrap().try_lock().await.unwrap().is_some(), "{key} is still held");
    }
}

#[tokio::test]
async fn a_key_that_is_taken_is_the_functions_own_error() {
    let shop = Shop::with(1).await;
    let _held = shop.gate.mutex("item:1").unwrap().lock().await.unwrap();
    let refused = timeout(SOON, shop.impatient(1)).await.unwrap();
    assert!(matches!(refused, Err(ShopError::Lock(LockError::TimedOut { .. }))), "{refused:?}");
    assert!(shop.impatient(2).await.is_ok(), "another key waits too");
}

#[tokio::test]
async fn work_that_outlives_its_lease_is_stopped() {
    let shop = Shop::with(1).await;
    let lost = timeout(SOON, shop.hang(1)).await.unwrap();
    assert!(matches!(lost, Err(ShopError::Lock(LockError::Lost(_)))), "{lost:?}");
    assert!(timeout(SOON, shop.buy(1)).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_call_that_is_dropped_gives_its_lock_back() {
    let shop = Shop::with(1).await;
    assert!(timeout(Duration::from_millis(50), shop.hang(1)).await.is_err());
    assert!(timeout(SOON, shop.buy(1)).await.unwrap().is_ok());
}

#[tokio::test]
async fn without_a_gate_the_programs_default_is_used() {
    #[locked(key = "default:{id}")]
    async fn by_default(id: u64) -> Result<u64, LockError> {
        sleep(Duration::from_millis(1)).await;
        Ok(id)
    }
    let why = by_default(7).await.unwrap_err();
    assert!(matches!(why, LockError::NoGate), "{why:?}");
    assert!(why.to_string().contains("make_default"), "{why}");
    Gate::open("memory").await.unwrap().make_default();
    assert_eq!(by_default(7).await.unwrap(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_that_cross_neither_lose_anything_nor_wait_for_each_other() {
    let shop = Shop::with(0).await;
    let accounts = Arc::new([1_000, 1_000, 1_000].map(AtomicU64::new));
    let mut crowd = JoinSet::new();
    for task in 0..30_u64 {
        let (shop, accounts) = (shop.clone(), Arc::clone(&accounts));
        crowd.spawn(async move {
            for round in 0..20 {
                let (from, to) = ((task + round) % 3, (task + round + 1 + task % 2) % 3);
                shop.transfer(from, to, &accounts).await.unwrap();
            }
        });
    }
    timeout(SOON * 3, crowd.join_all()).await.expect("they wait for each other");
    assert_eq!(accounts.iter().map(|account| account.load(Ordering::SeqCst)).sum::<u64>(), 3_000);
    // To oneself: one key, twice.
    timeout(SOON, shop.transfer(1, 1, &accounts)).await.expect("it waits for itself").unwrap();
    timeout(SOON, shop.transfer_from_inside(0, 1, &accounts))
        .await
        .expect("it waits for its caller")
        .unwrap();
}
