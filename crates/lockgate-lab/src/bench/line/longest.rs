//! For how long one script keeps everybody else from the server.

use std::time::Duration;

use lockgate::clock::{Clock, Moment};
use lockgate::line::{LineStatus, LineTerms};
use lockgate::store::{MAX_SEEN, Tick};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Value};
use tokio::sync::watch;

use super::hall::{Hall, stands_still};
use super::size::bytes_figure;
use super::{Stage, gate_at};
use crate::bench::report::{Bar, Figure};
use crate::bench::{Failure, patient_connection, used_memory};

/// How many are admitted beyond the rate.
const ADMITTED: u32 = 1_000;

/// How often signs of life are sent.
const SIGNS: u64 = 10;

/// A line that does not do in that time what it is waited for does it never.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) fn figure(name: &'static str, longest_ms: f64) -> Figure {
    Figure { name, value: longest_ms, bar: Some(Bar::AtMost(20.0)) }
}

/// Knows how long the longest script took.
pub(super) enum Watchman {
    /// A server of our own writes it down.
    Slowlog(MultiplexedConnection),
    /// Nothing is changed at somebody else's: whoever asks meanwhile waits for as long.
    Asking(MultiplexedConnection),
}

impl Watchman {
    pub(super) async fn at(url: &str, is_ours: bool) -> Result<Self, Failure> {
        let mut connection = patient_connection(url).await?;
        if !is_ours {
            return Ok(Self::Asking(connection));
        }
        for (setting, value) in [("slowlog-log-slower-than", 500), ("slowlog-max-len", 10_000)] {
            let mut set = redis::cmd("CONFIG");
            set.arg("SET").arg(setting).arg(value).exec_async(&mut connection).await?;
        }
        Ok(Self::Slowlog(connection))
    }

