//! How a line stands, as everybody is told it.

use std::time::Duration;

use lockgate::key::Name;
use lockgate::line::draw::commitment;
use lockgate::line::{LineState, LineStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::input::Rfc3339;

/// How a line stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineBody {
    id: String,
    /// `scheduled`, `early` (people may come, and are put in order at the opening), `drawing` (that is being done), `open`, `paused`
    /// or `closed`.
    state: &'static str,
    waiting: u64,
    /// How many are admitted now.
    active: u64,
    batch: u32,
    every_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_active: Option<u32>,
    pass_ttl_ms: u64,
    /// `null`: nobody is passed over.
    grace_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    prequeue: bool,
    /// How many have ever entered.
    arrived: u64,
    /// How many were ever admitted.
    admitted: u64,
    /// How many left while they waited.
    left: u64,
    /// How many were passed over, because they were not seen.
    abandoned: u64,
    /// How many were admitted and did not come.
    no_shows: u64,
    /// How many came to the end of their time.
    expired: u64,
    /// How many have finished, or left after they were admitted.
    finished: u64,
    /// How fast it has moved lately, in people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pace_per_second: Option<f64>,
    /// How long those had waited who were admitted lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent_waits: Option<Waits>,
    /// With a pre-queue: to be published before anybody comes. Their order can be verified against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commitment: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Waits {
    /// Half of them waited at most this long.
    p50_ms: u64,
    /// 99 of 100 waited at most this long.
    p99_ms: u64,
}

impl Waits {
    /// Of waits, each with how many waited that long. `None` when there are none.
    fn of(mut waits: Vec<(Duration, u32)>) -> Option<Self> {
        waits.sort_unstable();
        let people: u64 = waits.iter().map(|(_, count)| u64::from(*count)).sum();
        let longest_of = |percent: u64| {
            let rank = (people * percent).div_ceil(100);
            let mut counted = 0;
            let found = waits.iter().find(|(_, count)| {
                counted += u64::from(*count);
                counted >= rank
            });
            found.filter(|_| people > 0).map(|(wait, _)| millis(*wait))
        };
        Some(Self { p50_ms: longest_of(50)?, p99_ms: longest_of(99)? })
    }
}

impl LineBody {
    pub(crate) fn new(id: String, name: &Name, status: LineStatus) -> Self {
        let terms = status.terms.parts();
        let draw = &status.secrets.draw;
        Self {
            id,
            state: word(status.crowd.state),
            waiting: status.crowd.waiting,
            active: status.crowd.active,
            batch: terms.batch,
            every_ms: millis(terms.every),
            max_active: terms.max_active,
            pass_ttl_ms: millis(terms.pass_ttl),
            grace_ms: terms.grace.map(millis),
            opens_at: terms.opens_at.map(Rfc3339),
            prequeue: terms.prequeue,
            arrived: status.arrived,
            admitted: status.admitted,
            left: status.left,
            abandoned: status.abandoned,
            no_shows: status.no_shows,
            expired: status.expired,
            finished: status.finished,
            pace_per_second: status.crowd.pace.map(|pace| pace as f64 / 1e6),
            recent_waits: Waits::of(status.recent_waits),
            commitment: terms.prequeue.then(|| commitment(name, draw).to_string()),
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The states of a line in the words of all other states.
fn word(state: LineState) -> &'static str {
    match state {
        LineState::Scheduled => "scheduled",
        LineState::Early => "early",
        LineState::Drawing => "drawing",
        LineState::Paused => "paused",
        LineState::Closed => "closed",
        _ => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_people() {
        let ms = Duration::from_millis;
        assert_eq!(Waits::of(vec![]), None);
        assert_eq!(Waits::of(vec![(ms(7), 1)]), Some(Waits { p50_ms: 7, p99_ms: 7 }));
        let waits = vec![(ms(900), 1), (ms(10), 60), (ms(500), 39)];
        assert_eq!(Waits::of(waits), Some(Waits { p50_ms: 10, p99_ms: 500 }));
        let waits = vec![(ms(900), 2), (ms(10), 49), (ms(500), 49)];
        assert_eq!(Waits::of(waits), Some(Waits { p50_ms: 500, p99_ms: 900 }));
    }
}
