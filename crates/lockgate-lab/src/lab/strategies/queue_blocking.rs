//! **Exact in one process**, as long as it does not die: users stand in a queue in memory, one worker serves them, and sleeps when
//! there is nobody.
//!
//! **Fails across processes**, as `queue-busy` does, for the same reason.
//!
//! ```text
//! process 1: worker: read 5; write 4          process 2: worker: read 5; write 4
//! ```
//!
//! The worker is woken up by whoever comes next, so nothing is burnt while nobody does. As fast as one transaction after the
//! other, and as lost as the memory of its process when that dies.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::queue_busy::{Queue, Request};
use crate::lab::audit::Flaw;
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{PLAIN, Scene, Strategy, opened};

pub(super) const STRATEGY: Strategy = Strategy {
    name: "queue-blocking",
    title: "Queue in memory, one worker that sleeps when idle",
    family: Family::Queue,
    claim: || Claim::exact_in_one_process(Promise::fails(Flaw::LostUpdates, &[Flaw::Oversold], When::Always)),
    open: |scene| {
        Box::pin(async {
            let (queue, requests) = unbounded_channel();
            tokio::spawn(serve_all(scene, requests));
            opened(Queue(queue))
        })
    },
    ..PLAIN
};

async fn serve_all(scene: Scene, mut requests: UnboundedReceiver<Request>) {
    while let Some(request) = requests.recv().await {
        request.serve(&scene).await;
    }
}
