//! A coupon drop: 300 coupons, 1,000 people who each press the button three times, and not one coupon too many.
//!
//! ```sh
//! cargo run --example coupon                           # in this process's memory
//! cargo run --example coupon -- redis://127.0.0.1      # the same, on Redis
//! cargo run --example coupon --features durable -- sqlite:/tmp/drop.db
//! ```
//!
//! What people write by hand for this (a lock around a counter, or a script with a set and a list) has known holes: the lock's
//! lease runs out and two are inside; the script answers "you have it already" to the very request whose answer got lost;
//! the worker that empties the list dies between taking and saving. Here it is one call.

use std::error::Error;

use lockgate::Gate;
use lockgate::stock::{Issue, Terms};
use tokio::task::JoinSet;

const COUPONS: u64 = 300;
const PEOPLE: u64 = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let gate = Gate::open(&url).await?;
    let coupon = gate.coupon(format!("drop-{}", std::process::id()))?;
    coupon.open(&Terms::new(COUPONS)?).await?;

    let mut presses = JoinSet::new();
    for press in 0..3 * PEOPLE {
        let coupon = coupon.clone();
        presses.spawn(async move { coupon.issue(format!("person-{}", press % PEOPLE)).await });
    }
    let (mut issued, mut again, mut too_late) = (0_u64, 0_u64, 0_u64);
    while let Some(answer) = presses.join_next().await {
        match answer?? {
            Issue::Issued { .. } => issued += 1,
            Issue::AlreadyIssued { .. } => again += 1,
            Issue::SoldOut => too_late += 1,
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    println!("{issued} issued, {again} pressed again and were told their number, {too_late} came too late");

    let status = coupon.status().await?.ok_or("the coupon is gone")?;
    assert_eq!((issued, status.granted, status.seq), (COUPONS, COUPONS, COUPONS));
    // One change for the opening, and one for every grant.
    assert_eq!(status.rev, COUPONS + 1);
    println!("the store says: {} of {} granted, {:?}", status.granted, status.quantity, status.state);
    Ok(())
}
