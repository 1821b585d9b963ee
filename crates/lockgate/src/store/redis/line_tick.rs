//! How a line goes on, on Redis.

use std::time::Duration;

use super::RedisStore;
use super::line::{Parts, Words, on_line, read_waits};
use super::script::{Script, not_understood};
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::{Ending, LineTick, Tick, TickDone};

/// What `shared/places.lua` writes where somebody left or was not there when the head came.
const LEFT: u32 = u32::MAX - 1;
const ABANDONED: u32 = u32::MAX - 2;

pub(super) async fn line_tick(
    store: &RedisStore,
    line: &Name,
    edition: u64,
    tick: &Tick,
) -> Result<Option<LineTick>, StoreError> {
    tick.check()?;
    let kinds = [
        Kind::Line,
        Kind::LineMarks,
        Kind::LineGone,
        Kind::LineGaps,
        Kind::LineActive,
        Kind::LinePeople,
        Kind::LineUsers,
        Kind::LineWaits,
    ];
    let call = on_line(Script::LineTick, store, line, &kinds)
        .arg(edition)
        .arg(&pack_places(&tick.seen)[..])
        .arg(number_or_nothing(tick.known_head))
        .arg(number_or_nothing(tick.known_leaves));
    let Some(parts) = Parts::of(call, store, "ticked").await? else { return Ok(None) };
    read_tick(&parts).map(Some)
}

/// Four bytes each; nobody stands further away.
fn pack_places(places: &[u64]) -> Vec<u8> {
    places.iter().filter_map(|place| u32::try_from(*place).ok()).flat_map(u32::to_be_bytes).collect()
}

fn number_or_nothing(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

fn read_tick(parts: &Parts) -> Result<LineTick, StoreError> {
    let [numbers, waits, gone, passed] = parts.optional()?;
    let mut words = Words::of(numbers.unwrap_or_default())?;
    let (crowd, head, tail, leaves) = (words.crowd()?, words.number()?, words.number()?, words.number()?);
    let passed_from = words.number()?;
    let next_in = words.number_if_any()?.map(Duration::from_micros);
    let done = TickDone {
        admitted: words.number()?,
        abandoned: words.number()?,
        no_shows: words.number()?,
        expired: words.number()?,
        waits: read_waits(waits.unwrap_or_default())?,
    };
    let gone = gone.map(|bits| bits_from(bits, head));
    let passed = passed.unwrap_or_default().chunks(8).map(read_passed).collect::<Result<_, _>>()?;
    Ok(LineTick { crowd, head, tail, leaves, gone, passed, passed_from, next_in, done })
}

/// The bits of a bitmap whose first byte has that of the head, without those before it.
fn bits_from(bitmap: &[u8], head: u64) -> Vec<u8> {
    let mut bits = bitmap.to_vec();
    if let Some(first) = bits.first_mut() {
        *first &= 0xFF >> (head % 8);
    }
    bits
}

/// What the head has written into a place; what became of it later is no matter here.
fn read_passed(marks: &[u8]) -> Result<Option<Ending>, StoreError> {
    let second = marks.last_chunk().map(|mark| u32::from_be_bytes(*mark));
    match second.ok_or_else(|| not_understood(&marks))? {
        LEFT => Ok(Some(Ending::Left)),
        ABANDONED => Ok(Some(Ending::Abandoned)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_says_nothing_of_what_the_head_has_passed() {
        assert_eq!(bits_from(&[0xFF, 0xFF], 16), [0xFF, 0xFF]);
        assert_eq!(bits_from(&[0xFF, 0xFF], 19), [0x1F, 0xFF]);
        assert_eq!(bits_from(&[], 19), [0; 0]);
    }

    #[test]
    fn places_too_far_away_for_anybody_are_left_out() {
        assert_eq!(pack_places(&[1, u64::MAX, 258]), [0, 0, 0, 1, 0, 0, 1, 2]);
    }
}
