//! Entering a line, and the operations on its tickets, on Redis.

use super::RedisStore;
use super::line::{Parts, Words, on_line, read_users};
use super::script::{Script, ScriptCall, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::line::check_line_call;
use crate::store::{Ending, Enter, EnterWish, Standing, TicketAt, Told};

/// What every script that tells how a ticket stands has to look at.
const KINDS: [Kind; 6] =
    [Kind::Line, Kind::LineMarks, Kind::LineGone, Kind::LineGaps, Kind::LineActive, Kind::LinePeople];

pub(super) async fn line_enter(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    wishes: &[EnterWish],
) -> Result<Option<Told<Enter>>, StoreError> {
    check_line_call(wishes.len())?;
    let kinds = [&KINDS[..], &[Kind::LineUsers]].concat();
    let call = on_line(Script::LineEnter, store, line, &kinds).arg(edition).arg(&pack_known(wishes)[..]);
    let call = wishes.iter().fold(call, |call, wish| call.arg(wish.user.as_str()));
    told(call.telling_the_run(), store, wishes.len(), |line, later, users| {
        let mut words = Words::of(line)?;
        read_enter(&mut words, later, users)
    })
    .await
}

pub(super) async fn ticket_show(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    tickets: &[TicketAt],
) -> Result<Option<Told<Standing>>, StoreError> {
    check_line_call(tickets.len())?;
    let packed: Vec<u8> = tickets.iter().flat_map(pack_ticket).collect();
    let call = on_line(Script::TicketShow, store, line, &KINDS).arg(edition).arg(&packed[..]);
    told(call, store, tickets.len(), |line, later, users| read_standing(&mut Words::of(line)?, later, users))
        .await
}

pub(super) async fn ticket_leave(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Result<Option<Standing>, StoreError> {
    told_of_one(on_line(Script::TicketLeave, store, line, &KINDS), store, edition, ticket).await
}

pub(super) async fn ticket_finish(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Result<Option<Standing>, StoreError> {
    told_of_one(on_line(Script::TicketFinish, store, line, &KINDS), store, edition, ticket).await
}

pub(super) async fn ticket_renew(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Result<Option<Standing>, StoreError> {
    told_of_one(on_line(Script::TicketRenew, store, line, &KINDS), store, edition, ticket).await
}

/// What the caller knows of its users' tickets; nothing when it knows nothing, as it mostly does.
fn pack_known(wishes: &[EnterWish]) -> Vec<u8> {
    if wishes.iter().all(|wish| wish.known.is_none()) {
        return Vec::new();
    }
    let nothing = [(-1_f64).to_be_bytes(), 0_f64.to_be_bytes()].concat();
    wishes.iter().flat_map(|wish| wish.known.as_ref().map_or_else(|| nothing.clone(), pack_ticket)).collect()
}

/// Two numbers as scripts count.
#[expect(clippy::cast_precision_loss, reason = "there are no tickets of such numbers")]
fn pack_ticket(ticket: &TicketAt) -> Vec<u8> {
    [ticket.number as f64, ticket.place as f64].map(f64::to_be_bytes).concat()
}

/// The users whom the answers tell of, one after the other.
type Users = std::vec::IntoIter<Name>;

/// Sends a call with several wishes. One line that begins with `*` is the answer to all of them, each so many places later than
/// the first.
async fn told<T>(
    call: ScriptCall<'_>,
    store: &RedisStore,
    wishes: usize,
    read: impl Fn(&[u8], u64, &mut Users) -> Result<T, StoreError>,
) -> Result<Option<Told<T>>, StoreError> {
    let Some(parts) = Parts::of(call, store, "told").await? else { return Ok(None) };
    let [crowd, lines, users] = parts.all()?;
    let mut users = read_users(users)?.into_iter();
    let each: Result<Vec<_>, _> = match lines.strip_prefix(b"* ") {
        Some(for_all) => (0..wishes as u64).map(|later| read(for_all, later, &mut users)).collect(),
        None if wishes == 0 => Ok(Vec::new()),
        None => lines.split(|byte| *byte == b'\n').map(|line| read(line, 0, &mut users)).collect(),
    };
    let (crowd, each) = (Words::of(crowd)?.crowd()?, each?);
    if each.len() == wishes { Ok(Some(Told { crowd, each })) } else { Err(not_understood(&lines)) }
}

/// Sends a call on one ticket.
async fn told_of_one(
    call: ScriptCall<'_>,
    store: &RedisStore,
    edition: u64,
    ticket: TicketAt,
) -> Result<Option<Standing>, StoreError> {
    let call = call.arg(edition).arg(ticket.number).arg(ticket.place);
    let Some(parts) = Parts::of(call, store, "told").await? else { return Ok(None) };
    let [line, users] = parts.all()?;
    read_standing(&mut Words::of(line)?, 0, &mut read_users(users)?.into_iter()).map(Some)
}

fn read_enter(words: &mut Words<'_>, later: u64, users: &mut Users) -> Result<Enter, StoreError> {
    match words.word()? {
        word @ ("new" | "old") => Ok(Enter::In {
            number: words.number::<u64>()? + later,
            is_new: word == "new",
            standing: read_standing(words, later, users)?,
        }),
        "drawn" => Ok(Enter::Drawn { number: words.number()? }),
        "not-open" => Ok(Enter::NotOpen { opens_at: Timestamp::from_micros(words.number()?) }),
        "full" => Ok(Enter::Full),
        "closed" => Ok(Enter::Closed),
        _ => Err(words.not_understood()),
    }
}

fn read_standing(words: &mut Words<'_>, later: u64, users: &mut Users) -> Result<Standing, StoreError> {
    match words.word()? {
        "unknown" => Ok(Standing::Unknown),
        "early" => Ok(Standing::Early),
        "waiting" => Ok(Standing::Waiting { position: words.number::<u64>()? + later }),
        "admitted" => Ok(Standing::Admitted {
            until: Timestamp::from_micros(words.number()?),
            is_shown: words.number::<u8>()? == 1,
            user: users.next().ok_or_else(|| words.not_understood())?,
        }),
        "over" => read_ending(words).map(Standing::Over),
        _ => Err(words.not_understood()),
    }
}

fn read_ending(words: &mut Words<'_>) -> Result<Ending, StoreError> {
    match words.word()? {
        "left" => Ok(Ending::Left),
        "abandoned" => Ok(Ending::Abandoned),
        "no-show" => Ok(Ending::NoShow),
        "expired" => Ok(Ending::Expired),
        "finished" => Ok(Ending::Finished),
        "closed" => Ok(Ending::Closed),
        _ => Err(words.not_understood()),
    }
}
