//! The operations on lines as such, on Redis. Who enters a line and shows a ticket is in `ticket.rs`, how it goes on in
//! `line_tick.rs`.

use std::str::FromStr;
use std::time::Duration;

use redis::{Value, from_redis_value};

use super::RedisStore;
use super::batch::{Line, micros_or_zero, timestamp_unless_zero, unpack};
use super::script::{Script, ScriptCall, not_understood};
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::line::check_crowd;
use crate::store::{
    Arrival, Arrivals, Crowd, Draw, LineAdmit, LineChange, LineDraw, LineDrawn, LineEra, LineOpen,
    LineSecret, LineSecrets, LineState, LineStatus, LineTerms, Token,
};

/// How many arrivals one call tells of at the most.
const MAX_ARRIVALS: usize = 4_096;

pub(super) async fn line_open(
    store: &RedisStore,
    line: &Name,
    terms: &LineTerms,
    secrets: &LineSecrets,
) -> Result<LineOpen, StoreError> {
    let mut keys = keys_of(store, line, &[Kind::Line, Kind::LineUsers]);
    keys.push(store.keys.lines(store.keys.partition_of(line)));
    let call = store
        .scripts
        .call(Script::LineOpen, &keys)
        .arg(line.as_str())
        .arg(terms.batch)
        .arg(micros(terms.every))
        .arg(terms.max_active.unwrap_or(0))
        .arg(micros(terms.pass_ttl))
        .arg(terms.grace.map_or(0, micros))
        .arg(micros_or_zero(terms.opens_at))
        .arg(u8::from(terms.prequeue))
        .arg(&[secrets.tickets.0, secrets.draw.0].concat()[..]);
    match call.telling_the_run().send_for_text(&store.link).await?.as_str() {
        "created" => Ok(LineOpen::Created),
        "changed" => Ok(LineOpen::Changed),
        "too-late" => Ok(LineOpen::TooLate),
        other => Err(not_understood(&other)),
    }
}

pub(super) async fn line_change(
    store: &RedisStore,
    line: &Name,
    change: LineChange,
) -> Result<Option<LineState>, StoreError> {
    let switch = match change {
        LineChange::Resume => 1,
        LineChange::Pause => 2,
        LineChange::Close => 3,
    };
    let call = on_line(Script::LineChange, store, line, &[Kind::Line]).arg(switch);
    match call.send_for_text(&store.link).await?.as_str() {
        "unknown" => Ok(None),
        state => read_state(state).map(Some),
    }
}

pub(super) async fn line_admit(
    store: &RedisStore,
    line: &Name,
    count: u32,
    request: &Token,
) -> Result<Option<LineAdmit>, StoreError> {
    check_crowd("count", count)?;
    let call = on_line(Script::LineAdmit, store, line, &[Kind::Line, Kind::LineRequests]);
    let text = call.arg(count).arg(request.to_string()).send_for_text(&store.link).await?;
    let answer = Line::new(&text);
    let people = |word: &str| word.parse().map_err(|_| answer.not_understood());
    match answer.parts() {
        ("unknown", "") => Ok(None),
        ("noted", count) => Ok(Some(LineAdmit::Noted { count: people(count)? })),
        ("again", asked) => Ok(Some(LineAdmit::Again { asked: people(asked)? })),
        ("not-open", state) => Ok(Some(LineAdmit::NotOpen(read_state(state)?))),
        _ => Err(answer.not_understood()),
    }
}

pub(super) async fn line_read(store: &RedisStore, line: &Name) -> Result<Option<LineStatus>, StoreError> {
    let call = on_line(Script::LineRead, store, line, &[Kind::Line, Kind::LineActive, Kind::LineWaits]);
    let Some(parts) = Parts::of(call, store, "line").await? else { return Ok(None) };
    let [numbers, secrets, drawn, eras, waits] = parts.all()?;
    let mut words = Words::of(numbers)?;
    let crowd = words.crowd()?;
    let terms = read_terms(&mut words)?;
    let edition = words.number()?;
    let (early, is_drawn) = (words.number_if_any()?, words.number::<u8>()? == 1);
    let (hash, seed) = halves(drawn)?;
    let (tickets, draw) = halves(secrets)?;
    Ok(Some(LineStatus {
        crowd,
        terms,
        edition,
        secrets: LineSecrets { tickets: LineSecret(tickets), draw: LineSecret(draw) },
        eras: eras.chunks(16).map(read_era).collect::<Option<_>>().ok_or_else(|| not_understood(&eras))?,
        early,
        drawn: early.filter(|_| is_drawn).map(|early| LineDrawn { early, arrivals_hash: hash, seed }),
        arrived: words.number()?,
        head: words.number()?,
        admitted: words.number()?,
        left: words.number()?,
        abandoned: words.number()?,
        no_shows: words.number()?,
        expired: words.number()?,
        finished: words.number()?,
        recent_waits: read_waits(waits)?,
    }))
}

