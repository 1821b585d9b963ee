//! A time deal: 100 pairs of headphones, at most two per person, for a moment only; with a basket that holds them while
//! somebody pays, and a refund.
//!
//! ```sh
//! cargo run --example time_deal
//! ```

use std::error::Error;
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::stock::{HoldSettle, Purchase, Reservation, Revoke, Terms};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let gate = Gate::open(&url).await?;
    let deal = gate.deal(format!("headphones-{}", std::process::id()))?;

    // The window is kept by the store's clock, whatever the clocks of those who ask.
    let now = Clock::system().wall();
    let (opens, closes) = (now + Duration::from_millis(200), now + Duration::from_secs(3_600));
    deal.open(&Terms::new(100)?.per_user(2)?.between(Some(opens), Some(closes))?).await?;
    println!("too early:      {:?}", deal.purchase("alice", 1).await?);
    tokio::time::sleep(Duration::from_millis(250)).await;

    // A name for the request makes it safe to send again.
    println!("in time:        {:?}", deal.purchase_as("alice-1", "alice", 2).await?);
    let again = deal.purchase_as("alice-1", "alice", 2).await?;
    println!("sent again:     {again:?}");
    assert!(matches!(again, Purchase::AlreadyBought { seq: 1, purchased: 2, remaining: 98 }));
    println!("over the limit: {:?}", deal.purchase("alice", 1).await?);

    // Put aside while bob pays; nobody else gets it, and it goes back by itself if he does not.
    let Reservation::Held { hold, remaining, .. } = deal.hold("bob", 1, Duration::from_secs(300)).await?
    else {
        return Err("nothing was held".into());
    };
    println!("held for bob, {remaining} left");
    assert_eq!(hold.confirm().await?, HoldSettle::Confirmed { seq: 2 });
    assert_eq!(hold.confirm().await?, HoldSettle::Confirmed { seq: 2 });

    // Carol wanders off.
    let Reservation::Held { hold, .. } = deal.hold("carol", 2, Duration::from_millis(50)).await? else {
        return Err("nothing was held".into());
    };
    tokio::time::sleep(Duration::from_millis(60)).await;
    println!("carol is late:  {:?}", hold.confirm().await?);

    println!("alice's refund: {:?}", deal.revoke("alice", 1).await?);
    assert_eq!(deal.revoke("alice", 1).await?, Revoke::NotGranted);
    let status = deal.status().await?.ok_or("the deal is gone")?;
    println!("the store says: {} granted, {} held, {} left", status.granted, status.held, status.remaining());
    assert_eq!((status.granted, status.held, status.remaining()), (1, 0, 99));
    Ok(())
}
