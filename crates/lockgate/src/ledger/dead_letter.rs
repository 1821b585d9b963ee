//! Dead letters: what could not be written, kept with the reason until somebody decides.

use std::fmt;

use super::error::LedgerError;
use super::record::{Record, What};
use super::sql::{Arrival, Row, Value};
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{Campaign, JournalPosition};

/// An entry of the journal that is not in the ledger, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The partition of the journal.
    pub partition: u16,
    /// Where it stood in the journal.
    pub position: JournalPosition,
    /// The campaign, if the entry could be read.
    pub campaign: Option<Campaign>,
    /// The number of the change; 0 if the entry could not be read.
    pub rev: u64,
    /// Whether the ledger has the same change with other content.
    pub is_conflict: bool,
    /// Why it is here.
    pub reason: String,
    /// What the entry says.
    pub content: String,
    /// When it was put here.
    pub at: Timestamp,
    granted: i64,
}

/// Which dead letter: the partition of the journal, the position in it and the number of the change, as in `0:1763312400000-0:7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeadLetterId {
    part: u16,
    position: JournalPosition,
    rev: u64,
}

impl DeadLetterId {
    /// Reads what [`Display`](fmt::Display) wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (part, place, rev) = (parts.next()?, parts.next()?, parts.next()?);
        let id = Self {
            part: part.parse().ok()?,
            position: JournalPosition::parse(place)?,
            rev: rev.parse().ok()?,
        };
        // Spelled in one way only: `+7` and `07` are numbers too.
        (id.to_string() == text).then_some(id)
    }

    /// The values of its key.
    pub(super) fn values(&self) -> [Value; 3] {
        let rev = i64::try_from(self.rev).unwrap_or(i64::MAX);
        [Value::Integer(self.part.into()), Value::Text(self.position.to_string()), Value::Integer(rev)]
    }
}

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.part, self.position, self.rev)
    }
}

/// What a dead letter counts for in an audit.
#[derive(Clone, Debug)]
pub(super) struct Buried {
    pub(super) campaign: Option<Campaign>,
    pub(super) rev: u64,
    pub(super) granted: i64,
    pub(super) is_conflict: bool,
}

impl DeadLetter {
    /// Which it is.
    #[must_use]
    pub fn id(&self) -> DeadLetterId {
        DeadLetterId { part: self.partition, position: self.position, rev: self.rev }
    }

    /// An entry that nobody understands.
    pub(super) fn unreadable(part: u16, position: JournalPosition, content: String, at: Timestamp) -> Self {
        let reason =
            "the entry could not be read: it was written by somebody else, or by a newer version".into();
        Self {
            partition: part,
            position,
            campaign: None,
            rev: 0,
            is_conflict: false,
            reason,
            content,
            at,
            granted: 0,
        }
    }

    /// A record that the database or the sink does not take.
    pub(super) fn refused(arrival: &Arrival, reason: String, at: Timestamp) -> Self {
        let Arrival { part, position, record } = arrival;
        Self {
            partition: *part,
            position: *position,
            campaign: Some(record.campaign.clone()),
            rev: record.rev,
            is_conflict: false,
            reason,
            content: written(record),
            at,
            granted: record.granted(),
        }
    }

    /// A record whose place is taken by another.
    pub(super) fn conflict(arrival: &Arrival, known: &Record, at: Timestamp) -> Self {
        let reason = format!("the ledger has this change with other content: {}", written(known));
        Self { is_conflict: true, ..Self::refused(arrival, reason, at) }
    }

    /// The same letter without that user; `None` when it is not the user's.
    pub(super) fn without(&self, user: &Name) -> Option<Self> {
        let mut record = self.arrival()?.record;
        // Of a conflict, the reason says what the ledger has, with whose it is.
        let is_in_reason = self.reason.contains(&named("user", user.as_str()));
        let is_the_users = record.user.as_ref() == Some(user);
        if !is_the_users && !is_in_reason {
            return None;
        }
        if is_the_users {
            record.user = None;
            record.detail = record.detail.filter(|_| record.what != What::Bought);
        }
        let reason = if is_in_reason { ERASED_CONFLICT.to_owned() } else { self.reason.clone() };
        Some(Self { content: written(&record), reason, ..self.clone() })
    }

    /// The values of its row.
    pub(super) fn values(&self) -> [Value; 9] {
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let [part, place, rev] = self.id().values();
        [
            part,
            place,
            rev,
            Value::text_or_null(self.campaign.as_ref().map(|campaign| escaped(&campaign.called()))),
            Value::Integer(self.granted),
            Value::Integer(self.is_conflict.into()),
            Value::Text(escaped(&self.reason)),
            Value::Text(escaped(&self.content)),
            number(self.at.as_micros()),
        ]
    }

    pub(super) fn read(row: Row) -> Result<Self, LedgerError> {
        let bad = || LedgerError::Unfit("a row of lockgate_dead_letters makes no sense".into());
        let [part, place, rev, called, granted, conflict, reason, content, at] =
            <[Value; 9]>::try_from(row).map_err(|_| bad())?;
        let unsigned = |value: &Value| value.integer().and_then(|number| u64::try_from(number).ok());
        let place = place.into_text().ok_or_else(bad)?;
        Ok(Self {
            partition: part.integer().and_then(|part| u16::try_from(part).ok()).ok_or_else(bad)?,
            position: JournalPosition::parse(&place).ok_or_else(bad)?,
            campaign: called.into_text().and_then(|called| Campaign::from_called(&unescaped(&called))),
            rev: unsigned(&rev).ok_or_else(bad)?,
            is_conflict: conflict.integer() == Some(1),
            reason: reason.into_text().map(|text| unescaped(&text)).unwrap_or_default(),
            content: content.into_text().map(|text| unescaped(&text)).unwrap_or_default(),
            at: Timestamp::from_micros(unsigned(&at).ok_or_else(bad)?),
            granted: granted.integer().unwrap_or(0),
        })
    }

