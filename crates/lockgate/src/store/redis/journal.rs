//! The journal operations, on Redis.

use std::collections::HashMap;

use redis::{FromRedisValue, Value, from_redis_value};

use super::RedisStore;
use super::batch::{campaign_called, timestamp_unless_zero, unpack};
use super::script::{Script, not_understood, unsigned};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{CampaignChange, HoldId, JournalChange, JournalEntry, JournalPosition, Terms};

pub(super) async fn journal_read(
    store: &RedisStore,
    partition: u16,
    after: JournalPosition,
    limit: usize,
) -> Result<Vec<JournalEntry>, StoreError> {
    // Redis answers a count of zero with nothing at all, and counts only as far as a signed number goes.
    let limit = match limit {
        0 => return Ok(Vec::new()),
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    };
    let call = store.scripts.call(Script::JournalRead, &[store.keys.journal(partition)]);
    let reply = call.arg(after.to_string()).arg(limit).send_for_value(&store.link).await?;
    let Value::Array(entries) = reply else { return Err(not_understood(&reply)) };
    entries.into_iter().map(|entry| read_entry(&entry).ok_or_else(|| not_understood(&entry))).collect()
}

fn read_entry(entry: &Value) -> Option<JournalEntry> {
    let Value::Array(parts) = entry else { return None };
    let [position, fields] = parts.as_slice() else { return None };
    let position: String = from_redis_value(position.clone()).ok()?;
    let fields = Fields(HashMap::from_redis_value(fields.clone()).ok()?);
    Some(JournalEntry {
        position: JournalPosition::parse(&position)?,
        campaign: campaign_called(fields.text("campaign")?)?,
        rev: fields.number("rev")?,
        // A position is the time, in milliseconds, and a counter.
        at: Timestamp::from_millis(JournalPosition::parse(&position)?.major),
        change: read_change(&fields)?,
    })
}

fn read_change(fields: &Fields) -> Option<JournalChange> {
    Some(match fields.text("change")? {
        "opened" => JournalChange::Opened { terms: fields.terms()? },
        "changed" => JournalChange::Changed { change: fields.campaign_change()? },
        "issued" => {
            let users = unpack(fields.text("users")?)?;
            let users = users.into_iter().map(|user| Name::new("user", user).ok()).collect::<Option<_>>()?;
            JournalChange::Issued { seq: fields.number("seq")?, users }
        }
        "bought" => JournalChange::Bought {
            seq: fields.number("seq")?,
            user: fields.name("user")?,
            quantity: fields.number("quantity")?,
            request: fields.name("request"),
        },
        "held" => JournalChange::Held {
            id: fields.hold()?,
            user: fields.name("user")?,
            quantity: fields.number("quantity")?,
            expires_at: Timestamp::from_micros(fields.number("expires_at_us")?),
        },
        "confirmed" => JournalChange::Confirmed {
            id: fields.hold()?,
            seq: fields.number("seq")?,
            user: fields.name("user")?,
            quantity: fields.number("quantity")?,
        },
        "cancelled" => {
            let (id, user, quantity) = (fields.hold()?, fields.name("user")?, fields.number("quantity")?);
            JournalChange::Cancelled { id, user, quantity }
        }
        "expired" => {
            let (id, user, quantity) = (fields.hold()?, fields.name("user")?, fields.number("quantity")?);
            JournalChange::Expired { id, user, quantity }
        }
        "revoked" => {
            let (seq, user) = (fields.number("seq")?, fields.name("user")?);
            JournalChange::Revoked { seq, user, quantity: fields.number("quantity")? }
        }
        _ => return None,
    })
}

/// The fields of an entry, as the scripts wrote them.
struct Fields(HashMap<String, String>);

impl Fields {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    fn number(&self, field: &str) -> Option<u64> {
        self.text(field)?.parse().ok()
    }

    fn name(&self, field: &'static str) -> Option<Name> {
        Name::new(field, self.text(field)?).ok()
    }

    fn hold(&self) -> Option<HoldId> {
        HoldId::parse(self.text("hold")?)
    }

    fn terms(&self) -> Option<Terms> {
        Some(Terms {
            quantity: self.number("quantity")?,
            opens_at: timestamp_unless_zero(self.number("opens_at_us")?),
            closes_at: timestamp_unless_zero(self.number("closes_at_us")?),
            per_user: self.number("per_user").filter(|limit| *limit != 0),
        })
    }

    fn campaign_change(&self) -> Option<CampaignChange> {
        Some(match self.text("how")? {
            "pause" => CampaignChange::Pause,
            "resume" => CampaignChange::Resume,
            "close" => CampaignChange::Close,
            "restock" => CampaignChange::Restock { by: self.number("by")? },
            _ => return None,
        })
    }
}

pub(super) async fn journal_trim(
    store: &RedisStore,
    partition: u16,
    through: JournalPosition,
) -> Result<u64, StoreError> {
    let first_kept = match through.minor.checked_add(1) {
        Some(minor) => JournalPosition { minor, ..through },
        None => JournalPosition::new(through.major.saturating_add(1), 0),
    };
    let call = store.scripts.call(Script::JournalTrim, &[store.keys.journal(partition)]);
    match call.arg(first_kept.to_string()).send_for_value(&store.link).await? {
        Value::Int(trimmed) => Ok(unsigned(trimmed)),
        other => Err(not_understood(&other)),
    }
}