fn read_terms(words: &mut Words<'_>) -> Result<LineTerms, StoreError> {
    let batch = words.number()?;
    let every = Duration::from_micros(words.number()?);
    let max_active = Some(words.number()?).filter(|most| *most != 0);
    let pass_ttl = Duration::from_micros(words.number()?);
    let grace = Some(Duration::from_micros(words.number()?)).filter(|grace| !grace.is_zero());
    let opens_at = timestamp_unless_zero(words.number()?);
    Ok(LineTerms {
        batch,
        every,
        max_active,
        pass_ttl,
        grace,
        opens_at,
        prequeue: words.number::<u8>()? == 1,
    })
}

/// Two packed numbers: the era, and the first number of it.
fn read_era(packed: &[u8]) -> Option<LineEra> {
    let (era, from) = packed.split_at_checked(8)?;
    Some(LineEra { era: u32::try_from(whole(era)?).ok()?, from: whole(from)? })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scripts count in floating point, and these are whole numbers that are not negative"
)]
fn whole(packed: &[u8]) -> Option<u64> {
    Some(f64::from_be_bytes(packed.try_into().ok()?) as u64)
}

fn halves(bytes: &[u8]) -> Result<([u8; 32], [u8; 32]), StoreError> {
    let halves =
        bytes.split_at_checked(32).and_then(|(one, two)| Some((one.try_into().ok()?, two.try_into().ok()?)));
    halves.ok_or_else(|| not_understood(&bytes.len()))
}

pub(super) async fn line_list(
    store: &RedisStore,
    partition: u16,
    after: Option<&Name>,
    limit: usize,
) -> Result<Vec<Name>, StoreError> {
    let call = store.scripts.call(Script::LineList, &[store.keys.lines(partition)]);
    let call = call.arg(after.map_or("", Name::as_str)).arg(i64::try_from(limit).unwrap_or(i64::MAX));
    let reply = call.send_for_value(&store.link).await?;
    let names: Vec<String> = from_redis_value(reply.clone()).map_err(|_| not_understood(&reply))?;
    names.iter().map(|name| Name::new("line", name).map_err(|_| not_understood(name))).collect()
}

pub(super) async fn line_forget(store: &RedisStore, line: &Name) -> Result<bool, StoreError> {
    let kinds = [
        Kind::Line,
        Kind::LineUsers,
        Kind::LinePeople,
        Kind::LineMarks,
        Kind::LineGone,
        Kind::LineGaps,
        Kind::LineActive,
        Kind::LineWaits,
        Kind::LineRequests,
    ];
    let mut keys = keys_of(store, line, &kinds);
    keys.insert(1, store.keys.lines(store.keys.partition_of(line)));
    let call = store.scripts.call(Script::LineForget, &keys).arg(line.as_str());
    match call.send_for_text(&store.link).await?.as_str() {
        "forgotten" => Ok(true),
        "not-closed" => Ok(false),
        other => Err(not_understood(&other)),
    }
}

pub(super) async fn line_arrivals(
    store: &RedisStore,
    line: &Name,
    from: u64,
    limit: usize,
) -> Result<Option<Arrivals>, StoreError> {
    let kinds = [Kind::Line, Kind::LineMarks, Kind::LineGone, Kind::LinePeople];
    let call = on_line(Script::LineArrivals, store, line, &kinds).arg(from).arg(limit.min(MAX_ARRIVALS));
    let Some(parts) = Parts::of(call, store, "arrivals").await? else { return Ok(None) };
    let [gone, users] = parts.all()?;
    let users = read_users(users)?;
    if gone.len() != users.len() {
        return Err(not_understood(&(gone.len(), users.len())));
    }
    let people = gone.iter().zip(users).map(|(gone, user)| Arrival { user, is_gone: *gone == b'1' });
    Ok(Some(Arrivals { people: people.collect() }))
}

pub(super) async fn line_draw(
    store: &RedisStore,
    line: &Name,
    draw: &Draw,
) -> Result<Option<LineDraw>, StoreError> {
    draw.check()?;
    let kinds = [Kind::Line, Kind::LineMarks, Kind::LineGone, Kind::LineGaps];
    let call = on_line(Script::LineDraw, store, line, &kinds)
        .arg(draw.drawn.early)
        .arg(&[draw.drawn.arrivals_hash, draw.drawn.seed].concat()[..])
        .arg(&draw.gone[..]);
    match call.send_for_text(&store.link).await?.as_str() {
        "unknown" => Ok(None),
        "drawn" => Ok(Some(LineDraw::Drawn)),
        "already" => Ok(Some(LineDraw::Already)),
        "again" => Ok(Some(LineDraw::Again)),
        "not-drawing" => Ok(Some(LineDraw::NotDrawing)),
        other => Err(not_understood(&other)),
    }
}

fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_micros()).unwrap_or(u64::MAX)
}

