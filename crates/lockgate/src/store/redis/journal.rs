//! The journal operations, on Redis.

use std::collections::HashMap;
use std::time::Duration;

use redis::{FromRedisValue, Value, from_redis_value};

use super::RedisStore;
use super::batch::{read_passes, timestamp_unless_zero, unpack};
use super::script::{Script, not_understood, unsigned};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, HoldId, JournalChange, JournalEntry, JournalPosition, JournalReader,
    JournalStanding, JournalTaken, MAX_BATCH, Terms, UsedPass, check_batch,
};

/// After how long a reader that has nothing and was never seen again is forgotten: every process has a new name.
const FORGOTTEN_MS: u64 = 60 * 60 * 1_000;

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
    let mut after = after;
    loop {
        let call = store.scripts.call(Script::JournalRead, &[store.keys.journal(partition)]);
        let reply = call.arg(after.to_string()).arg(limit).send_for_value(&store.link).await?;
        let taken = read_all(reply)?;
        let Some(last) = taken.last().map(JournalTaken::position) else { return Ok(Vec::new()) };
        let entries: Vec<_> = taken.into_iter().filter_map(readable).collect();
        // Nothing would look like the end.
        if !entries.is_empty() {
            return Ok(entries);
        }
        after = last;
    }
}

fn readable(taken: JournalTaken) -> Option<JournalEntry> {
    match taken {
        JournalTaken::Entry(entry) => Some(entry),
        JournalTaken::Unreadable { .. } | JournalTaken::Gone { .. } => None,
    }
}

pub(super) async fn journal_take(
    store: &RedisStore,
    partition: u16,
    reader: &JournalReader,
    after: JournalPosition,
    limit: usize,
) -> Result<Vec<JournalTaken>, StoreError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let call = store.scripts.call(Script::JournalTake, &[store.keys.journal(partition)]);
    let call = call.arg(reader.group.as_str()).arg(reader.name.as_str()).arg(after.to_string());
    read_all(call.arg(limit.min(MAX_BATCH)).send_for_value(&store.link).await?)
}

fn read_all(reply: Value) -> Result<Vec<JournalTaken>, StoreError> {
    let Value::Array(entries) = reply else { return Err(not_understood(&reply)) };
    entries.into_iter().map(|entry| read_one(&entry).ok_or_else(|| not_understood(&entry))).collect()
}

fn read_one(entry: &Value) -> Option<JournalTaken> {
    let Value::Array(parts) = entry else { return None };
    let [position, fields] = parts.as_slice() else { return None };
    let position: String = from_redis_value(position.clone()).ok()?;
    let position = JournalPosition::parse(&position)?;
    if *fields == Value::Nil {
        return Some(JournalTaken::Gone { position });
    }
    let entry = HashMap::from_redis_value(fields.clone()).ok();
    let entry = entry.and_then(|fields| read_entry(position, &Fields(fields)));
    Some(entry.map_or_else(
        || JournalTaken::Unreadable { position, content: written_out(fields) },
        JournalTaken::Entry,
    ))
}

