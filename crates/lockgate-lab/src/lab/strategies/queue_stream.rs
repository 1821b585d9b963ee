//! **Exact across processes**, also when a worker dies: users stand in a Redis Stream, and a group of workers serves them.
//!
//! ```text
//! A: XADD → waits for its answer
//!      worker 1: XREADGROUP → A, B, C; BEGIN; A has none yet, one less, insert A; …; COMMIT; XACK; answers
//!      worker 1: killed before XACK → A, B, C stay pending, and another worker takes them over
//! ```
//!
//! Acknowledged after the commit, so nothing is lost; and since an entry may then be delivered twice, the worker looks whether
//! the user has one already: at least once, made exactly once. The workers of several processes share the work, so the stock
//! is taken with `UPDATE … WHERE stock > 0`, which is right whoever else does so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::lab::Failure;
use crate::lab::audit::Answer;
use crate::lab::redis_link::RedisLink;
use crate::lab::report::Family;
use crate::lab::strategy::{Doing, Need, PLAIN, Scene, Strategy, Taker, opened};

/// How many entries a worker takes at a time.
const BATCH: usize = 50;
/// How long it waits in Redis for the next.
const BLOCK: Duration = Duration::from_secs(5);
const GROUP: &str = "workers";

pub(super) const STRATEGY: Strategy = Strategy {
    name: "queue-stream",
    title: "Queue in a Redis Stream, a group of workers",
    family: Family::Queue,
    needs: &[Need::Redis],
    open: |scene| Box::pin(async { opened(StreamQueue::open(scene).await?) }),
    ..PLAIN
};

/// Those of this process who wait for an answer.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

struct StreamQueue {
    redis: RedisLink,
    stream: String,
    replies: String,
    waiting: Waiting,
    _worker: AbortOnDropHandle<Result<(), Failure>>,
    _listener: AbortOnDropHandle<Result<(), Failure>>,
}

impl StreamQueue {
    async fn open(scene: Scene) -> Result<Self, Failure> {
        let redis = scene.redis().await?;
        let (stream, replies) = (scene.key("stream"), scene.key(&format!("replies-{}", scene.process)));
        let mut create = redis::cmd("XGROUP");
        create.arg("CREATE").arg(&stream).arg(GROUP).arg("0").arg("MKSTREAM");
        // Another process may have made it: that is the only way in which this is refused.
        let _ = redis.ask::<()>(&create).await;
        let waiting = Waiting::default();
        let worker = Worker { redis: redis.beside().await?, stream: stream.clone(), scene };
        let listener = hear_replies(redis.beside().await?, replies.clone(), Arc::clone(&waiting));
        Ok(Self {
            redis,
            stream,
            replies,
            waiting,
            _worker: AbortOnDropHandle::new(tokio::spawn(worker.serve_all())),
            _listener: AbortOnDropHandle::new(tokio::spawn(listener)),
        })
    }
}

impl Taker for StreamQueue {
    fn take(&self, user: u64) -> Doing<'_, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(user, answer);
            let mut add = redis::cmd("XADD");
            add.arg(&self.stream).arg("*").arg("user").arg(user).arg("reply_to").arg(&self.replies);
            self.redis.ask::<()>(&add).await?;
            Ok(answered.await?)
        })
    }
}

/// One of the group.
struct Worker {
    redis: RedisLink,
    stream: String,
    scene: Scene,
}

/// An id, and fields with their values.
type Entry = (String, HashMap<String, String>);

/// An entry of the stream.
struct Request {
    id: String,
    user: u64,
    reply_to: String,
}

impl Request {
    fn read((id, mut fields): Entry) -> Result<Self, Failure> {
        let user = fields.remove("user").ok_or("an entry without a user")?.parse()?;
        let reply_to = fields.remove("reply_to").ok_or("an entry that nobody waits for")?;
        Ok(Self { id, user, reply_to })
    }
}

impl Worker {
    async fn serve_all(self) -> Result<(), Failure> {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(format!("worker-{}", self.scene.process));
        read.arg("COUNT").arg(BATCH).arg("BLOCK").arg(u64::try_from(BLOCK.as_millis())?);
        read.arg("STREAMS").arg(&self.stream).arg(">");
        loop {
            let streams: Option<Vec<(String, Vec<Entry>)>> = self.redis.ask(&read).await?;
            let entries = streams.into_iter().flatten().flat_map(|(_, entries)| entries);
            let requests = entries.map(Request::read).collect::<Result<Vec<_>, _>>()?;
            if !requests.is_empty() {
                self.serve(&requests).await?;
            }
        }
    }

    /// One transaction for all of them, then the acknowledgements and the answers in one round trip.
    async fn serve(&self, requests: &[Request]) -> Result<(), Failure> {
        let mut answers = redis::pipe();
        let mut transaction = self.scene.begin().await?;
        for request in requests {
            // Delivered before, and committed, but not acknowledged.
            let has_one = transaction.has_issue(request.user).await?;
            let gets_one = has_one || transaction.take_one_if_left().await?;
            if gets_one && !has_one {
                transaction.add_issue(request.user).await?;
            }
            let reply = format!("{}:{}", request.user, u8::from(gets_one));
            answers.cmd("XACK").arg(&self.stream).arg(GROUP).arg(&request.id).ignore();
            answers.cmd("RPUSH").arg(&request.reply_to).arg(reply).ignore();
        }
        transaction.commit().await?;
        self.redis.ask_all(&answers).await
    }
}

/// Brings the answers to those who wait for them.
async fn hear_replies(redis: RedisLink, replies: String, waiting: Waiting) -> Result<(), Failure> {
    loop {
        let first: Option<(String, String)> =
            redis.ask(redis::cmd("BLPOP").arg(&replies).arg(BLOCK.as_secs())).await?;
        let Some((_, first)) = first else { continue };
        let more: Option<Vec<String>> = redis.ask(redis::cmd("LPOP").arg(&replies).arg(1_000)).await?;
        for reply in more.into_iter().flatten().chain([first]) {
            let (user, gets_one) = reply.split_once(':').ok_or("a reply that cannot be read")?;
            let answer = if gets_one == "1" { Answer::Got } else { Answer::SoldOut };
            let waiter = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&user.parse()?);
            if let Some(waiter) = waiter {
                // Whoever has gone does not want to know.
                let _ = waiter.send(answer);
            }
        }
    }
}