fn keys_of(store: &RedisStore, line: &Name, kinds: &[Kind]) -> Vec<String> {
    kinds.iter().map(|kind| store.keys.key(*kind, line)).collect()
}

/// A script with these keys of a line.
pub(super) fn on_line<'a>(
    script: Script,
    store: &'a RedisStore,
    line: &Name,
    kinds: &[Kind],
) -> ScriptCall<'a> {
    store.scripts.call(script, &keys_of(store, line, kinds))
}

/// What a script of lines answers after its first word: texts, bytes, or nothing where there could be some.
pub(super) struct Parts(Vec<Option<Vec<u8>>>);

impl Parts {
    /// Sends the call; `None`: it is answered `unknown`.
    pub(super) async fn of(
        call: ScriptCall<'_>,
        store: &RedisStore,
        word: &str,
    ) -> Result<Option<Self>, StoreError> {
        let reply = call.send_for_value(&store.link).await?;
        let Value::Array(items) = reply else { return Err(not_understood(&reply)) };
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::BulkString(bytes) => parts.push(Some(bytes)),
                Value::Nil => parts.push(None),
                other => return Err(not_understood(&other)),
            }
        }
        let first = if parts.is_empty() { None } else { parts.remove(0) };
        match first.as_deref() {
            Some(b"unknown") => Ok(None),
            Some(known) if known == word.as_bytes() => Ok(Some(Self(parts))),
            other => Err(not_understood(&other)),
        }
    }

    /// All of them, with nothing where there is nothing.
    pub(super) fn optional<const N: usize>(&self) -> Result<[Option<&[u8]>; N], StoreError> {
        let parts: Vec<_> = self.0.iter().map(Option::as_deref).collect();
        parts.try_into().map_err(|parts: Vec<_>| not_understood(&parts.len()))
    }

    /// All of them, where each must be there.
    pub(super) fn all<const N: usize>(&self) -> Result<[&[u8]; N], StoreError> {
        let parts = self.optional()?;
        if parts.contains(&None) {
            // Not the parts themselves: some of them are secrets.
            Err(not_understood(&"a part is missing"))
        } else {
            Ok(parts.map(Option::unwrap_or_default))
        }
    }
}

/// The words of a line of text, one after the other.
pub(super) struct Words<'a> {
    text: &'a str,
    words: std::str::Split<'a, char>,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a [u8]) -> Result<Self, StoreError> {
        let text = std::str::from_utf8(text).map_err(|_| not_understood(&text))?;
        Ok(Self { text, words: text.split(' ') })
    }

    pub(super) fn word(&mut self) -> Result<&'a str, StoreError> {
        self.words.next().ok_or_else(|| self.not_understood())
    }

    pub(super) fn number<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.word()?.parse().map_err(|_| self.not_understood())
    }

    /// The next number, where `-` is none.
    pub(super) fn number_if_any(&mut self) -> Result<Option<u64>, StoreError> {
        match self.word()? {
            "-" => Ok(None),
            word => word.parse().map(Some).map_err(|_| self.not_understood()),
        }
    }

    /// What `crowd` in `shared/line.lua` wrote.
    pub(super) fn crowd(&mut self) -> Result<Crowd, StoreError> {
        let state = read_state(self.word()?)?;
        Ok(Crowd { state, waiting: self.number()?, active: self.number()?, pace: self.number_if_any()? })
    }

    pub(super) fn not_understood(&self) -> StoreError {
        not_understood(&self.text)
    }
}

fn read_state(word: &str) -> Result<LineState, StoreError> {
    match word {
        "scheduled" => Ok(LineState::Scheduled),
        "early" => Ok(LineState::Early),
        "drawing" => Ok(LineState::Drawing),
        "running" => Ok(LineState::Running),
        "paused" => Ok(LineState::Paused),
        "closed" => Ok(LineState::Closed),
        other => Err(not_understood(&other)),
    }
}

/// Users, each as `length:user`.
pub(super) fn read_users(packed: &[u8]) -> Result<Vec<Name>, StoreError> {
    let users = std::str::from_utf8(packed).ok().and_then(unpack);
    let users = users.ok_or_else(|| not_understood(&packed))?;
    users.into_iter().map(|user| Name::new("user", user).map_err(|_| not_understood(&user))).collect()
}

/// Tenths of a second, each with how many people.
pub(super) fn read_waits(text: &[u8]) -> Result<Vec<(Duration, u32)>, StoreError> {
    let text = std::str::from_utf8(text).map_err(|_| not_understood(&text))?;
    let numbers: Vec<u32> = text
        .split_ascii_whitespace()
        .map(|word| word.parse().map_err(|_| not_understood(&text)))
        .collect::<Result<_, _>>()?;
    let waits =
        numbers.chunks_exact(2).map(|pair| (Duration::from_millis(100 * u64::from(pair[0])), pair[1]));
    Ok(waits.collect())
}