    /// The record in it, and where it came from; `None` if the entry could not be read.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        let record = read(self.campaign.as_ref()?, self.rev, &self.content)?;
        Some(Arrival { part: self.partition, position: self.position, record })
    }
}

impl Buried {
    /// More dead letters than these are not looked at one by one: the light is red long before.
    pub(super) const MOST: usize = 100_000;

    pub(super) fn read(row: Row) -> Result<Self, LedgerError> {
        let bad = || LedgerError::Unfit("a row of lockgate_dead_letters makes no sense".into());
        let [called, rev, granted, conflict] = <[Value; 4]>::try_from(row).map_err(|_| bad())?;
        Ok(Self {
            campaign: called.into_text().and_then(|called| Campaign::from_called(&unescaped(&called))),
            rev: rev.integer().and_then(|rev| u64::try_from(rev).ok()).ok_or_else(bad)?,
            granted: granted.integer().unwrap_or(0),
            is_conflict: conflict.integer() == Some(1),
        })
    }
}

fn escaped(text: &str) -> String {
    super::sql::text(text)
}

fn unescaped(text: &str) -> String {
    super::sql::read_text(text).into_owned()
}

/// A record in words that [`read`] understands: `issued at=… seq=… quantity=… user="…" detail="…"`.
fn written(record: &Record) -> String {
    let mut text = format!("{} at={}", record.what, record.at.as_micros());
    for (word, number) in [("seq", record.seq), ("quantity", record.quantity)] {
        if let Some(number) = number {
            text.push_str(&format!(" {word}={number}"));
        }
    }
    for (word, value) in
        [("user", record.user.as_ref().map(Name::as_str)), ("detail", record.detail.as_deref())]
    {
        if let Some(value) = value {
            text.push_str(&named(word, value));
        }
    }
    text
}

/// The reason of a conflict with what was an erased user's.
const ERASED_CONFLICT: &str = "the ledger has this change with other content, of a user who was erased";

fn named(word: &str, value: &str) -> String {
    format!(" {word}={}:{value}", value.len())
}

/// Undoes [`written`].
fn read(campaign: &Campaign, rev: u64, content: &str) -> Option<Record> {
    let (what, mut rest) = content.split_once(' ')?;
    let mut record = Record {
        campaign: campaign.clone(),
        rev,
        at: Timestamp::from_micros(0),
        what: What::from_word(what)?,
        seq: None,
        user: None,
        quantity: None,
        detail: None,
    };
    while !rest.is_empty() {
        let (word, value) = rest.trim_start().split_once('=')?;
        if matches!(word, "user" | "detail") {
            let (length, value) = value.split_once(':')?;
            let (text, after) = value.split_at_checked(length.parse().ok()?)?;
            match word {
                "user" => record.user = Some(Name::new("user", text).ok()?),
                _ => record.detail = Some(text.to_owned()),
            }
            rest = after;
            continue;
        }
        let (number, after) = value.split_once(' ').unwrap_or((value, ""));
        let number = number.parse().ok()?;
        match word {
            "at" => record.at = Timestamp::from_micros(number),
            "seq" => record.seq = Some(number),
            "quantity" => record.quantity = Some(number),
            _ => return None,
        }
        rest = after;
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::CampaignKind;

    #[test]
    fn a_letter_is_called_what_it_reads_as() {
        for text in ["0:1-0:7", "65535:18446744073709551615-3:0"] {
            assert_eq!(DeadLetterId::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "0",
            "0:1-0",
            "0:1-0:7:",
            "65536:1-0:7",
            "0:1:7",
            "0:01-0:7",
            "+0:1-0:7",
            "0:1-0:-7",
            "0:1-0:x",
        ] {
            assert_eq!(DeadLetterId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_buried_can_be_dug_out() {
        let name = |text: &str| Name::new("name", text).unwrap();
        let campaign = Campaign::new(CampaignKind::Deal, name("a\0b"));
        for (user, detail) in [
            (Some("a b=7 seq=1\n\\"), Some("user=3:x ")),
            (Some("a"), None),
            (None, Some("pause")),
            (None, None),
        ] {
            let record = Record {
                campaign: campaign.clone(),
                rev: 9,
                at: Timestamp::from_micros(77),
                what: What::Bought,
                seq: user.map(|_| 3),
                user: user.map(name),
                quantity: Some(4),
                detail: detail.map(str::to_owned),
            };
            let arrival = Arrival { part: 3, position: JournalPosition::new(5, 6), record: record.clone() };
            let letter = DeadLetter::refused(&arrival, "no".into(), Timestamp::from_micros(1));
            let read = DeadLetter::read(letter.values().to_vec()).unwrap();
            assert_eq!(read.arrival().unwrap().record, record);
            assert_eq!((read.partition, read.position, read.reason.as_str()), (3, arrival.position, "no"));
        }
    }
}
