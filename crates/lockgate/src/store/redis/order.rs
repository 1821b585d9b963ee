//! The order operations, on Redis.

use super::RedisStore;
use super::batch::{Campaigns, Line, pack, read_lines, unpack};
use super::script::{Script, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::{
    Campaign, OrderItem, OrderPlace, OrderStatus, OrderWish, Sending, Shortage, check_orders,
};

pub(super) async fn order_place(
    store: &RedisStore,
    sending: &Sending,
    orders: &[OrderWish],
) -> Result<Vec<OrderPlace>, StoreError> {
    check_orders(orders)?;
    let Some(first) = orders.first().and_then(|order| order.items().first()) else { return Ok(Vec::new()) };
    let mut campaigns = Campaigns::with(store, &first.sku);
    let mut places = Vec::new();
    for item in orders.iter().flat_map(OrderWish::items) {
        places.push(campaigns.place_of(store, &item.sku)?);
    }
    let records = orders.iter().map(|order| store.keys.key_beside(Kind::Order, first.sku.home(), &order.id));
    let mut call = store.batch(Script::OrderPlace, sending, &campaigns, records);
    let mut places = places.into_iter();
    for order in orders {
        call = call
            .arg(order.id.as_str())
            .arg(order.user.as_str())
            .arg(content(&order.user, order.items()))
            .arg(order.items().len());
        for (item, place) in order.items().iter().zip(places.by_ref()) {
            call = call.arg(place + 1).arg(item.quantity);
        }
    }
    read_lines(&store.send_batch(call, &campaigns).await?, orders.len(), read_place)
}

/// What is compared when the same order comes again, and read when somebody asks for it.
pub(super) fn content<'a>(user: &Name, items: impl IntoIterator<Item = &'a OrderItem>) -> String {
    let mut content = String::new();
    pack(&mut content, user.as_str());
    for item in items {
        pack(&mut content, &item.sku.called());
        pack(&mut content, &item.quantity.to_string());
    }
    content
}

/// Undoes [`content`].
pub(super) fn read_content(content: &str) -> Option<(Name, Vec<OrderItem>)> {
    let texts = unpack(content)?;
    let (user, items) = texts.split_first()?;
    let items = items.chunks(2).map(|item| {
        let [sku, quantity] = item else { return None };
        Some(OrderItem { sku: Campaign::from_called(sku)?, quantity: quantity.parse().ok()? })
    });
    Some((Name::new("user", user).ok()?, items.collect::<Option<_>>()?))
}

fn read_place(line: &Line<'_>) -> Result<OrderPlace, StoreError> {
    let one = || line.numbers().map(|[item]| index(item));
    Ok(match line.parts() {
        ("placed", _) => OrderPlace::Placed { seqs: line.all_numbers()? },
        ("already", _) => OrderPlace::AlreadyPlaced { seqs: line.all_numbers()? },
        ("reused", "") => OrderPlace::RequestReused,
        ("short", _) => OrderPlace::Short(read_shortages(line)?),
        ("not-open", _) => {
            let [item, opens_at] = line.numbers()?;
            OrderPlace::NotOpen { item: index(item), opens_at: Timestamp::from_micros(opens_at) }
        }
        ("paused", _) => OrderPlace::Paused { item: one()? },
        ("closed", _) => OrderPlace::Closed { item: one()? },
        ("unknown", _) => OrderPlace::Unknown { item: one()? },
        ("recovering", _) => OrderPlace::Recovering { item: one()? },
        _ => return Err(line.not_understood()),
    })
}

/// For each item that is short: its place, how many were asked for, how many are left.
pub(super) fn read_shortages(line: &Line<'_>) -> Result<Vec<Shortage>, StoreError> {
    let numbers = line.all_numbers()?;
    let shortages = numbers.as_chunks().0.iter().map(|[item, requested, available]| Shortage {
        item: index(*item),
        requested: *requested,
        available: *available,
    });
    Ok(shortages.collect())
}

pub(super) fn index(item: u64) -> usize {
    usize::try_from(item).unwrap_or(usize::MAX)
}

pub(super) async fn order_read(
    store: &RedisStore,
    home: &Name,
    id: &Name,
) -> Result<Option<OrderStatus>, StoreError> {
    let call = store.scripts.call(Script::OrderRead, &[store.keys.key_beside(Kind::Order, home, id)]);
    let text = call.send_for_text(&store.link).await?;
    if text == "unknown" {
        return Ok(None);
    }
    read_status(&text).map(Some).ok_or_else(|| not_understood(&text))
}

fn read_status(text: &str) -> Option<OrderStatus> {
    let (seqs, content) = text.strip_prefix("order\n")?.split_once('\n')?;
    let (user, items) = read_content(content)?;
    let seqs = seqs.split(' ').map(|seq| seq.parse().ok()).collect::<Option<Vec<_>>>()?;
    (seqs.len() == items.len()).then(|| OrderStatus { user, items: items.into_iter().zip(seqs).collect() })
}