/// An entry that is not ours, for people to read.
fn written_out(fields: &Value) -> String {
    let Value::Array(fields) = fields else { return format!("{fields:?}") };
    let words = fields.iter().map(|field| match field {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn read_entry(position: JournalPosition, fields: &Fields) -> Option<JournalEntry> {
    Some(JournalEntry {
        position,
        campaign: Campaign::from_called(fields.text("campaign")?)?,
        rev: fields.number("rev").filter(|rev| *rev > 0)?,
        // A position is the time, in milliseconds, and a counter.
        at: Timestamp::from_millis(position.major),
        change: read_change(fields)?,
    })
}

fn read_change(fields: &Fields) -> Option<JournalChange> {
    Some(match fields.text("change")? {
        "opened" => JournalChange::Opened { terms: fields.terms()? },
        "changed" => JournalChange::Changed { change: fields.campaign_change()? },
        "issued" => {
            let users = unpack(fields.text("users")?)?;
            let users =
                users.into_iter().map(|user| Name::new("user", user).ok()).collect::<Option<Vec<_>>>()?;
            if users.is_empty() {
                return None;
            }
            let passes = read_passes(fields.text("passes").unwrap_or_default())?;
            JournalChange::Issued { seq: fields.number("seq")?, users, passes }
        }
        "bought" => JournalChange::Bought {
            seq: fields.number("seq")?,
            user: fields.name("user")?,
            quantity: fields.number("quantity")?,
            request: fields.name("request"),
            pass: fields.pass()?,
        },
        "held" => JournalChange::Held {
            id: fields.hold()?,
            user: fields.name("user")?,
            quantity: fields.number("quantity")?,
            expires_at: Timestamp::from_micros(fields.number("expires_at_us")?),
            pass: fields.pass()?,
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
        "lost" => JournalChange::Lost { count: fields.number("count").filter(|count| *count > 0)? },
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

    /// The pass that was used up, if one was; nothing when it cannot be read.
    fn pass(&self) -> Option<Option<UsedPass>> {
        match read_passes(self.text("pass").unwrap_or_default())?[..] {
            [] => Some(None),
            [pass] => Some(Some(pass)),
            _ => None,
        }
    }

    fn terms(&self) -> Option<Terms> {
        Some(Terms {
            quantity: self.number("quantity")?,
            opens_at: timestamp_unless_zero(self.number("opens_at_us")?),
            closes_at: timestamp_unless_zero(self.number("closes_at_us")?),
            per_user: self.number("per_user").filter(|limit| *limit != 0),
            line: self.name("line"),
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

pub(super) async fn journal_claim(
    store: &RedisStore,
    partition: u16,
    reader: &JournalReader,
    idle: Duration,
) -> Result<u64, StoreError> {
    let call = store.scripts.call(Script::JournalClaim, &[store.keys.journal(partition)]);
    let call = call.arg(reader.group.as_str()).arg(reader.name.as_str());
    let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
    read_count(call.arg(idle).arg(MAX_BATCH).arg(FORGOTTEN_MS).send_for_value(&store.link).await?)
}

pub(super) async fn journal_acknowledge(
    store: &RedisStore,
    partition: u16,
    group: &Name,
    positions: &[JournalPosition],
) -> Result<u64, StoreError> {
    check_batch(positions)?;
    if positions.is_empty() {
        return Ok(0);
    }
    let call = store.scripts.call(Script::JournalAcknowledge, &[store.keys.journal(partition)]);
    let call =
        positions.iter().fold(call.arg(group.as_str()), |call, position| call.arg(position.to_string()));
    read_count(call.send_for_value(&store.link).await?)
}

pub(super) async fn journal_standing(
    store: &RedisStore,
    partition: u16,
    group: &Name,
) -> Result<JournalStanding, StoreError> {
    let call = store.scripts.call(Script::JournalStanding, &[store.keys.journal(partition)]);
    let reply = call.arg(group.as_str()).send_for_value(&store.link).await?;
    let (last, oldest, now_ms): (String, String, u64) =
        from_redis_value(reply.clone()).map_err(|_| not_understood(&reply))?;
    let last = JournalPosition::parse(&last).ok_or_else(|| not_understood(&last))?;
    let oldest_waiting = JournalPosition::parse(&oldest);
    let behind = oldest_waiting.map_or(0, |oldest| now_ms.saturating_sub(oldest.major));
    Ok(JournalStanding { last, oldest_waiting, behind: Duration::from_millis(behind) })
}

pub(super) async fn journal_dismiss(
    store: &RedisStore,
    partition: u16,
    group: &Name,
) -> Result<bool, StoreError> {
    let call = store.scripts.call(Script::JournalDismiss, &[store.keys.journal(partition)]);
    Ok(read_count(call.arg(group.as_str()).send_for_value(&store.link).await?)? == 1)
}

pub(super) async fn journal_trim(
    store: &RedisStore,
    partition: u16,
    through: JournalPosition,
) -> Result<u64, StoreError> {
    let call = store.scripts.call(Script::JournalTrim, &[store.keys.journal(partition)]);
    read_count(call.arg(through.next().to_string()).send_for_value(&store.link).await?)
}

fn read_count(reply: Value) -> Result<u64, StoreError> {
    match reply {
        Value::Int(count) => Ok(unsigned(count)),
        other => Err(not_understood(&other)),
    }
}
