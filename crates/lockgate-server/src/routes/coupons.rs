//! Coupons: so many, one per user.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::stock::{CampaignStatus, Issue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::campaigns::{
    BelowIssued, ClosedForGood, What, Window, not_issued, opened, switched, switches, terms_of,
};
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::AppState;
use crate::auth::{Admin, App};
use crate::input::{Id, IdOf, Json, Rfc3339, check_id};
use crate::pass::{PassHeader, ShownPass};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(put_coupon, get_coupon))
        .routes(routes!(pause_coupon))
        .routes(routes!(resume_coupon))
        .routes(routes!(close_coupon))
        .routes(routes!(post_issue))
        .routes(routes!(get_issue))
}

problems! {
    UnknownCoupon { 404: "`unknown-coupon`: an admin creates it with PUT." }
    UnknownIssue { 404: "`unknown-coupon`, or `not-issued`: the user has none." }
    CouponDenied {
        403: "`not-open` (with `opens_at`), `paused`, `closed`, `pass-required`, `pass-invalid`, `pass-expired`, `pass-used`.",
        409: "`sold-out`; `held` (with `hold`): one is put aside for the user.",
    }
}

/// The terms of a coupon; what is left out is not limited.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutCoupon {
    /// How many in all; of 0 it is sold out from the beginning.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    quantity: u64,
    opens_at: Option<Rfc3339>,
    closes_at: Option<Rfc3339>,
    /// The line whose pass it demands.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    line: Option<String>,
}

/// How a coupon stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CouponBody {
    id: String,
    quantity: u64,
    issued: u64,
    held: u64,
    remaining: u64,
    /// `scheduled`, `open`, `paused`, `sold-out`, `closed` or `recovering`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl CouponBody {
    pub(crate) fn new(id: String, status: &CampaignStatus) -> Self {
        Self {
            id,
            quantity: status.quantity,
            issued: status.granted,
            held: status.held,
            remaining: status.remaining(),
            state: status.state.as_str(),
            opens_at: status.opens_at.map(Rfc3339),
            closes_at: status.closes_at.map(Rfc3339),
            line: status.line.as_ref().map(ToString::to_string),
        }
    }
}

/// Creates a coupon or replaces its terms.
#[utoipa::path(
    put, path = "/v1/coupons/{id}", tag = "coupons", security(("admin" = [])),
    params(Id), request_body = PutCoupon,
    responses(
        (status = 201, description = "Created.", body = CouponBody),
        (status = 200, description = "Replaced.", body = CouponBody),
        BelowIssued, WriteProblems,
    ),
)]
async fn put_coupon(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    Json(PutCoupon { quantity, opens_at, closes_at, line }): Json<PutCoupon>,
) -> Result<(StatusCode, JsonBody<CouponBody>), Problem> {
    let terms = Window { opens_at, closes_at, line }.limit(terms_of("quantity", quantity)?)?;
    let (answer, status) = opened(state.gate.coupon(&id)?.open(&terms).await?)?;
    Ok((answer, JsonBody(CouponBody::new(id, &status))))
}

/// Tells how a coupon stands.
#[utoipa::path(
    get, path = "/v1/coupons/{id}", tag = "coupons", security((), ("app" = [])), params(Id),
    responses(
        (status = 200, description = "How it stands.", body = CouponBody),
        UnknownCoupon, ReadProblems,
    ),
)]
async fn get_coupon(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<CouponBody>, Problem> {
    let status = state.gate.coupon(&id)?.status().await?.ok_or_else(|| What::Coupon.unknown())?;
    Ok(JsonBody(CouponBody::new(id, &status)))
}

switches! {
    What::Coupon, "coupons", coupon, CouponBody:
    pause_coupon = pause "/v1/coupons/{id}/pause" "Issues none until it is resumed.";
    resume_coupon = resume "/v1/coupons/{id}/resume" "Goes on after a pause.";
    close_coupon = close "/v1/coupons/{id}/close" "Issues none any more, for good.";
}

/// Who wants one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostIssue {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
}

/// Who has one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssueBody {
    coupon: String,
    user: String,
    /// The number of this one: 1, 2, 3 …
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Issues a coupon to a user, once.
#[utoipa::path(
    post, path = "/v1/coupons/{id}/issues", tag = "coupons", security((), ("app" = [])),
    params(Id, PassHeader), request_body = PostIssue,
    responses(
        (status = 201, description = "Issued.", body = IssueBody),
        (status = 200, description = "The user has one already: the same `seq`, and `replayed`.", body = IssueBody),
        CouponDenied, UnknownCoupon, WriteProblems,
    ),
)]
async fn post_issue(
    _: App,
    State(state): State<AppState>,
    Id(coupon): Id,
    pass: PassHeader,
    Json(PostIssue { user }): Json<PostIssue>,
) -> Result<(StatusCode, JsonBody<IssueBody>), Problem> {
    check_id("user", &user)?;
    let (handle, shown) = (state.gate.coupon(&coupon)?, pass.read(&state.passes));
    let issued = match &shown {
        ShownPass::Signed(pass) => handle.issue_with_pass(&user, pass).await?,
        ShownPass::None | ShownPass::Forged => handle.issue(&user).await?,
    };
    let (status, seq, remaining) = match issued {
        Issue::Issued { seq, remaining } => (StatusCode::CREATED, seq, Some(remaining)),
        Issue::AlreadyIssued { seq } => (StatusCode::OK, seq, None),
        denied => {
            return Err(state.refuses(What::Coupon, &coupon, not_issued(&coupon, denied, shown.is_forged())));
        }
    };
    let replayed = status == StatusCode::OK;
    Ok((status, JsonBody(IssueBody { coupon, user, seq, remaining, replayed })))
}

/// Tells whether a user has one.
#[utoipa::path(
    get, path = "/v1/coupons/{id}/issues/{user}", tag = "coupons", security((), ("app" = [])),
    params(Id, ("user" = String, Path, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")),
    responses(
        (status = 200, description = "The user has this one.", body = IssueBody),
        UnknownIssue, ReadProblems,
    ),
)]
async fn get_issue(
    _: App,
    State(state): State<AppState>,
    IdOf { id: coupon, of: user }: IdOf,
) -> Result<JsonBody<IssueBody>, Problem> {
    let share = state.gate.coupon(&coupon)?.share_of(&user).await?.ok_or_else(|| What::Coupon.unknown())?;
    let Some(seq) = share.seq else {
        let detail = "The user has none of this coupon.";
        return Err(Problem::new(StatusCode::NOT_FOUND, "not-issued", "The user has none", detail)
            .with("held", json!(share.held)));
    };
    Ok(JsonBody(IssueBody { coupon, user, seq, remaining: None, replayed: false }))
}
