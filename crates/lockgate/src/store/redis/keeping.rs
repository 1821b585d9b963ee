//! The operations that forget, on Redis.

use super::RedisStore;
use super::batch::Line;
use super::script::Script;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Campaign, CampaignForget, UserErase, check_batch};

pub(super) async fn campaign_forget(
    store: &RedisStore,
    campaign: &Campaign,
    rev: u64,
) -> Result<CampaignForget, StoreError> {
    let partition = store.keys.partition_of(campaign.home());
    let call = store.reading_with(Script::CampaignForget, campaign, [store.keys.campaigns(partition)]);
    let text = call.arg(rev).send_for_text(&store.link).await?;
    let line = Line::new(&text);
    match line.parts() {
        ("forgotten" | "unknown", "") => Ok(CampaignForget::Forgotten),
        ("not-over", "") => Ok(CampaignForget::NotOver),
        ("changed", _) => line.numbers().map(|[rev]| CampaignForget::Changed { rev }),
        ("recovering", "") => Ok(CampaignForget::Recovering),
        _ => Err(line.not_understood()),
    }
}

pub(super) async fn user_erase(
    store: &RedisStore,
    campaign: &Campaign,
    user: &Name,
    alias: &Name,
    seqs: &[u64],
) -> Result<UserErase, StoreError> {
    check_batch(seqs)?;
    let call = store.reading(Script::UserErase, campaign).arg(user.as_str()).arg(alias.as_str());
    let text = seqs.iter().fold(call, |call, seq| call.arg(seq)).send_for_text(&store.link).await?;
    let line = Line::new(&text);
    match line.parts() {
        ("erased" | "unknown", "") => Ok(UserErase::Erased),
        ("held", "") => Ok(UserErase::Held),
        ("recovering", "") => Ok(UserErase::Recovering),
        _ => Err(line.not_understood()),
    }
}
