//! How a line is to admit, as an operator says it.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::error::InvalidInput;
use lockgate::line::LineTerms;
use lockgate::stock::MAX_QUANTITY;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::input::Rfc3339;
use crate::problem::Problem;

/// How a line admits. PUT replaces all of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutLine {
    /// How many are admitted together.
    batch: u32,
    /// How often: 10 ms to a day.
    every_ms: u64,
    /// How many may be admitted at once; left out: however many.
    max_active: Option<u32>,
    /// For how long somebody is admitted, from the moment of showing the ticket; left out: five minutes.
    pass_ttl_ms: Option<u64>,
    /// Who is not seen for so long is passed over; left out: a minute; `null`: nobody is passed over.
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<u64>)]
    grace_ms: Option<Option<u64>>,
    /// When it opens; left out: now.
    opens_at: Option<Rfc3339>,
    /// Whether people may come before it opens. Their order is drawn then, in a way that anybody can verify.
    #[serde(default)]
    prequeue: bool,
}

/// Tells a `null` from what was left out.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl PutLine {
    pub(super) fn terms(&self) -> Result<LineTerms, Problem> {
        let mut terms = self.periods().map_err(in_milliseconds)?;
        match (self.opens_at, self.prequeue) {
            (Some(Rfc3339(opens_at)), prequeue) => {
                check_time(opens_at)?;
                terms = if prequeue { terms.prequeue_until(opens_at) } else { terms.opens_at(opens_at) };
            }
            (None, true) => {
                return Err(Problem::invalid(
                    "opens_at",
                    "is needed with prequeue: until then people are early",
                ));
            }
            (None, false) => {}
        }
        Ok(terms)
    }

    fn periods(&self) -> Result<LineTerms, InvalidInput> {
        let mut terms = LineTerms::new(self.batch, Duration::from_millis(self.every_ms))?;
        if let Some(max_active) = self.max_active {
            terms = terms.max_active(max_active)?;
        }
        if let Some(pass_ttl_ms) = self.pass_ttl_ms {
            terms = terms.pass_ttl(Duration::from_millis(pass_ttl_ms))?;
        }
        match self.grace_ms {
            Some(grace_ms) => terms.grace(grace_ms.map(Duration::from_millis)),
            None => Ok(terms),
        }
    }
}

/// Periods are called otherwise here, because JSON has no units.
fn in_milliseconds(why: InvalidInput) -> Problem {
    let field = match why.field {
        "every" => "every_ms",
        "pass_ttl" => "pass_ttl_ms",
        "grace" => "grace_ms",
        field => field,
    };
    Problem::invalid(field, why.problem)
}

/// Redis counts microseconds exactly up to this.
fn check_time(opens_at: Timestamp) -> Result<(), Problem> {
    if opens_at.as_micros() <= MAX_QUANTITY {
        return Ok(());
    }
    Err(Problem::invalid("opens_at", "must be before the year 2255"))
}
