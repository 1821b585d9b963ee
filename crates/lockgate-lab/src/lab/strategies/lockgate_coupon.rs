//! **Exact across processes**, also when a process, a worker or the database dies: Lockgate's coupon, and its ledger.
//!
//! ```text
//! A, B, C, … in one process: one call for all who came together → yours, yours, sold out, …
//!      ledger: reads the journal; BEGIN; many rows; COMMIT; acknowledges
//! ```
//!
//! Redis decides in one script, as with `script-set`; callers that come together share a call, so a crowd costs a few round trips
//! instead of one each. Every decision is in a journal in the same step, and the ledger writes it to the database exactly once:
//! acknowledged after the commit, so nothing that was promised can get lost on the way.

use lockgate::ledger::{Writer, WriterConfig};
use lockgate::stock::{Coupon, Issue, Terms};
use tokio::sync::Mutex;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::report::Family;
use crate::lab::strategy::{Bookkeeping, Counting, Doing, Need, PLAIN, Scene, Strategy, Taker, opened};

pub(super) const STRATEGY: Strategy = Strategy {
    name: "lockgate",
    title: "Lockgate: coupon with ledger",
    family: Family::Lockgate,
    needs: &[Need::Redis],
    counting: Counting::ClientCommands,
    books: Bookkeeping::Ledger,
    open: |scene| Box::pin(async move { opened(WithLedger::open(&scene).await?) }),
    ..PLAIN
};

struct WithLedger {
    coupon: Coupon,
    writer: Mutex<Option<Writer>>,
}

impl WithLedger {
    async fn open(scene: &Scene) -> Result<Self, Failure> {
        let gate = scene.gate().await?;
        let coupon = gate.coupon(scene.coupon.to_string())?;
        coupon.open(&Terms::new(scene.stock)?).await?;
        // One writer is enough for all processes; more would share the work.
        let writer = match scene.process {
            0 => Some(scene.shop.ledger().await?.start(gate.store(), WriterConfig::default())?),
            _ => None,
        };
        Ok(Self { coupon, writer: Mutex::new(writer) })
    }
}

impl Taker for WithLedger {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            match self.coupon.issue(user.to_string()).await? {
                Issue::Issued { .. } => Ok(Answer::Got),
                Issue::SoldOut => Ok(Answer::SoldOut),
                other => Err(format!("neither issued nor sold out: {other:?}").into()),
            }
        })
    }

    fn finish(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            if let Some(writer) = self.writer.lock().await.take() {
                writer.drained().await;
                writer.shutdown().await;
            }
            Ok(())
        })
    }
}
