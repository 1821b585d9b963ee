//! The operations on what can be trusted after the server has changed, on Redis.

use std::time::Duration;

use redis::from_redis_value;

use super::RedisStore;
use super::batch::{Line, micros_or_zero, read_lines, written_pass};
use super::script::{Script, ScriptCall, not_understood};
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, EpochSettle, EpochStatus, JournalChange, JournalEntry, Rebuild, Rebuilt,
    Reopen, Seen, UsedPass, check_batch,
};

impl RedisStore {
    /// The error of a question to a campaign that is recovering; somebody looks after it.
    pub(super) fn recovering(&self, campaign: &Campaign) -> StoreError {
        self.look_after(self.keys.partition_of(campaign.home()));
        StoreError::Recovering
    }

    fn grace_us(&self) -> u64 {
        u64::try_from(self.guardian.grace.as_micros()).unwrap_or(u64::MAX)
    }
}

pub(super) async fn epoch_read(store: &RedisStore, partition: u16) -> Result<EpochStatus, StoreError> {
    let call = store.scripts.call(Script::EpochRead, &store.epoch_keys(partition)).telling_the_run();
    let reply = call.send_for_value(&store.link).await?;
    let words: Vec<String> = from_redis_value(reply.clone()).map_err(|_| not_understood(&reply))?;
    let Some((word, marks)) = words.split_first() else { return Err(not_understood(&words)) };
    let mark = |mark: &[String; 2]| Some((Campaign::from_called(&mark[0])?, mark[1].parse().ok()?));
    let missing = marks.as_chunks().0.iter().map(mark).collect::<Option<_>>();
    Ok(EpochStatus { is_settled: word == "settled", missing: missing.ok_or_else(|| not_understood(&words))? })
}

pub(super) async fn epoch_settle(
    store: &RedisStore,
    partition: u16,
    if_empty: bool,
) -> Result<EpochSettle, StoreError> {
    let [epoch, marks] = store.epoch_keys(partition);
    let keys = [epoch, marks, store.keys.campaigns(partition)];
    let call = store.scripts.call(Script::EpochSettle, &keys).arg(store.grace_us()).arg(u8::from(if_empty));
    let reply = call.telling_the_run().send_for_value(&store.link).await?;
    let words: Vec<String> = from_redis_value(reply.clone()).map_err(|_| not_understood(&reply))?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["settled"] => Ok(EpochSettle::Settled),
        ["early", left] => {
            let left = left.parse().map_err(|_| not_understood(&words))?;
            Ok(EpochSettle::Early { wait: Duration::from_micros(left) })
        }
        _ => Err(not_understood(&words)),
    }
}

pub(super) async fn campaign_reopen(
    store: &RedisStore,
    seen: &[Seen],
    decides: bool,
) -> Result<Vec<Reopen>, StoreError> {
    check_batch(seen)?;
    let Some(first) = seen.first() else { return Ok(Vec::new()) };
    let partition = store.keys.partition_of(first.campaign.home());
    if seen.iter().any(|seen| store.keys.partition_of(seen.campaign.home()) != partition) {
        return Err(InvalidInput::new("seen", "do not all live in one partition").into());
    }
    let mut keys = store.epoch_keys(partition).to_vec();
    keys.extend(seen.iter().map(|seen| store.key_of(&seen.campaign, 0)));
    let call = store.scripts.call(Script::CampaignReopen, &keys).arg(store.grace_us()).arg(u8::from(decides));
    let call = seen.iter().fold(call, |call, seen| call.arg(seen.campaign.called()).arg(seen.rev));
    let text = call.telling_the_run().send_for_text(&store.link).await?;
    read_lines(&text, seen.len(), read_reopen)
}

fn read_reopen(line: &Line<'_>) -> Result<Reopen, StoreError> {
    Ok(match line.parts() {
        ("open", _) => line.numbers().map(|[rev]| Reopen::Open { rev })?,
        ("early", _) => line.numbers().map(|[left]| Reopen::Early { wait: Duration::from_micros(left) })?,
        ("missing", _) => line.numbers().map(|[rev, known]| Reopen::Missing { rev, known })?,
        ("unknown", "") => Reopen::Unknown,
        _ => return Err(line.not_understood()),
    })
}

