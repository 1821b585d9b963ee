//! Buyers who remember what they were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::stock::{Coupon, Issue, Terms};
use lockgate::testing::eventually_async;
use tokio::task::JoinSet;

use super::SOON;

/// Who was told which number, by coupon.
pub(super) type Told = BTreeMap<String, BTreeMap<u64, String>>;

const BUYERS: u64 = 8;
/// Between two purchases of one buyer, so that a minute of it is not a benchmark.
const PAUSE: Duration = Duration::from_millis(10);

/// People who buy, each as somebody new every time, until it is over.
pub(super) struct Crowd {
    is_over: Arc<AtomicBool>,
    told: Arc<AtomicU64>,
    buyers: JoinSet<Vec<(String, u64, String)>>,
}

impl Crowd {
    /// Opens the coupons, and lets everybody in.
    pub(super) async fn begin(gate: &Gate, coupons: &[String]) -> Self {
        for coupon in coupons {
            gate.coupon(coupon).unwrap().open(&Terms::new(1_000_000).unwrap()).await.unwrap();
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (is_over, told, mut buyers) = (Arc::default(), Arc::default(), JoinSet::new());
        for _ in 0..BUYERS {
            // Nobody has the name of another, also not of one in an earlier crowd.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let coupons = coupons.iter().map(|name| (name.clone(), gate.coupon(name).unwrap())).collect();
            let buyer = Buyer { number, coupons, is_over: Arc::clone(&is_over), told: Arc::clone(&told) };
            buyers.spawn(buyer.buy());
        }
        Self { is_over, told, buyers }
    }

    /// How many were told that they have one.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Ordering::SeqCst)
    }

    /// Returns when so many more were told.
    pub(super) async fn goes_on(&self, count: u64) {
        let enough = self.told() + count;
        assert!(eventually_async(SOON, async || self.told() >= enough).await, "nobody buys any more");
    }

    /// Lets nobody in any more; says what all were told.
    pub(super) async fn end(self) -> Told {
        self.is_over.store(true, Ordering::SeqCst);
        let mut told = Told::new();
        for (coupon, seq, user) in self.buyers.join_all().await.into_iter().flatten() {
            assert_eq!(told.entry(coupon).or_default().insert(seq, user), None, "{seq} was given twice");
        }
        told
    }
}

/// What both crowds were told.
pub(super) fn both(mut first: Told, second: Told) -> Told {
    for (coupon, told) in second {
        first.entry(coupon).or_default().extend(told);
    }
    first
}

struct Buyer {
    number: u64,
    coupons: Vec<(String, Coupon)>,
    is_over: Arc<AtomicBool>,
    told: Arc<AtomicU64>,
}

impl Buyer {
    async fn buy(self) -> Vec<(String, u64, String)> {
        let mut told = Vec::new();
        for (time, (name, coupon)) in self.coupons.iter().cycle().enumerate() {
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
            let user = format!("user-{}-{time}", self.number);
            let seq = insist(coupon, &user).await;
            if time % 16 == 0 {
                assert_eq!(insist(coupon, &user).await, seq, "{user} was told two numbers");
            }
            told.push((name.clone(), seq, user));
            self.told.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(PAUSE).await;
        }
        told
    }
}

/// Asks again until there is an answer that tells the number, whatever else is answered meanwhile.
async fn insist(coupon: &Coupon, user: &str) -> u64 {
    let asking = async {
        loop {
            match coupon.issue(user).await {
                Ok(Issue::Issued { seq, .. } | Issue::AlreadyIssued { seq }) => return seq,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::time::timeout(SOON, asking)
        .await
        .unwrap_or_else(|_| panic!("{user} got no answer within {SOON:?}"))
}
