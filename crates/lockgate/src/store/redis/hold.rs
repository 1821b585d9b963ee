//! The hold operations, on Redis.

use super::RedisStore;
use super::batch::{Campaigns, Line, pack_passes, read_lines};
use super::script::{Script, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, HoldId, HoldPlace, HoldSettle, HoldState, HoldStatus, HoldWish, PassDenial, Sending,
    SettleWish, Settlement, check_batch,
};

pub(super) async fn hold_place(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[HoldWish],
) -> Result<Vec<HoldPlace>, StoreError> {
    check_batch(wishes)?;
    wishes.iter().try_for_each(HoldWish::check)?;
    let Some(first) = wishes.first() else { return Ok(Vec::new()) };
    let mut campaigns = Campaigns::with(store, &first.campaign);
    let places =
        wishes.iter().map(|wish| campaigns.place_of(store, &wish.campaign)).collect::<Result<Vec<_>, _>>()?;
    let passes = pack_passes(wishes.iter().map(|wish| (&wish.user, wish.pass.as_ref())));
    let mut call = store.batch_with_passes(Script::HoldPlace, sending, &passes, &campaigns, []);
    for (HoldWish { id, user, quantity, ttl, .. }, place) in wishes.iter().zip(places) {
        let ttl_us = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
        call = call.arg(place + 1).arg(id.to_string()).arg(user.as_str()).arg(quantity).arg(ttl_us);
    }
    read_lines(&store.send_batch(call, &campaigns).await?, wishes.len(), read_place)
}

fn read_place(line: &Line<'_>) -> Result<HoldPlace, StoreError> {
    Ok(match line.parts() {
        ("held", _) => {
            let [expires_at, remaining] = line.numbers()?;
            HoldPlace::Held { expires_at: Timestamp::from_micros(expires_at), remaining }
        }
        ("reused", "") => HoldPlace::RequestReused,
        ("already", _) => line.numbers().map(|[seq]| HoldPlace::AlreadyIssued { seq })?,
        ("limit", _) => {
            line.numbers().map(|[taken, per_user]| HoldPlace::LimitExceeded { taken, per_user })?
        }
        ("sold-out", _) => line.numbers().map(|[remaining]| HoldPlace::SoldOut { remaining })?,
        ("not-open", _) => line
            .numbers()
            .map(|[opens_at]| HoldPlace::NotOpen { opens_at: Timestamp::from_micros(opens_at) })?,
        ("paused", "") => HoldPlace::Paused,
        ("closed", "") => HoldPlace::Closed,
        ("unknown", "") => HoldPlace::Unknown,
        ("recovering", "") => HoldPlace::Recovering,
        (word, "") => PassDenial::from_word(word).ok_or_else(|| line.not_understood())?.into(),
        _ => return Err(line.not_understood()),
    })
}

pub(super) async fn hold_settle(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[SettleWish],
) -> Result<Vec<HoldSettle>, StoreError> {
    check_batch(wishes)?;
    let Some(first) = wishes.first() else { return Ok(Vec::new()) };
    let mut campaigns = Campaigns::with(store, &first.campaign);
    let places =
        wishes.iter().map(|wish| campaigns.place_of(store, &wish.campaign)).collect::<Result<Vec<_>, _>>()?;
    let mut call = store.batch(Script::HoldSettle, sending, &campaigns, []);
    for (SettleWish { id, user, settlement, .. }, place) in wishes.iter().zip(places) {
        let wish = match settlement {
            Settlement::Confirm => "confirm",
            Settlement::Cancel => "cancel",
        };
        call = call.arg(place + 1).arg(id.to_string()).arg(user.as_str()).arg(wish);
    }
    read_lines(&store.send_batch(call, &campaigns).await?, wishes.len(), |line| match line.parts() {
        ("confirmed", _) => line.numbers().map(|[seq]| HoldSettle::Confirmed { seq }),
        ("cancelled", "") => Ok(HoldSettle::Cancelled),
        ("was-confirmed", _) => line.numbers().map(|[seq]| HoldSettle::AlreadyConfirmed { seq }),
        ("was-cancelled", "") => Ok(HoldSettle::AlreadyCancelled),
        ("expired", "") => Ok(HoldSettle::Expired),
        ("unknown", "") => Ok(HoldSettle::Unknown),
        ("recovering", "") => Ok(HoldSettle::Recovering),
        _ => Err(line.not_understood()),
    })
}

pub(super) async fn hold_read(
    store: &RedisStore,
    campaign: &Campaign,
    id: &HoldId,
) -> Result<Option<HoldStatus>, StoreError> {
    let call = store.reading(Script::HoldRead, campaign).arg(id.to_string());
    let text = call.send_for_text(&store.link).await?;
    match text.as_str() {
        "unknown" => return Ok(None),
        "recovering" => return Err(store.recovering(campaign)),
        _ => {}
    }
    let status = text.split_once('\n').and_then(|(line, user)| {
        let line = line.strip_prefix("hold ")?;
        let [quantity, expires_at, seq] = Line::new(line).numbers().ok()?;
        let state = match Line::new(line).parts().0 {
            "held" => HoldState::Held,
            "confirmed" => HoldState::Confirmed { seq },
            "cancelled" => HoldState::Cancelled,
            "expired" => HoldState::Expired,
            _ => return None,
        };
        let user = Name::new("user", user).ok()?;
        Some(HoldStatus { user, quantity, expires_at: Timestamp::from_micros(expires_at), state })
    });
    status.map(Some).ok_or_else(|| not_understood(&text))
}