pub(super) async fn campaign_rebuild(
    store: &RedisStore,
    campaign: &Campaign,
    step: &Rebuild,
) -> Result<Rebuilt, StoreError> {
    step.check()?;
    let partition = store.keys.partition_of(campaign.home());
    let mut keys = vec![store.keys.journal(partition)];
    keys.extend((0..3).map(|part| store.key_of(campaign, part)));
    keys.extend(store.epoch_keys(partition));
    keys.push(store.keys.campaigns(partition));
    let call = store.scripts.call(Script::CampaignRebuild, &keys).arg(campaign.called());
    let call = match step {
        Rebuild::Begin => call.arg("begin"),
        Rebuild::Apply { after, entries } => entries.iter().fold(call.arg("apply").arg(after), with_entry),
        Rebuild::Finish { lost } => call.arg("finish").arg(lost),
    };
    let text = call.telling_the_run().send_for_text(&store.link).await?;
    let line = Line::new(&text);
    match line.parts().0 {
        "done" => line.numbers().map(|[rev]| Rebuilt::Done { rev }),
        "open" => line.numbers().map(|[rev]| Rebuilt::Open { rev }),
        _ => Err(line.not_understood()),
    }
}

/// An entry as `campaign_rebuild.lua` reads it: its last rev, a word, and what belongs to the word.
fn with_entry<'a>(call: ScriptCall<'a>, entry: &JournalEntry) -> ScriptCall<'a> {
    let rev = entry.last_rev();
    let granted = |call: ScriptCall<'a>, seq: u64, user: &Name, quantity: u64, request: &str| {
        call.arg("granted").arg(seq).arg(user.as_str()).arg(quantity).arg(request)
    };
    let used = |pass: Option<&UsedPass>| pass.map_or_else(String::new, written_pass);
    match &entry.change {
        JournalChange::Opened { terms } => call
            .arg(rev)
            .arg("opened")
            .arg(terms.quantity)
            .arg(micros_or_zero(terms.opens_at))
            .arg(micros_or_zero(terms.closes_at))
            .arg(terms.per_user.unwrap_or(0))
            .arg(terms.line.as_ref().map_or("", Name::as_str)),
        JournalChange::Changed { change } => {
            let (how, by) = match change {
                CampaignChange::Pause => ("pause", 0),
                CampaignChange::Resume => ("resume", 0),
                CampaignChange::Close => ("close", 0),
                CampaignChange::Restock { by } => ("restock", *by),
            };
            call.arg(rev).arg("changed").arg(how).arg(by)
        }
        JournalChange::Issued { seq, users, passes } => {
            let all = (entry.rev..).zip(*seq..).zip(users).zip(0..);
            all.fold(call, |call, (((rev, seq), user), place)| {
                granted(call.arg(rev), seq, user, 1, "").arg(used(passes.get(place)))
            })
        }
        JournalChange::Bought { seq, user, quantity, request, pass } => {
            let request =
                request.as_ref().filter(|_| entry.campaign.kind == crate::store::CampaignKind::Deal);
            granted(call.arg(rev), *seq, user, *quantity, request.map_or("", Name::as_str))
                .arg(used(pass.as_ref()))
        }
        JournalChange::Held { id, user, quantity, expires_at, pass } => call
            .arg(rev)
            .arg("held")
            .arg(id.to_string())
            .arg(user.as_str())
            .arg(quantity)
            .arg(expires_at.as_micros())
            .arg(used(pass.as_ref())),
        JournalChange::Confirmed { id, seq, user, quantity } => {
            call.arg(rev).arg("confirmed").arg(seq).arg(user.as_str()).arg(quantity).arg(id.to_string())
        }
        JournalChange::Cancelled { id, .. } => call.arg(rev).arg("cancelled").arg(id.to_string()),
        JournalChange::Expired { id, .. } => call.arg(rev).arg("expired").arg(id.to_string()),
        JournalChange::Revoked { seq, user, quantity } => {
            call.arg(rev).arg("revoked").arg(seq).arg(user.as_str()).arg(quantity)
        }
        JournalChange::Lost { count } => call.arg(rev).arg("lost").arg(count),
    }
}
