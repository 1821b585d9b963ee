//! What a stock counts.

use std::sync::Arc;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::key::Name;
use lockgate::stock::{Reservation, Terms};
use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate::testing::breakable::{Break, BreakableStore};

use crate::lock_metrics::Sums;

/// A gate that counts there.
fn gate_on(store: Arc<dyn Store>, sums: &Sums) -> Gate {
    metrics::with_local_recorder(sums, || Gate::on(store))
}

fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Clock::fake()))
}

#[tokio::test]
async fn grants_repeats_and_refusals_are_counted_by_what_and_why() {
    let sums = Sums::default();
    let gate = gate_on(memory(), &sums);
    let coupon = gate.coupon("c").unwrap();
    coupon.issue("nobody").await.unwrap();
    coupon.open(&Terms::new(2).unwrap()).await.unwrap();
    for user in ["ann", "ann", "bob", "carl", "dora"] {
        coupon.issue(user).await.unwrap();
    }
    let of = |name: &str| sums.of(&format!("lockgate_stock_{name}"));
    assert_eq!((of("grants_total what=coupon"), of("repeats_total what=coupon")), (2.0, 1.0));
    assert_eq!(of("refusals_total what=coupon reason=sold-out"), 2.0);
    assert_eq!(of("refusals_total what=coupon reason=unknown"), 1.0);
    let names = ["ann", "eve"].map(|user| Name::new("user", user).unwrap());
    coupon.issue_to_all(&names).await.unwrap();
    assert_eq!(of("repeats_total what=coupon"), 2.0, "those who are taken over count as well");
    assert_eq!(of("refusals_total what=coupon reason=sold-out"), 3.0);

    let deal = gate.deal("d").unwrap();
    deal.open(&Terms::new(10).unwrap().per_user(2).unwrap()).await.unwrap();
    deal.purchase("ann", 2).await.unwrap();
    deal.purchase("ann", 1).await.unwrap();
    deal.pause().await.unwrap();
    deal.purchase("bob", 1).await.unwrap();
    deal.resume().await.unwrap();
    assert_eq!(of("grants_total what=deal"), 1.0);
    assert_eq!(of("refusals_total what=deal reason=limit-exceeded"), 1.0);
    assert_eq!(of("refusals_total what=deal reason=paused"), 1.0);

    let mut holds = Vec::new();
    for user in ["bob", "carl"] {
        let placed = deal.hold(user, 1, Duration::from_secs(60)).await.unwrap();
        let Reservation::Held { hold, .. } = placed else { panic!("{placed:?}") };
        holds.push(hold);
    }
    holds[0].confirm().await.unwrap();
    holds[1].cancel().await.unwrap();
    holds[1].confirm().await.unwrap();
    assert_eq!((of("holds_total outcome=placed"), of("holds_total outcome=cancelled")), (2.0, 1.0));
    assert_eq!(of("grants_total what=hold"), 1.0);
    assert_eq!(of("refusals_total what=hold reason=resolved"), 1.0);

    let sku = gate.sku("s").unwrap();
    sku.open(&Terms::new(1).unwrap()).await.unwrap();
    for user in ["ann", "bob"] {
        gate.order(user).unwrap().item(&sku, 1).place().await.unwrap();
    }
    assert_eq!(of("grants_total what=order"), 1.0);
    assert_eq!(of("refusals_total what=order reason=sold-out"), 1.0);
    assert_eq!(of("call_seconds what=coupon"), 0.0, "what is decided at once is not timed");
}

#[tokio::test]
async fn a_call_is_one_however_many_share_it() {
    let (sums, store) = (Sums::default(), Arc::new(BreakableStore::new(memory())));
    let gate = gate_on(Arc::clone(&store) as Arc<dyn Store>, &sums);
    let coupon = gate.coupon("c").unwrap();
    coupon.open(&Terms::new(10).unwrap()).await.unwrap();
    let before = store.calls();
    // The first one is under way, and the others come meanwhile.
    store.break_all(Break::Hang);
    let asking: Vec<_> = (0..40)
        .map(|user| {
            let coupon = coupon.clone();
            tokio::spawn(async move { coupon.issue(format!("u{user}")).await.unwrap() })
        })
        .collect();
    tokio::task::yield_now().await;
    store.heal();
    for asked in asking {
        asked.await.unwrap();
    }
    let calls = store.calls() - before;
    assert!(calls < 10, "{calls} calls");
    let of = |name: &str| sums.of(&format!("lockgate_stock_{name}"));
    let calls = f64::from(u32::try_from(calls).unwrap());
    assert_eq!((of("call_seconds what=coupon"), of("batch_size what=coupon")), (calls, calls));
    assert_eq!(of("grants_total what=coupon"), 10.0);
    assert_eq!(of("refusals_total what=coupon reason=sold-out"), 30.0);
}
