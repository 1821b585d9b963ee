//! Deals: so many, some per user.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::stock::{CampaignStatus, Purchase};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::campaigns::{
    BelowIssued, ClosedForGood, What, Window, not_bought, opened, switched, switches, terms_of,
};
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::AppState;
use crate::auth::{Admin, App};
use crate::idempotency::IdempotencyKey;
use crate::input::{Id, Json, Rfc3339, check_id};
use crate::pass::{PassHeader, ShownPass};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(put_deal, get_deal))
        .routes(routes!(pause_deal))
        .routes(routes!(resume_deal))
        .routes(routes!(close_deal))
        .routes(routes!(post_purchase))
}

problems! {
    UnknownDeal { 404: "`unknown-deal`: an admin creates it with PUT." }
    DealDenied {
        403: "`not-open` (with `opens_at`), `paused`, `closed`, `pass-required`, `pass-invalid`, `pass-expired`, `pass-used`.",
        409: "`limit-exceeded` (with `taken` and `per_user`), `sold-out` (with `remaining`).",
        422: "`idempotency-key-reused`: the key was used for another purchase.",
    }
}

/// The terms of a deal; what may be left out is not limited then.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutDeal {
    /// How many in all; of 0 it is sold out from the beginning.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    stock: u64,
    /// How many one user may have.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    per_user: u64,
    opens_at: Option<Rfc3339>,
    closes_at: Option<Rfc3339>,
    /// The line whose pass it demands.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    line: Option<String>,
}

/// How a deal stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DealBody {
    id: String,
    stock: u64,
    sold: u64,
    held: u64,
    remaining: u64,
    /// `scheduled`, `open`, `paused`, `sold-out`, `closed` or `recovering`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_user: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl DealBody {
    pub(crate) fn new(id: String, status: &CampaignStatus) -> Self {
        Self {
            id,
            stock: status.quantity,
            sold: status.granted,
            held: status.held,
            remaining: status.remaining(),
            state: status.state.as_str(),
            per_user: status.per_user,
            opens_at: status.opens_at.map(Rfc3339),
            closes_at: status.closes_at.map(Rfc3339),
            line: status.line.as_ref().map(ToString::to_string),
        }
    }
}

/// Creates a deal or replaces its terms.
#[utoipa::path(
    put, path = "/v1/deals/{id}", tag = "deals", security(("admin" = [])),
    params(Id), request_body = PutDeal,
    responses(
        (status = 201, description = "Created.", body = DealBody),
        (status = 200, description = "Replaced.", body = DealBody),
        BelowIssued, WriteProblems,
    ),
)]
async fn put_deal(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    Json(PutDeal { stock, per_user, opens_at, closes_at, line }): Json<PutDeal>,
) -> Result<(StatusCode, JsonBody<DealBody>), Problem> {
    let terms = terms_of("stock", stock)?.per_user(per_user)?;
    let terms = Window { opens_at, closes_at, line }.limit(terms)?;
    let (answer, status) = opened(state.gate.deal(&id)?.open(&terms).await?)?;
    Ok((answer, JsonBody(DealBody::new(id, &status))))
}

/// Tells how a deal stands.
#[utoipa::path(
    get, path = "/v1/deals/{id}", tag = "deals", security((), ("app" = [])), params(Id),
    responses((status = 200, description = "How it stands.", body = DealBody), UnknownDeal, ReadProblems),
)]
async fn get_deal(_: App, State(state): State<AppState>, Id(id): Id) -> Result<JsonBody<DealBody>, Problem> {
    let status = state.gate.deal(&id)?.status().await?.ok_or_else(|| What::Deal.unknown())?;
    Ok(JsonBody(DealBody::new(id, &status)))
}

switches! {
    What::Deal, "deals", deal, DealBody:
    pause_deal = pause "/v1/deals/{id}/pause" "Sells none until it is resumed.";
    resume_deal = resume "/v1/deals/{id}/resume" "Goes on after a pause.";
    close_deal = close "/v1/deals/{id}/close" "Sells none any more, for good.";
}

/// Who wants how many.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostPurchase {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    quantity: u64,
}

/// What was bought.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PurchaseBody {
    deal: String,
    user: String,
    quantity: u64,
    /// The number of this purchase: 1, 2, 3 …
    seq: u64,
    /// How many the user has bought in all.
    purchased: u64,
    /// How many were left after it.
    remaining: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Buys so many for a user, or none.
#[utoipa::path(
    post, path = "/v1/deals/{id}/purchases", tag = "deals", security((), ("app" = [])),
    params(Id, IdempotencyKey, PassHeader), request_body = PostPurchase,
    responses(
        (status = 201, description = "Bought.", body = PurchaseBody),
        (status = 200, description = "This request has bought before: the numbers of then, and `replayed`.", body = PurchaseBody),
        DealDenied, UnknownDeal, WriteProblems,
    ),
)]
async fn post_purchase(
    _: App,
    State(state): State<AppState>,
    Id(deal): Id,
    key: IdempotencyKey,
    pass: PassHeader,
    Json(PostPurchase { user, quantity }): Json<PostPurchase>,
) -> Result<(StatusCode, JsonBody<PurchaseBody>), Problem> {
    check_id("user", &user)?;
    let (mut handle, shown) = (state.gate.deal(&deal)?, pass.read(&state.passes));
    if let ShownPass::Signed(pass) = &shown {
        handle = handle.with_pass(pass);
    }
    let request = key.token(&["purchase", &deal]).to_string();
    let body = |seq, purchased, remaining, replayed| {
        JsonBody(PurchaseBody {
            deal: deal.clone(),
            user: user.clone(),
            quantity,
            seq,
            purchased,
            remaining,
            replayed,
        })
    };
    match handle.purchase_as(request, &user, quantity).await? {
        Purchase::Bought { seq, purchased, remaining } => {
            Ok((StatusCode::CREATED, body(seq, purchased, remaining, false)))
        }
        Purchase::AlreadyBought { seq, purchased, remaining } => {
            Ok((StatusCode::OK, body(seq, purchased, remaining, true)))
        }
        denied => Err(state.refuses(What::Deal, &deal, not_bought(denied, shown.is_forged()))),
    }
}
