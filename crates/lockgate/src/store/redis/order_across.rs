//! The operations on orders over several partitions, on Redis.

use std::time::Duration;

use redis::{Value, from_redis_value};

use super::RedisStore;
use super::batch::{Campaigns, Line, pack, unpack};
use super::order::{content, index, read_content, read_shortages};
use super::script::{Script, ScriptCall, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::{
    Campaign, CommittedOrder, HoldId, OrderDecision, OrderItem, OrderPart, OrderReserve, OrderSettle,
    OrderVerdict, PartItem, Sending, Settlement, Token,
};

pub(super) async fn order_reserve(
    store: &RedisStore,
    sending: &Sending,
    part: &OrderPart,
    doubt_after: Option<Duration>,
) -> Result<OrderReserve, StoreError> {
    let doubt_after_us = doubt_after.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    let campaigns = campaigns_of(store, part)?;
    let mut call = on_part(store, Script::OrderReserve, sending, part, &campaigns)
        .arg(part.user.as_str())
        .arg(doubt_after_us.map_or_else(String::new, |time| time.to_string()));
    for (article, PartItem { place, item, hold }) in (1_u64..).zip(part.items()) {
        call = call.arg(article).arg(item.quantity).arg(place).arg(hold.to_string());
    }
    let text = store.send_batch(call, &campaigns).await?;
    read_reserve(&Line::new(&text))
}

fn read_reserve(line: &Line<'_>) -> Result<OrderReserve, StoreError> {
    let one = || line.numbers().map(|[item]| index(item));
    Ok(match line.parts() {
        ("reserved", _) => {
            line.numbers().map(|[at]| OrderReserve::Reserved { at: Timestamp::from_micros(at) })?
        }
        ("available", "") => OrderReserve::Available,
        ("short", _) => OrderReserve::Short(read_shortages(line)?),
        ("not-open", _) => {
            let [item, opens_at] = line.numbers()?;
            OrderReserve::NotOpen { item: index(item), opens_at: Timestamp::from_micros(opens_at) }
        }
        ("paused", _) => OrderReserve::Paused { item: one()? },
        ("closed", _) => OrderReserve::Closed { item: one()? },
        ("unknown", _) => OrderReserve::Unknown { item: one()? },
        ("recovering", _) => OrderReserve::Recovering { item: one()? },
        _ => return Err(line.not_understood()),
    })
}

pub(super) async fn order_settle(
    store: &RedisStore,
    sending: &Sending,
    part: &OrderPart,
    settlement: Settlement,
) -> Result<OrderSettle, StoreError> {
    let wish = match settlement {
        Settlement::Confirm => "confirm",
        Settlement::Cancel => "cancel",
    };
    let campaigns = campaigns_of(store, part)?;
    let mut call = on_part(store, Script::OrderSettle, sending, part, &campaigns).arg(wish);
    for (article, PartItem { hold, .. }) in (1_u64..).zip(part.items()) {
        call = call.arg(article).arg(hold.to_string());
    }
    let text = store.send_batch(call, &campaigns).await?;
    let line = Line::new(&text);
    match line.parts() {
        ("confirmed", _) => Ok(OrderSettle::Confirmed { seqs: line.all_numbers()? }),
        ("cancelled", "") => Ok(OrderSettle::Cancelled),
        ("was-confirmed", "") => Ok(OrderSettle::AlreadyConfirmed),
        ("was-cancelled", "") => Ok(OrderSettle::AlreadyCancelled),
        ("unknown", "") => Ok(OrderSettle::Unknown),
        _ => Err(line.not_understood()),
    }
}

/// The articles of a part, in the order of its items.
fn campaigns_of<'a>(store: &RedisStore, part: &'a OrderPart) -> Result<Campaigns<'a>, StoreError> {
    let mut campaigns = Campaigns::with(store, &part.items()[0].item.sku);
    for PartItem { item, .. } in part.items() {
        campaigns.place_of(store, &item.sku)?;
    }
    Ok(campaigns)
}

/// A script on a part, with its articles and the part itself.
fn on_part<'a>(
    store: &'a RedisStore,
    script: Script,
    sending: &Sending,
    part: &OrderPart,
    campaigns: &Campaigns<'_>,
) -> ScriptCall<'a> {
    let doubts = store.keys.doubts(campaigns.partition());
    store.batch(script, sending, campaigns, [doubts]).arg(packed(part))
}

/// All that somebody needs who finds the part in doubt. Always the same for the same part, because that is how its doubt is
/// found again.
fn packed(part: &OrderPart) -> String {
    let mut packed = String::new();
    pack(&mut packed, part.order.as_str());
    pack(&mut packed, &part.attempt.to_string());
    pack(&mut packed, part.user.as_str());
    for PartItem { place, item, hold } in part.items() {
        pack(&mut packed, &place.to_string());
        pack(&mut packed, &item.sku.called());
        pack(&mut packed, &item.quantity.to_string());
        pack(&mut packed, &hold.to_string());
    }
    packed
}

/// Undoes [`packed`].
fn unpacked(part: &str) -> Option<OrderPart> {
    let texts = unpack(part)?;
    let (order, attempt, user) = (texts.first()?, texts.get(1)?, texts.get(2)?);
    let items = texts[3..].chunks(4).map(|item| {
        let [place, sku, quantity, hold] = item else { return None };
        let item = OrderItem { sku: Campaign::from_called(sku)?, quantity: quantity.parse().ok()? };
        Some(PartItem { place: place.parse().ok()?, item, hold: HoldId::parse(hold)? })
    });
    let (order, user) = (Name::new("order", order).ok()?, Name::new("user", user).ok()?);
    OrderPart::new(order, Token::parse(attempt)?, user, items.collect::<Option<_>>()?).ok()
}

