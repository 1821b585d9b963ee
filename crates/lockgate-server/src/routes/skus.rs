//! Articles, to be taken in orders.
//!
//! An article is its id and its group, if it has one: those of one group live together, so that on a cluster one order takes from all
//! of them in one step. Whoever asks for a grouped one says the group.

use axum::Json as JsonBody;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use lockgate::Gate;
use lockgate::stock::{CampaignStatus, Sku};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::campaigns::{BelowIssued, What, Window, opened, terms_of};
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::AppState;
use crate::auth::{Admin, App};
use crate::input::{Id, Json, Rfc3339, check_id};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(put_sku, get_sku))
}

problems! {
    UnknownSku { 404: "`unknown-sku`: an admin creates it with PUT." }
}

/// The terms of an article; what is left out is not limited.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutSku {
    /// How many in all; of 0 it is sold out from the beginning.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    stock: u64,
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    group: Option<String>,
    opens_at: Option<Rfc3339>,
    closes_at: Option<Rfc3339>,
}

/// Of which group it is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfGroup {
    #[param(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    group: Option<String>,
}

/// How an article stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkuBody {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    stock: u64,
    sold: u64,
    /// Put aside for orders over several partitions that are being placed.
    held: u64,
    remaining: u64,
    /// `scheduled`, `open`, `paused`, `sold-out`, `closed` or `recovering`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at: Option<Rfc3339>,
}

impl SkuBody {
    pub(crate) fn new(id: String, group: Option<String>, status: &CampaignStatus) -> Self {
        Self {
            id,
            group,
            stock: status.quantity,
            sold: status.granted,
            held: status.held,
            remaining: status.remaining(),
            state: status.state.as_str(),
            opens_at: status.opens_at.map(Rfc3339),
            closes_at: status.closes_at.map(Rfc3339),
        }
    }
}

/// The article of that id, and of that group if one is said.
pub(crate) fn sku(gate: &Gate, id: &str, group: Option<&str>) -> Result<Sku, Problem> {
    let Some(group) = group else { return Ok(gate.sku(id)?) };
    check_id("group", group)?;
    Ok(gate.sku_of(group, id)?)
}

/// Creates an article or replaces its terms.
#[utoipa::path(
    put, path = "/v1/skus/{id}", tag = "orders", security(("admin" = [])),
    params(Id), request_body = PutSku,
    responses(
        (status = 201, description = "Created.", body = SkuBody),
        (status = 200, description = "Replaced.", body = SkuBody),
        BelowIssued, WriteProblems,
    ),
)]
async fn put_sku(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    Json(PutSku { stock, group, opens_at, closes_at }): Json<PutSku>,
) -> Result<(StatusCode, JsonBody<SkuBody>), Problem> {
    let terms = Window { opens_at, closes_at, line: None }.limit(terms_of("stock", stock)?)?;
    let (answer, status) = opened(sku(&state.gate, &id, group.as_deref())?.open(&terms).await?)?;
    Ok((answer, JsonBody(SkuBody::new(id, group, &status))))
}

/// Tells how an article stands.
#[utoipa::path(
    get, path = "/v1/skus/{id}", tag = "orders", security((), ("app" = [])), params(Id, OfGroup),
    responses((status = 200, description = "How it stands.", body = SkuBody), UnknownSku, ReadProblems),
)]
async fn get_sku(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
    group: Result<Query<OfGroup>, axum::extract::rejection::QueryRejection>,
) -> Result<JsonBody<SkuBody>, Problem> {
    let Query(OfGroup { group }) =
        group.map_err(|_| Problem::invalid("group", "is the only parameter that can be asked with, once"))?;
    let status = sku(&state.gate, &id, group.as_deref())?.status().await?;
    let status = status.ok_or_else(|| What::Sku.unknown())?;
    Ok(JsonBody(SkuBody::new(id, group, &status)))
}
