//! Orders: several articles, all or nothing.
//!
//! The id of an order says in which partition it was placed, by the name of an article's home: `shirts:` and 32 hexadecimal digits.
//! To whoever calls it is opaque.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::key::Name;
use lockgate::stock::{OrderPlace, Shortage};
use lockgate::store::{MAX_QUANTITY, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::campaigns::What;
use super::skus::sku;
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::AppState;
use crate::auth::App;
use crate::idempotency::IdempotencyKey;
use crate::input::{Json, Object, TextOf, check_id};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(post_order)).routes(routes!(get_order))
}

problems! {
    OrderDenied {
        403: "`not-open` (with `sku` and `opens_at`), `paused`, `closed` (with `sku`).",
        404: "`unknown-sku` (with `sku`).",
        409: "`insufficient-stock`, with `short`: of each article too few are left of, `sku`, `requested` and `available`.",
        422: "`idempotency-key-reused`: the key was used for another order.",
    }
    UnknownOrder { 404: "`unknown-order`: there is none of that id, or it was placed more than 24 h ago." }
}

/// Who wants what.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostOrder {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
    /// What is mentioned several times is added up.
    #[schema(value_type = Vec<ItemWish>, min_items = 1, max_items = 1000)]
    items: Vec<Object<ItemWish>>,
}

/// So many of one article.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemWish {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    sku: String,
    /// Of which group the article is, if it has one.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    group: Option<String>,
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    quantity: u64,
}

/// What was ordered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderBody {
    order: String,
    user: String,
    items: Vec<ItemBody>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// So many of one article.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemBody {
    sku: String,
    quantity: u64,
    /// The number of the grant, among those of the article.
    seq: u64,
}

impl ItemBody {
    fn new(sku: &Name, quantity: u64, seq: u64) -> Self {
        Self { sku: sku.to_string(), quantity, seq }
    }
}

/// Takes several articles for a user, or none.
#[utoipa::path(
    post, path = "/v1/orders", tag = "orders", security((), ("app" = [])),
    params(IdempotencyKey), request_body = PostOrder,
    responses(
        (status = 201, description = "Placed.", body = OrderBody),
        (status = 200, description = "This request has placed it before; `replayed`.", body = OrderBody),
        OrderDenied, WriteProblems,
    ),
)]
async fn post_order(
    _: App,
    State(state): State<AppState>,
    key: IdempotencyKey,
    Json(PostOrder { user, items }): Json<PostOrder>,
) -> Result<(StatusCode, JsonBody<OrderBody>), Problem> {
    check_id("user", &user)?;
    let id = key.token(&["order"]);
    let mut order = state.gate.order(&user)?.named(id.to_string())?;
    for (place, Object(ItemWish { sku: name, group, quantity })) in items.iter().enumerate() {
        check_id(&format!("items[{place}].sku"), name)?;
        if let Some(group) = group {
            check_id(&format!("items[{place}].group"), group)?;
        }
        if !(1..=MAX_QUANTITY).contains(quantity) {
            let field = format!("items[{place}].quantity");
            return Err(Problem::invalid(&field, format!("must be 1 to {MAX_QUANTITY}")));
        }
        order = order.item(&sku(&state.gate, name, group.as_deref())?, *quantity);
    }
    let sorted = order.sorted()?;
    // All of them live together, or the order is known to every partition; the sequence of mention must not matter.
    let homes = items.iter().map(|Object(item)| item.group.as_ref().unwrap_or(&item.sku));
    let home = homes.min().map_or("", String::as_str);
    let body = |seqs: Vec<u64>, replayed| {
        let each = sorted.iter().zip(seqs);
        let items = each.map(|((sku, quantity), seq)| ItemBody::new(sku, *quantity, seq)).collect();
        JsonBody(OrderBody { order: format!("{home}:{id}"), user: user.clone(), items, replayed })
    };
    match order.place().await? {
        OrderPlace::Placed { seqs } => Ok((StatusCode::CREATED, body(seqs, false))),
        OrderPlace::AlreadyPlaced { seqs } => Ok((StatusCode::OK, body(seqs, true))),
        denied => {
            let at_fault = at_fault(&denied);
            let problem = not_placed(denied, &sorted);
            for (sku, _) in at_fault.into_iter().filter_map(|item| sorted.get(item)) {
                state.note_refusal(What::Sku, sku.as_str(), &problem);
            }
            Err(problem)
        }
    }
}

/// The places of the articles for whose sake it was not placed.
fn at_fault(denied: &OrderPlace) -> Vec<usize> {
    match denied {
        OrderPlace::Short(short) => short.iter().map(|shortage| shortage.item).collect(),
        OrderPlace::NotOpen { item, .. }
        | OrderPlace::Paused { item }
        | OrderPlace::Closed { item }
        | OrderPlace::Unknown { item }
        | OrderPlace::Recovering { item } => vec![*item],
        _ => Vec::new(),
    }
}

fn not_placed(denied: OrderPlace, sorted: &[(Name, u64)]) -> Problem {
    let of = |problem: Problem, item: usize| problem.with("sku", named(sorted, item));
    let what = What::Sku;
    match denied {
        OrderPlace::RequestReused => IdempotencyKey::reused(),
        OrderPlace::Short(short) => insufficient(&short, sorted),
        OrderPlace::NotOpen { item, opens_at } => of(what.not_open(opens_at), item),
        OrderPlace::Paused { item } => of(what.paused(), item),
        OrderPlace::Closed { item } => of(what.closed(), item),
        OrderPlace::Unknown { item } => of(what.unknown(), item),
        OrderPlace::Recovering { item } => of(Problem::recovering(), item),
        _ => insufficient(&[], sorted),
    }
}

fn named(sorted: &[(Name, u64)], item: usize) -> Value {
    json!(sorted.get(item).map(|(sku, _)| sku.as_str()))
}

fn insufficient(short: &[Shortage], sorted: &[(Name, u64)]) -> Problem {
    let each = short.iter().map(|Shortage { item, requested, available }| {
        json!({ "sku": named(sorted, *item), "requested": requested, "available": available })
    });
    let detail = "Too few are left of the articles in `short`; nothing was taken.";
    Problem::new(StatusCode::CONFLICT, "insufficient-stock", "Too few are left", detail)
        .with("short", each.collect())
}

/// Tells what was ordered.
#[utoipa::path(
    get, path = "/v1/orders/{order}", tag = "orders", security((), ("app" = [])), params(("order" = String, Path)),
    responses((status = 200, description = "What was ordered.", body = OrderBody), UnknownOrder, ReadProblems),
)]
async fn get_order(
    _: App,
    State(state): State<AppState>,
    TextOf(order): TextOf,
) -> Result<JsonBody<OrderBody>, Problem> {
    let (home, id) = parse(&order).ok_or_else(unknown)?;
    let status = state.gate.sku(home)?.order_status(id.to_string()).await?.ok_or_else(unknown)?;
    let items = status.items.iter().map(|(item, seq)| ItemBody::new(&item.sku.name, item.quantity, *seq));
    let (user, items) = (status.user.to_string(), items.collect());
    Ok(JsonBody(OrderBody { order, user, items, replayed: false }))
}

fn parse(order: &str) -> Option<(&str, Token)> {
    let (home, id) = order.rsplit_once(':')?;
    check_id("order", home).ok()?;
    Some((home, (id.len() == 32).then(|| Token::parse(id))??))
}

fn unknown() -> Problem {
    let detail =
        "There is no order of that id; or it was placed more than 24 hours ago, and is forgotten here.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-order", "The order is unknown", detail)
}
