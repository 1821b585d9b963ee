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
        call =
            call.arg(order.id.as_str()).arg(order.user.as_str()).arg(content(order)).arg(order.items().len());
        for (item, place) in order.items().iter().zip(places.by_ref()) {
            call = call.arg(place + 1).arg(item.quantity);
        }
    }
    read_lines(&call.send_for_text(&store.link).await?, orders.len(), read_place)
}

/// What is compared when the same order comes again, and read when somebody asks for it.
fn content(order: &OrderWish) -> String {
    let mut content = String::new();
    pack(&mut content, order.user.as_str());
    for item in order.items() {
        pack(&mut content, &item.sku.called());
        pack(&mut content, &item.quantity.to_string());
    }
    content
}

fn read_place(line: &Line<'_>) -> Result<OrderPlace, StoreError> {
    let one = || line.numbers().map(|[item]| index(item));
    Ok(match line.parts() {
        ("placed", _) => OrderPlace::Placed { seqs: line.all_numbers()? },
        ("already", _) => OrderPlace::AlreadyPlaced { seqs: line.all_numbers()? },
        ("reused", "") => OrderPlace::RequestReused,
        ("short", _) => {
            let numbers = line.all_numbers()?;
            let shortages = numbers.as_chunks().0.iter().map(|[item, requested, available]| Shortage {
                item: index(*item),
                requested: *requested,
                available: *available,
            });
            OrderPlace::Short(shortages.collect())
        }
        ("not-open", _) => {
            let [item, opens_at] = line.numbers()?;
            OrderPlace::NotOpen { item: index(item), opens_at: Timestamp::from_micros(opens_at) }
        }
        ("paused", _) => OrderPlace::Paused { item: one()? },
        ("closed", _) => OrderPlace::Closed { item: one()? },
        ("unknown", _) => OrderPlace::Unknown { item: one()? },
        _ => return Err(line.not_understood()),
    })
}

fn index(item: u64) -> usize {
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
    let mut texts = unpack(content)?.into_iter();
    let user = Name::new("user", texts.next()?).ok()?;
    let mut items = Vec::new();
    for seq in seqs.split(' ') {
        let sku = Campaign::from_called(texts.next()?)?;
        items.push((OrderItem { sku, quantity: texts.next()?.parse().ok()? }, seq.parse().ok()?));
    }
    Some(OrderStatus { user, items })
}
