//! The deal operations, on Redis.

use super::RedisStore;
use super::batch::{Campaigns, Line, pack_passes, read_lines};
use super::script::Script;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{PassDenial, Purchase, PurchaseWish, Revoke, RevokeWish, Sending, check_batch};

pub(super) async fn deal_purchase(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[PurchaseWish],
) -> Result<Vec<Purchase>, StoreError> {
    check_batch(wishes)?;
    wishes.iter().try_for_each(PurchaseWish::check)?;
    let Some(first) = wishes.first() else { return Ok(Vec::new()) };
    let mut campaigns = Campaigns::with(store, &first.deal);
    let places =
        wishes.iter().map(|wish| campaigns.place_of(store, &wish.deal)).collect::<Result<Vec<_>, _>>()?;
    let passes = pack_passes(wishes.iter().map(|wish| (&wish.user, wish.pass.as_ref())));
    let mut call = store.batch_with_passes(Script::DealPurchase, sending, &passes, &campaigns, []);
    for (PurchaseWish { user, quantity, request, .. }, place) in wishes.iter().zip(places) {
        let request = request.as_ref().map_or("", Name::as_str);
        call = call.arg(place + 1).arg(user.as_str()).arg(quantity).arg(request);
    }
    read_lines(&store.send_batch(call, &campaigns).await?, wishes.len(), read_purchase)
}

fn read_purchase(line: &Line<'_>) -> Result<Purchase, StoreError> {
    Ok(match line.parts() {
        ("bought", _) => {
            let [seq, purchased, remaining] = line.numbers()?;
            Purchase::Bought { seq, purchased, remaining }
        }
        ("already", _) => {
            let [seq, purchased, remaining] = line.numbers()?;
            Purchase::AlreadyBought { seq, purchased, remaining }
        }
        ("reused", "") => Purchase::RequestReused,
        ("limit", _) => {
            line.numbers().map(|[taken, per_user]| Purchase::LimitExceeded { taken, per_user })?
        }
        ("sold-out", _) => line.numbers().map(|[remaining]| Purchase::SoldOut { remaining })?,
        ("not-open", _) => line
            .numbers()
            .map(|[opens_at]| Purchase::NotOpen { opens_at: Timestamp::from_micros(opens_at) })?,
        ("paused", "") => Purchase::Paused,
        ("closed", "") => Purchase::Closed,
        ("unknown", "") => Purchase::Unknown,
        ("recovering", "") => Purchase::Recovering,
        (word, "") => PassDenial::from_word(word).ok_or_else(|| line.not_understood())?.into(),
        _ => return Err(line.not_understood()),
    })
}

pub(super) async fn grant_revoke(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[RevokeWish],
) -> Result<Vec<Revoke>, StoreError> {
    check_batch(wishes)?;
    let Some(first) = wishes.first() else { return Ok(Vec::new()) };
    let mut campaigns = Campaigns::with(store, &first.campaign);
    let places =
        wishes.iter().map(|wish| campaigns.place_of(store, &wish.campaign)).collect::<Result<Vec<_>, _>>()?;
    let mut call = store.batch(Script::GrantRevoke, sending, &campaigns, []);
    for (RevokeWish { user, seq, .. }, place) in wishes.iter().zip(places) {
        call = call.arg(place + 1).arg(user.as_str()).arg(seq);
    }
    read_lines(&store.send_batch(call, &campaigns).await?, wishes.len(), |line| match line.parts() {
        ("revoked", _) => line.numbers().map(|[remaining]| Revoke::Revoked { remaining }),
        ("not-granted", "") => Ok(Revoke::NotGranted),
        ("unknown", "") => Ok(Revoke::Unknown),
        ("recovering", "") => Ok(Revoke::Recovering),
        _ => Err(line.not_understood()),
    })
}
