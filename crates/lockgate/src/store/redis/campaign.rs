//! The operations on campaigns as such, on Redis.

use redis::from_redis_value;

use super::RedisStore;
use super::batch::{Campaigns, Line, micros_or_zero, timestamp_unless_zero};
use super::script::{Script, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignChanged, CampaignOpen, CampaignState, CampaignStatus, Counts,
    MAX_BATCH, Sending, Switch, Terms, UserShare,
};

pub(super) async fn campaign_open(
    store: &RedisStore,
    sending: &Sending,
    campaign: &Campaign,
    terms: &Terms,
) -> Result<CampaignOpen, StoreError> {
    terms.check_for(campaign)?;
    let campaigns = Campaigns::with(store, campaign);
    let call = store
        .batch(Script::CampaignOpen, sending, &campaigns, [store.keys.campaigns(campaigns.partition())])
        .arg(terms.quantity)
        .arg(micros_or_zero(terms.opens_at))
        .arg(micros_or_zero(terms.closes_at))
        .arg(terms.per_user.unwrap_or(0))
        .arg(terms.line.as_ref().map_or("", Name::as_str));
    let text = store.send_batch(call, &campaigns).await?;
    let line = Line::new(&text);
    match line.parts().0 {
        "created" => Ok(CampaignOpen::Created(read_standing(&line)?)),
        "changed" => Ok(CampaignOpen::Changed(read_standing(&line)?)),
        "recovering" => Ok(CampaignOpen::Recovering),
        "below-issued" => line.numbers().map(|[issued]| CampaignOpen::BelowIssued { issued }),
        _ => Err(line.not_understood()),
    }
}

pub(super) async fn campaign_change(
    store: &RedisStore,
    sending: &Sending,
    campaign: &Campaign,
    change: CampaignChange,
) -> Result<CampaignChanged, StoreError> {
    let (word, by) = match change {
        CampaignChange::Pause => ("pause", 0),
        CampaignChange::Resume => ("resume", 0),
        CampaignChange::Close => ("close", 0),
        CampaignChange::Restock { by } => ("restock", by),
    };
    let campaigns = Campaigns::with(store, campaign);
    let call = store.batch(Script::CampaignChange, sending, &campaigns, []);
    let text = store.send_batch(call.arg(word).arg(by), &campaigns).await?;
    let line = Line::new(&text);
    match line.parts().0 {
        "now" => Ok(CampaignChanged::Now(read_standing(&line)?)),
        "closed" => Ok(CampaignChanged::Closed),
        "too-many" => Ok(CampaignChanged::TooMany),
        "unknown" => Ok(CampaignChanged::Unknown),
        "recovering" => Ok(CampaignChanged::Recovering),
        _ => Err(line.not_understood()),
    }
}

pub(super) async fn campaign_read(
    store: &RedisStore,
    campaign: &Campaign,
) -> Result<Option<CampaignStatus>, StoreError> {
    let text = store.reading(Script::CampaignRead, campaign).send_for_text(&store.link).await?;
    let line = Line::new(&text);
    match line.parts().0 {
        "unknown" => Ok(None),
        "recovering" => Err(store.recovering(campaign)),
        "known" => read_standing(&line).map(Some),
        "suspect" => {
            store.look_after(store.keys.partition_of(campaign.home()));
            let status = read_standing(&line)?;
            Ok(Some(CampaignStatus { state: CampaignState::Recovering, ..status }))
        }
        _ => Err(line.not_understood()),
    }
}

pub(super) async fn campaign_list(
    store: &RedisStore,
    partition: u16,
    after: Option<&Campaign>,
    limit: usize,
) -> Result<Vec<Campaign>, StoreError> {
    let call = store.scripts.call(Script::CampaignList, &[store.keys.campaigns(partition)]);
    let call = call.arg(after.map(Campaign::called).unwrap_or_default());
    let reply = call.arg(i64::try_from(limit).unwrap_or(i64::MAX)).send_for_value(&store.link).await?;
    let names: Vec<String> = from_redis_value(reply.clone()).map_err(|_| not_understood(&reply))?;
    names.iter().map(|name| Campaign::from_called(name).ok_or_else(|| not_understood(name))).collect()
}

pub(super) async fn share_read(
    store: &RedisStore,
    campaign: &Campaign,
    user: &Name,
) -> Result<Option<UserShare>, StoreError> {
    let call = store.reading(Script::ShareRead, campaign).arg(user.as_str());
    let text = call.send_for_text(&store.link).await?;
    let line = Line::new(&text);
    match line.parts().0 {
        "unknown" => Ok(None),
        "recovering" => Err(store.recovering(campaign)),
        "share" => line
            .numbers()
            .map(|[granted, held, seq]| Some(UserShare { granted, held, seq: (seq != 0).then_some(seq) })),
        _ => Err(line.not_understood()),
    }
}

/// What `shared/standing.lua` wrote, after the word.
fn read_standing(line: &Line<'_>) -> Result<CampaignStatus, StoreError> {
    let ([quantity, granted, held, seq, rev, opens_at, closes_at, per_user, switch, now], demanded) =
        line.numbers_and_text()?;
    let switch = match switch {
        1 => Switch::Running,
        2 => Switch::Paused,
        3 => Switch::Closed,
        _ => return Err(line.not_understood()),
    };
    let terms = Terms {
        quantity,
        opens_at: timestamp_unless_zero(opens_at),
        closes_at: timestamp_unless_zero(closes_at),
        per_user: (per_user != 0).then_some(per_user),
        line: demanded.map(|name| Name::new("line", name)).transpose()?,
    };
    let counts = Counts { granted, held, seq, rev };
    Ok(CampaignStatus::at(Timestamp::from_micros(now), &terms, switch, counts))
}

/// All campaigns of a partition.
pub(super) async fn list_all(store: &RedisStore, partition: u16) -> Result<Vec<Campaign>, StoreError> {
    let mut all: Vec<Campaign> = Vec::new();
    loop {
        let page = campaign_list(store, partition, all.last(), MAX_BATCH).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}
