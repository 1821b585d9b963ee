//! What several commands take from the command line.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::Failure;

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// What it is called
    pub(crate) id: String,
}

/// When a campaign is open, and for whom.
#[derive(Debug, Args)]
pub(crate) struct Window {
    /// When it opens, as in 2026-12-24T18:00:00Z; none: it is open
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    opens_at: Option<Value>,

    /// When it closes; none: not by itself
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    closes_at: Option<Value>,

    /// The line whose pass it demands; none: no pass
    #[arg(long, value_name = "LINE", value_parser = text_or_none)]
    line: Option<Value>,
}

impl Window {
    pub(crate) fn members(self) -> [(&'static str, Option<Value>); 3] {
        [("opens_at", self.opens_at), ("closes_at", self.closes_at), ("line", self.line)]
    }
}

/// The key under which something happens once.
#[derive(Debug, Args)]
pub(crate) struct Once {
    /// Repeated with the same key, it happens once; without it, a new one
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Once {
    pub(crate) fn key(self) -> Result<String, Failure> {
        self.idempotency_key.map_or_else(random_key, Ok)
    }
}

pub(crate) fn random_key() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|why| format!("the system has no randomness to give: {why}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// What was said, over what there was.
pub(crate) fn object<const N: usize>(members: [(&'static str, Option<Value>); N], before: &Value) -> Value {
    let member = |(name, said): (&str, Option<Value>)| {
        let value = said.or_else(|| before.get(name).cloned())?;
        Some((name.to_owned(), value))
    };
    Value::Object(members.into_iter().filter_map(member).collect::<Map<_, _>>())
}

pub(crate) fn time_or_none(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::Null);
    }
    let time: jiff::Timestamp =
        text.parse().map_err(|_| "write it as in 2026-12-24T18:00:00Z, or none".to_owned())?;
    Ok(json!(time.to_string()))
}

fn text_or_none(text: &str) -> Result<Value, String> {
    Ok(if text == "none" { Value::Null } else { json!(text) })
}

/// A length of time with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    let length = parsed.and_then(|length| Duration::try_from(length).ok());
    length.ok_or_else(|| "write it with its unit, as in 500ms, 2s or 5m".to_owned())
}

/// The same in whole milliseconds, or none.
pub(crate) fn millis_or_none(text: &str) -> Result<Value, String> {
    Ok(if text == "none" { Value::Null } else { json!(millis(duration(text)?)) })
}

/// The same, and something.
pub(crate) fn positive_millis(text: &str) -> Result<u64, String> {
    match millis(duration(text)?) {
        0 => Err("write a millisecond or more, as in 500ms, 2s or 5m".to_owned()),
        millis => Ok(millis),
    }
}

pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_needs_its_unit() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("1m30s").unwrap(), Duration::from_secs(90));
        for wrong in ["", "5", "-1s", "1 fortnight"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_not_said_stays_and_none_takes_it_away() {
        let before = json!({ "quantity": 5, "line": "a", "state": "open" });
        let said =
            object([("quantity", Some(json!(7))), ("line", Some(Value::Null)), ("opens_at", None)], &before);
        assert_eq!(said, json!({ "quantity": 7, "line": null }));
        assert_eq!(
            object([("quantity", None), ("line", None)], &before),
            json!({ "quantity": 5, "line": "a" })
        );
    }
}
