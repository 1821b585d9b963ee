//! Coupons: so many, one per user.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::clock::Timestamp;
use lockgate::key::Name;
use lockgate::stock::{CampaignOpen, CampaignStatus, Issue, Terms};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::AppState;
use crate::auth::{Admin, App};
use crate::input::{Id, Json, Rfc3339, check_id};
use crate::problem::Problem;

/// The terms of a coupon; what is left out is not limited.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutCoupon {
    quantity: u64,
    opens_at: Option<Rfc3339>,
    closes_at: Option<Rfc3339>,
    /// The line whose pass it demands.
    line: Option<String>,
}

/// How a coupon stands.
#[derive(Debug, Serialize)]
pub(crate) struct CouponBody {
    id: String,
    quantity: u64,
    issued: u64,
    held: u64,
    remaining: u64,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl CouponBody {
    fn new(id: String, status: &CampaignStatus) -> Self {
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
pub(crate) async fn put_coupon(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    Json(body): Json<PutCoupon>,
) -> Result<(StatusCode, JsonBody<CouponBody>), Problem> {
    let time = |time: Option<Rfc3339>| time.map(|Rfc3339(time)| time);
    let mut terms = Terms::new(body.quantity)?.between(time(body.opens_at), time(body.closes_at))?;
    if let Some(line) = body.line {
        check_id("line", &line)?;
        terms = terms.demanding_pass_of(Name::new("line", line)?);
    }
    match state.gate.coupon(&id)?.open(&terms).await? {
        CampaignOpen::Created(status) => Ok((StatusCode::CREATED, JsonBody(CouponBody::new(id, &status)))),
        CampaignOpen::Changed(status) => Ok((StatusCode::OK, JsonBody(CouponBody::new(id, &status)))),
        CampaignOpen::BelowIssued { issued } => Err(below_issued(issued)),
        CampaignOpen::Recovering => Err(Problem::recovering()),
    }
}

/// Tells how a coupon stands.
pub(crate) async fn get_coupon(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<CouponBody>, Problem> {
    let status = state.gate.coupon(&id)?.status().await?.ok_or_else(unknown_coupon)?;
    Ok(JsonBody(CouponBody::new(id, &status)))
}

/// Who wants one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostIssue {
    user: String,
}

/// Who has one.
#[derive(Debug, Serialize)]
pub(crate) struct IssueBody {
    coupon: String,
    user: String,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Issues a coupon to a user, once.
pub(crate) async fn post_issue(
    _: App,
    State(state): State<AppState>,
    Id(coupon): Id,
    Json(PostIssue { user }): Json<PostIssue>,
) -> Result<(StatusCode, JsonBody<IssueBody>), Problem> {
    check_id("user", &user)?;
    let (status, seq, remaining) = match state.gate.coupon(&coupon)?.issue(&user).await? {
        Issue::Issued { seq, remaining } => (StatusCode::CREATED, seq, Some(remaining)),
        Issue::AlreadyIssued { seq } => (StatusCode::OK, seq, None),
        denied => return Err(denial(denied)),
    };
    let replayed = status == StatusCode::OK;
    Ok((status, JsonBody(IssueBody { coupon, user, seq, remaining, replayed })))
}

fn denial(denied: Issue) -> Problem {
    match denied {
        Issue::NotOpen { opens_at } => not_open(opens_at),
        Issue::Closed => Problem::new(
            StatusCode::FORBIDDEN,
            "closed",
            "The coupon is closed",
            "Its time is over; nobody gets one any more.",
        ),
        Issue::Unknown => unknown_coupon(),
        Issue::Recovering => Problem::recovering(),
        Issue::Paused => Problem::new(
            StatusCode::FORBIDDEN,
            "paused",
            "The coupon is paused",
            "Nobody gets one until it is resumed; ask again later.",
        ),
        Issue::Held { hold } => Problem::new(
            StatusCode::CONFLICT,
            "held",
            "One is held for the user already",
            "Confirm or cancel the hold.",
        )
        .with("hold", json!(hold.to_string())),
        Issue::PassRequired | Issue::PassInvalid | Issue::PassExpired | Issue::PassUsed => {
            pass_denied(denied)
        }
        _ => Problem::new(StatusCode::CONFLICT, "sold-out", "The coupon is sold out", "None is left."),
    }
}

/// Why the pass does not do; without one of these words, none was shown.
fn pass_denied(denied: Issue) -> Problem {
    let (code, title, detail) = match denied {
        Issue::PassInvalid => (
            "pass-invalid",
            "The pass is not valid here",
            "It is of another line, or another user's; show the one that this user was given by the coupon's line.",
        ),
        Issue::PassExpired => {
            ("pass-expired", "The pass is over", "Renew it while the turn lasts, or enter the line again.")
        }
        Issue::PassUsed => (
            "pass-used",
            "The pass was used before",
            "Each turn in the line is good for one; enter the line again.",
        ),
        _ => (
            "pass-required",
            "The coupon demands a pass",
            "Enter its line, and show the pass in the header Lockgate-Pass when it is your turn.",
        ),
    };
    Problem::new(StatusCode::FORBIDDEN, code, title, detail)
}

fn not_open(opens_at: Timestamp) -> Problem {
    let opens_at = Rfc3339(opens_at).to_text();
    let detail = format!("It opens at {opens_at}; ask again then.");
    Problem::new(StatusCode::FORBIDDEN, "not-open", "The coupon is not open yet", detail)
        .with("opens_at", json!(opens_at))
}

fn unknown_coupon() -> Problem {
    let detail = "There is no coupon of that id; an admin creates it with PUT.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-coupon", "The coupon is unknown", detail)
}

fn below_issued(issued: u64) -> Problem {
    let detail =
        format!("{issued} are issued already, so the quantity must be at least that; nothing has changed.");
    Problem::new(StatusCode::CONFLICT, "below-issued", "The quantity is below what is issued", detail)
        .with("issued", json!(issued))
}