pub(super) async fn order_decide(
    store: &RedisStore,
    sending: &Sending,
    id: &Name,
    attempt: Token,
    decision: &OrderDecision,
) -> Result<OrderVerdict, StoreError> {
    let mark = Name::new("attempt", attempt.to_string())?;
    let keys = [
        store.keys.key(Kind::OrderRecord, id),
        store.sending_key(store.keys.partition_of(id), sending),
        store.keys.key_beside(Kind::OrderAborted, id, &mark),
    ];
    let (word, numbers, content, reserved_at) = match decision {
        OrderDecision::Commit { user, items, reserved_at } => {
            let holds = spaced(items.iter().map(|(_, hold)| hold));
            ("commit", holds, content(user, items.iter().map(|(item, _)| item)), reserved_at.as_micros())
        }
        OrderDecision::Abort => ("abort", String::new(), String::new(), 0),
        OrderDecision::Settled { seqs } => ("settled", spaced(seqs), String::new(), 0),
    };
    let call = store.scripts.call(Script::OrderDecide, &keys).arg(sending.number).arg(word);
    let call = call.arg(attempt.to_string()).arg(numbers).arg(content).arg(reserved_at);
    let text = call.send_for_text(&store.link).await?;
    let (word, record) = text.split_once('\n').unwrap_or((&text, ""));
    Ok(match word {
        "committed" => OrderVerdict::Committed(read_record(record)?),
        "already" => OrderVerdict::AlreadyCommitted(read_record(record)?),
        "reused" => OrderVerdict::RequestReused,
        "aborted" => OrderVerdict::Aborted,
        "unknown" => OrderVerdict::Unknown,
        _ => return Err(Line::new(&text).not_understood()),
    })
}

fn spaced(items: impl IntoIterator<Item: ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

/// Reads what `order_decide.lua` writes: attempt and holds, seqs, content.
fn read_record(record: &str) -> Result<CommittedOrder, StoreError> {
    let read = || {
        let (holds, rest) = record.split_once('\n')?;
        let (seqs, content) = rest.split_once('\n')?;
        let (attempt, holds) = holds.split_once(' ')?;
        let (user, items) = read_content(content)?;
        let holds = holds.split(' ').map(HoldId::parse).collect::<Option<Vec<_>>>()?;
        let seqs = seqs.split(' ').filter(|_| !seqs.is_empty()).map(|seq| seq.parse().ok());
        let seqs = seqs.collect::<Option<Vec<_>>>()?;
        let (is_whole, is_settled) = (holds.len() == items.len(), seqs.len() == items.len());
        (is_whole && (is_settled || seqs.is_empty())).then_some(CommittedOrder {
            attempt: Token::parse(attempt)?,
            user,
            items: items.into_iter().zip(holds).collect(),
            seqs: is_settled.then_some(seqs),
        })
    };
    read().ok_or_else(|| not_understood(&record))
}

pub(super) async fn order_doubts(
    store: &RedisStore,
    partition: u16,
    limit: usize,
) -> Result<Vec<OrderPart>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let call = store.scripts.call(Script::OrderDoubts, &[store.keys.doubts(partition)]).arg(limit);
    let reply = call.send_for_value(&store.link).await?;
    let Value::Array(parts) = reply else { return Err(not_understood(&reply)) };
    let read = |part: Value| unpacked(&from_redis_value::<String>(part).ok()?);
    parts.into_iter().map(|part| read(part.clone()).ok_or_else(|| not_understood(&part))).collect()
}

pub(super) async fn order_find(store: &RedisStore, id: &Name) -> Result<Option<CommittedOrder>, StoreError> {
    let call = store.scripts.call(Script::OrderFind, &[store.keys.key(Kind::OrderRecord, id)]);
    let text = call.send_for_text(&store.link).await?;
    match text.split_once('\n') {
        Some(("committed", record)) => read_record(record).map(Some),
        None if text == "unknown" => Ok(None),
        _ => Err(not_understood(&text)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Campaign, CampaignKind};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_part_comes_out_of_its_doubt_as_it_went_in(order in ".+", user in ".+", sku in ".+", group in ".+") {
            let name = |text: &str| Name::new("name", text).unwrap();
            let sku = Campaign { group: Some(name(&group)), ..Campaign::new(CampaignKind::Sku, name(&sku)) };
            let alone = Campaign::new(CampaignKind::Sku, name(&group));
            let item = |place, sku| PartItem { place, item: OrderItem { sku, quantity: 7 }, hold: HoldId::random() };
            let items = vec![item(3, sku), item(900, alone)];
            let part = OrderPart::new(name(&order), Token::random(), name(&user), items).unwrap();
            prop_assert_eq!(unpacked(&packed(&part)), Some(part));
        }
    }

    #[test]
    fn a_record_that_is_not_whole_is_not_understood() {
        let (attempt, hold) = (Token::random(), HoldId::random());
        let record =
            |holds: &str, seqs: &str| read_record(&format!("{attempt} {holds}\n{seqs}\n1:u6:sku::a1:1"));
        let hold = hold.to_string();
        assert_eq!(record(&hold, "").unwrap().seqs, None);
        assert_eq!(record(&hold, "5").unwrap().seqs, Some(vec![5]));
        assert!(record(&hold, "5 6").is_err());
        assert!(record(&format!("{hold} {hold}"), "").is_err());
        assert!(record("x", "").is_err());
    }
}