    /// Does it, and says how long the longest script took meanwhile, in milliseconds.
    pub(super) async fn watch<T>(
        &self,
        doing: impl Future<Output = Result<T, Failure>>,
    ) -> Result<(T, f64), Failure> {
        match self {
            Self::Slowlog(connection) => {
                let mut connection = connection.clone();
                redis::cmd("SLOWLOG").arg("RESET").exec_async(&mut connection).await?;
                let done = doing.await?;
                let longest_ms = longest_in_slowlog(&mut connection).await?;
                redis::cmd("SLOWLOG").arg("RESET").exec_async(&mut connection).await?;
                Ok((done, longest_ms))
            }
            Self::Asking(connection) => {
                let (tells, is_over) = watch::channel(false);
                let asking = tokio::spawn(longest_answer(connection.clone(), is_over));
                let done = doing.await;
                tells.send_replace(true);
                Ok((done?, asking.await??))
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: three digits are enough")]
async fn longest_in_slowlog(connection: &mut MultiplexedConnection) -> Result<f64, Failure> {
    let mut get = redis::cmd("SLOWLOG");
    let entries: Vec<Vec<Value>> = get.arg("GET").arg(10_000).query_async(connection).await?;
    let mut longest_us = 0;
    for entry in entries {
        let [_, _, took_us, command, ..] = &entry[..] else { return Err("a slow log without times".into()) };
        let command: Vec<Vec<u8>> = FromRedisValue::from_redis_value(command.clone())?;
        if command.first().is_some_and(|name| name.to_ascii_lowercase().starts_with(b"eval")) {
            longest_us = longest_us.max(u64::from_redis_value(took_us.clone())?);
        }
    }
    Ok(longest_us as f64 / 1_000.0)
}

async fn longest_answer(
    mut connection: MultiplexedConnection,
    is_over: watch::Receiver<bool>,
) -> Result<f64, Failure> {
    let (clock, mut longest) = (Clock::system(), Duration::ZERO);
    while !*is_over.borrow() {
        let asked_at = clock.monotonic();
        redis::cmd("PING").exec_async(&mut connection).await?;
        longest = longest.max(clock.monotonic().since(asked_at));
    }
    Ok(longest.as_secs_f64() * 1_000.0)
}

/// What a line does in which all wait: signs of life, people admitted, and everybody passed over in the end.
pub(super) async fn measure_long(stage: &Stage<'_>, hall: &Hall) -> Result<Vec<Figure>, Failure> {
    let ((), signs_ms) = stage.watchman.watch(give_signs(stage, hall)).await?;
    let ((), admitting_ms) = stage.watchman.watch(admit(hall)).await?;
    let ((), passing_ms) = stage.watchman.watch(pass_everybody_over(hall)).await?;
    Ok(vec![
        figure("longest script: 2,048 signs of life, ms", signs_ms),
        figure("longest script: admitting 1,000, ms", admitting_ms),
        figure("longest script: passing over all, ms", passing_ms),
    ])
}

async fn give_signs(stage: &Stage<'_>, hall: &Hall) -> Result<(), Failure> {
    let apart = (stage.point.people / MAX_SEEN as u64).max(1);
    for sign in 0..SIGNS {
        let seen = (0..MAX_SEEN as u64).map(|watcher| sign + watcher * apart).collect();
        let tick = Tick { seen, known_head: None, known_leaves: Some(u64::MAX) };
        hall.gate.store().line_tick(hall.line.name(), hall.edition, &tick).await?;
    }
    Ok(())
}

async fn admit(hall: &Hall) -> Result<(), Failure> {
    let before = status(hall).await?.admitted;
    hall.line.admit(ADMITTED).await?;
    until(hall, |status| status.admitted >= before + u64::from(ADMITTED)).await
}

async fn pass_everybody_over(hall: &Hall) -> Result<(), Failure> {
    let hurried = LineTerms::new(ADMITTED, Duration::from_millis(10))?;
    hall.line.open(&hurried.grace(Some(Duration::from_millis(300)))?).await?;
    until(hall, |status| status.head == status.arrived).await
}

async fn status(hall: &Hall) -> Result<LineStatus, Failure> {
    hall.line.status().await?.ok_or_else(|| "the line is gone".into())
}

async fn until(hall: &Hall, is_so: impl Fn(&LineStatus) -> bool) -> Result<(), Failure> {
    let clock = Clock::system();
    let end: Moment = clock.monotonic() + PATIENCE;
    while clock.monotonic() < end {
        if is_so(&status(hall).await?) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err("the line does not go on".into())
}

/// All come early, with the longest ids that are usual; then it opens, their places are drawn, and it is closed.
pub(super) async fn measure_early(stage: &Stage<'_>) -> Result<Vec<Figure>, Failure> {
    let clock = Clock::system();
    let (gate, empty) = (gate_at(stage.redis).await?, used_memory(stage.redis).await?);
    let later = stands_still()?.prequeue_until(clock.wall() + Duration::from_secs(24 * 3_600));
    let mut hall = Hall::open(&gate, "early", &later).await?;
    let ((), coming_ms) = stage.watchman.watch(hall.fill(like_uuids(stage.point.people))).await?;
    let bytes = bytes_figure("bytes per person, 36 characters each", stage, empty, None).await?;

    let now = stands_still()?.prequeue_until(clock.wall());
    let opened_at = clock.monotonic();
    let drawing = async {
        hall.line.open(&now).await?;
        until(&hall, |status| status.drawn.is_some()).await
    };
    let ((), drawing_ms) = stage.watchman.watch(drawing).await?;
    let took = clock.monotonic().since(opened_at).as_secs_f64();
    let ((), closing_ms) = stage.watchman.watch(hall.close()).await?;
    gate.shutdown().await;
    Ok(vec![
        bytes,
        figure("longest script: coming early, 512 a call, ms", coming_ms),
        figure("longest script: drawing all places, ms", drawing_ms),
        figure("longest script: closing and forgetting, ms", closing_ms),
        Figure { name: "seconds until all places are drawn", value: took, bar: None },
    ])
}

fn like_uuids(people: u64) -> impl Iterator<Item = String> {
    (0..people).map(|person| {
        let scattered = person.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!("{:08x}-0000-4000-8000-{person:012x}", scattered >> 32)
    })
}
