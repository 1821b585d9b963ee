//! Puts those who came early in order, when the line opens. Whoever notices first does it; a second one comes to the same order.

use super::booth::Booth;
use super::draw::{ArrivalsHash, Permutation, leaf, seed};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Arrival, Arrivals, Draw, LineDraw, LineDrawn, LineStatus, Store};

/// How many arrivals are read at once.
const AT_ONCE: usize = 4_096;

/// Draws, if the line is to be drawn and nobody else has done it.
pub(super) async fn draw(booth: &Booth) -> Result<(), StoreError> {
    let store = booth.shared.store.as_ref();
    let _alone = booth.drawing.lock().await;
    loop {
        let Some(status) = store.line_read(&booth.line).await? else { return Ok(()) };
        let Some(early) = status.early.filter(|_| status.drawn.is_none()) else { return Ok(()) };
        let Some(draw) = make_draw(store, &booth.line, &status, early).await? else { return Ok(()) };
        if store.line_draw(&booth.line, &draw).await? != Some(LineDraw::Again) {
            tracing::info!(line = %booth.line, early, "the order of those who came early is drawn");
            return Ok(());
        }
    }
}

async fn make_draw(
    store: &dyn Store,
    line: &Name,
    status: &LineStatus,
    early: u64,
) -> Result<Option<Draw>, StoreError> {
    let (mut hash, mut absent, mut number) = (ArrivalsHash::new(line), Vec::new(), 0);
    while number < early {
        let Some(Arrivals { people }) = store.line_arrivals(line, number, AT_ONCE).await? else {
            return Ok(None);
        };
        if people.is_empty() {
            return Err(StoreError::Unavailable(format!(
                "the line {line:?} has lost those who came early from number {number} on"
            )));
        }
        for Arrival { user, is_gone } in people {
            hash.add(&leaf(line, &user));
            if is_gone {
                absent.push(number);
            }
            number += 1;
        }
        // A million hashes take a while: others may use the thread.
        tokio::task::yield_now().await;
    }
    let arrivals_hash = hash.finish();
    let seed = seed(line, &status.secrets.draw, &arrivals_hash);
    let drawn = LineDrawn { early, arrivals_hash: arrivals_hash.0, seed: seed.0 };
    Ok(Some(draw_of(drawn, &absent)))
}

fn draw_of(drawn: LineDrawn, absent: &[u64]) -> Draw {
    let permutation = Permutation::of(&drawn);
    let mut gone = vec![0_u8; usize::try_from(drawn.early.div_ceil(8)).unwrap_or(usize::MAX)];
    for number in absent {
        let place = permutation.place_of(*number);
        if let Some(byte) = usize::try_from(place / 8).ok().and_then(|byte| gone.get_mut(byte)) {
            *byte |= 0x80 >> (place % 8);
        }
    }
    Draw { drawn, gone }
}
