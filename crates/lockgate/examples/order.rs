//! Orders over several articles, all or nothing: {shirt, socks} and {socks, shirt} at the same time neither deadlock nor take a
//! part of what they asked for, and nobody had to sort anything.
//!
//! ```sh
//! cargo run --example order
//! ```

use std::error::Error;

use lockgate::Gate;
use lockgate::stock::{OrderPlace, Terms};
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let gate = Gate::open(&url).await?;
    // On a cluster, the articles of one group live together; elsewhere they do anyway.
    let shop = format!("shop-{}", std::process::id());
    let (shirt, socks) = (gate.sku_of(&shop, "shirt")?, gate.sku_of(&shop, "socks")?);
    shirt.open(&Terms::new(50)?).await?;
    socks.open(&Terms::new(30)?).await?;

    let mut orders = JoinSet::new();
    for customer in 0..100 {
        let order = gate.order(format!("customer-{customer}"))?;
        // Every other one mentions them the other way round, and one pair of socks twice.
        let order = if customer % 2 == 0 {
            order.item(&shirt, 1).item(&socks, 1)
        } else {
            order.item(&socks, 1).item(&shirt, 1).item(&socks, 1)
        };
        orders.spawn(async move { order.place().await });
    }
    let (mut placed, mut short) = (0_u64, 0_u64);
    while let Some(answer) = orders.join_next().await {
        match answer?? {
            OrderPlace::Placed { .. } => placed += 1,
            OrderPlace::Short(missing) => {
                short += 1;
                if short == 1 {
                    println!("the first that came too late: {missing:?}");
                }
            }
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    let (shirt, socks) = (shirt.status().await?.ok_or("gone")?, socks.status().await?.ok_or("gone")?);
    println!(
        "{placed} placed, {short} refused; {} shirts and {} socks left",
        shirt.remaining(),
        socks.remaining()
    );
    assert_eq!(shirt.granted, placed, "one shirt each, and none without socks");
    assert!(socks.remaining() <= 1);
    Ok(())
}
