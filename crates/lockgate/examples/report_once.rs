//! A report that every instance has on its schedule, and that is written once per period; its parts in parallel, but no more
//! than two at a time; published when all of them are done.
//!
//! ```sh
//! cargo run --example report_once                      # in this process's memory
//! cargo run --example report_once -- redis://127.0.0.1 # the same, on Redis
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate::Gate;
use lockgate::lock::Ran;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: u32 = 6;

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory".into());
    let first = Gate::open(&url).await?;
    let name = format!("report-{}", std::process::id());
    let reports = Arc::new(AtomicU32::new(0));

    // Five instances wake up at the same time.
    let mut instances = JoinSet::new();
    for _ in 0..5 {
        let (gate, name, reports) = (Gate::on(Arc::clone(first.store())), name.clone(), Arc::clone(&reports));
        instances.spawn(async move {
            let once = gate.once(&name, Duration::from_secs(3_600))?;
            let ran = once.try_run(write_report(&gate, &name)).await?;
            if let Ran::Done(written) = &ran {
                written.as_ref().map_err(ToString::to_string)?;
                reports.fetch_add(1, Ordering::SeqCst);
            }
            Outcome::Ok(match ran {
                Ran::Done(_) => "wrote it".to_owned(),
                Ran::NotDue { next_in } => format!("not due for {} s", next_in.as_secs()),
            })
        });
    }
    while let Some(instance) = instances.join_next().await {
        println!("an instance: {}", instance??);
    }
    assert_eq!(reports.load(Ordering::SeqCst), 1, "once per period");
    Ok(())
}

async fn write_report(gate: &Gate, name: &str) -> Outcome<()> {
    let (all_parts, at_work) = (gate.count_down_latch(name)?, Arc::new(AtomicU32::new(0)));
    all_parts.set(PARTS).await?;
    let mut parts = JoinSet::new();
    for _ in 0..PARTS {
        // The database stands two heavy queries at a time, whoever asks.
        let (database, all_parts) = (gate.semaphore(format!("{name}:database"), 2)?, all_parts.clone());
        let at_work = Arc::clone(&at_work);
        parts.spawn(async move {
            let permit = database.acquire().await?;
            assert!(at_work.fetch_add(1, Ordering::SeqCst) < 2, "too many at a time");
            tokio::time::sleep(Duration::from_millis(5)).await;
            at_work.fetch_sub(1, Ordering::SeqCst);
            permit.release().await?;
            all_parts.count_down().await?;
            Outcome::Ok(())
        });
    }
    all_parts.wait().await?;
    while let Some(part) = parts.join_next().await {
        part??;
    }
    println!("{PARTS} parts are done, the report is published");
    Ok(())
}
