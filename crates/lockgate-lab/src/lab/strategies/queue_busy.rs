//! **Exact in one process**, as long as it does not die: users stand in a queue in memory, one worker serves them; it never rests.
//!
//! **Fails across processes:** each has a queue and a worker of its own, and two workers read the same number.
//!
//! ```text
//! process 1: worker: read 5; write 4          process 2: worker: read 5; write 4
//! ```
//!
//! One worker needs no lock: there is nobody else. This one asks the queue again and again whether somebody has come, and keeps a
//! core busy with nothing to do: see `queue-blocking`. The queue dies with the process.

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::lab::Failure;
use crate::lab::audit::{Answer, Flaw};
use crate::lab::claim::{Claim, Promise, When};
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, PLAIN, Scene, Strategy, Taker, opened};
use crate::lab::work::take_in_transaction;

pub(super) const STRATEGY: Strategy = Strategy {
    name: "queue-busy",
    title: "Queue in memory, one worker that never rests",
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

/// Somebody in the queue.
pub(super) struct Request {
    user: u64,
    answer: oneshot::Sender<Result<Answer, Failure>>,
}

impl Request {
    pub(super) async fn serve(self, scene: &Scene) {
        let answer = take_in_transaction(scene, self.user).await;
        // Whoever has gone does not want to know.
        let _ = self.answer.send(answer);
    }
}

async fn serve_all(scene: Scene, mut requests: UnboundedReceiver<Request>) {
    loop {
        match requests.try_recv() {
            Ok(request) => request.serve(&scene).await,
            Err(TryRecvError::Empty) => tokio::task::yield_now().await,
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

/// The end of the queue. When it is dropped, the worker ends.
pub(super) struct Queue(pub(super) UnboundedSender<Request>);

impl Taker for Queue {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.0.send(Request { user, answer }).map_err(|_| "the worker has gone")?;
            answered.await?
        })
    }
}
