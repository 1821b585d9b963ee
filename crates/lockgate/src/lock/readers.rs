//! Readers who came in under the tenure of a writer.
//!
//! **Promise:** they keep the readers of other processes out for no longer than the cohort's time: when they have been
//! among themselves for so long, what the process has becomes a reader's, in the store too.

use std::sync::Arc;
use std::time::Duration;

use super::room::Room;
use super::tenure::Tenure;
use crate::store::{Lock, Shrink};

/// The pause before the store is told again when it did not answer.
const PAUSE: Duration = Duration::from_millis(250);

/// How often it is looked whether they are still there, however long the cohort's time is.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// Looks after the readers of a room until they have gone, or are readers in the store too.
pub(super) async fn look_after(room: Arc<Room>, tenure: Arc<Tenure>) {
    let clock = &room.desk.clock;
    while let Some(since) = room.readers_since(&tenure) {
        let (due, now) = (since + room.cohort.time, clock.monotonic());
        if now < due && !room.desk.is_closing() {
            // Whoever made it long must not keep the gate from closing.
            clock.sleep_until(due.min(now + LOOK_AT_LEAST_EVERY)).await;
            continue;
        }
        // A writer may have come in at this very moment.
        if room.become_a_readers(&tenure, since) {
            return tell_the_store(tenure).await;
        }
    }
}

/// Tells the store that a tenure is only a reader's, until it answers or the tenure is over.
pub(super) async fn tell_the_store(tenure: Arc<Tenure>) {
    let Lock::Pool(pool) = &tenure.lock else { return };
    while tenure.is_held() {
        match tenure.desk.store.permit_shrink(pool, &tenure.token, 1).await {
            Ok(Shrink::Shrunk) => return,
            Ok(Shrink::NotHeld) => return tenure.lose("the store gave it to somebody else, or forgot it"),
            Err(why) => {
                tracing::warn!(name = %pool.name, %why, "a writer became a reader, and the store does not know; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
