//! Holds: put aside for a while, then confirmed or given back.
//!
//! A hold lives with what it is of, so its id says what that is: `deal:headphones:` and 32 hexadecimal digits. To whoever calls it is
//! opaque.

use std::fmt;
use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::Gate;
use lockgate::stock::{Hold, HoldId, HoldSettle, HoldState, Reservation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::campaigns::{What, not_held};
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::{AppState, Reach};
use crate::auth::App;
use crate::idempotency::IdempotencyKey;
use crate::input::{Id, Json, Rfc3339, TextOf, check_id};
use crate::pass::{PassHeader, ShownPass};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(post_coupon_hold))
        .routes(routes!(post_deal_hold))
        .routes(routes!(get_hold))
        .routes(routes!(confirm_hold))
        .routes(routes!(cancel_hold))
}

problems! {
    HoldDenied {
        403: "`not-open` (with `opens_at`), `paused`, `closed`, `pass-required`, `pass-invalid`, `pass-expired`, `pass-used`.",
        404: "`unknown-coupon` or `unknown-deal`.",
        409: "`already-issued` (with `seq`), `limit-exceeded`, `sold-out`.",
        422: "`idempotency-key-reused`: the key was used for another hold.",
    }
    UnknownHold { 404: "`unknown-hold`: there is none of that id, not of that user, or it was settled more than 24 h ago." }
    NotConfirmed {
        409: "`hold-resolved`: it was cancelled before.",
        410: "`hold-expired`: its time was over; it is back on the shelf.",
    }
    NotCancelled { 409: "`hold-resolved`: it was confirmed before." }
}

/// Which hold, as callers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldRef {
    pub(crate) what: What,
    pub(crate) of: String,
    pub(crate) id: HoldId,
}

impl fmt::Display for HoldRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, of, id } = self;
        write!(f, "{}:{of}:{id}", what.word())
    }
}

impl HoldRef {
    fn parse(text: &str) -> Option<Self> {
        let (what, rest) = text.split_once(':')?;
        let what = [What::Coupon, What::Deal].into_iter().find(|kind| kind.word() == what)?;
        let (of, id) = rest.rsplit_once(':')?;
        check_id("hold", of).ok()?;
        Some(Self { what, of: of.to_owned(), id: HoldId::parse(id)? })
    }

    fn find(text: &str) -> Result<Self, Problem> {
        Self::parse(text).ok_or_else(unknown)
    }

    fn held_by(&self, gate: &Gate, user: &str) -> Result<Hold, Problem> {
        Ok(match self.what {
            What::Coupon => gate.coupon(&self.of)?.held(self.id, user)?,
            What::Deal | What::Sku => gate.deal(&self.of)?.held(self.id, user)?,
        })
    }
}

fn unknown() -> Problem {
    let detail = "There is no hold of that id for that user; or it was settled more than 24 hours ago, and is forgotten.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-hold", "The hold is unknown", detail)
}

/// For whom a coupon is to be put aside, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostCouponHold {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
    /// 1, if it is said at all: a coupon is one per user.
    #[schema(minimum = 1, maximum = 1)]
    quantity: Option<u64>,
    /// At most 24 hours.
    #[schema(minimum = 1, maximum = 86_400_000)]
    ttl_ms: u64,
}

/// For whom how many are to be put aside, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostDealHold {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
    /// 1 if it is left out.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    quantity: Option<u64>,
    /// At most 24 hours.
    #[schema(minimum = 1, maximum = 86_400_000)]
    ttl_ms: u64,
}

/// How a hold stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldBody {
    hold: String,
    user: String,
    quantity: u64,
    /// `held`, `confirmed`, `cancelled` or `expired`.
    state: &'static str,
    /// When it goes back on the shelf by itself, or would have.
    expires_at: Rfc3339,
    /// The number of the grant, when it is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// How many are left, when it is placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
}

/// What somebody wants to be put aside.
struct Wish {
    user: String,
    quantity: u64,
    ttl_ms: u64,
}

impl Wish {
    fn check(&self) -> Result<Duration, Problem> {
        check_id("user", &self.user)?;
        let ttl = Duration::from_millis(self.ttl_ms);
        if ttl.is_zero() || ttl > lockgate::store::MAX_HOLD {
            return Err(Problem::invalid("ttl_ms", "must be 1 to 86400000"));
        }
        Ok(ttl)
    }
}

/// Puts one aside for a user.
#[utoipa::path(
    post, path = "/v1/coupons/{id}/holds", tag = "holds", security((), ("app" = [])),
    params(Id, IdempotencyKey, PassHeader), request_body = PostCouponHold,
    responses((status = 201, description = "Put aside.", body = HoldBody), HoldDenied, WriteProblems),
)]
async fn post_coupon_hold(
    _: App,
    State(state): State<AppState>,
    Id(of): Id,
    key: IdempotencyKey,
    pass: PassHeader,
    Json(PostCouponHold { user, quantity, ttl_ms }): Json<PostCouponHold>,
) -> Result<(StatusCode, JsonBody<HoldBody>), Problem> {
    if quantity.is_some_and(|quantity| quantity != 1) {
        return Err(Problem::invalid("quantity", "must be 1: a coupon is one per user"));
    }
    let wish = Wish { user, quantity: 1, ttl_ms };
    let ttl = wish.check()?;
    let hold = hold_of(What::Coupon, of, &key);
    let (mut coupon, shown) = (state.gate.coupon(&hold.of)?, pass.read(&state.passes));
    if let ShownPass::Signed(pass) = &shown {
        coupon = coupon.with_pass(pass);
    }
    let answer = coupon.hold_as(hold.id, &wish.user, ttl).await?;
    placed(&state, &hold, wish, &shown, &answer)
}

/// Puts so many aside for a user, or none.
#[utoipa::path(
    post, path = "/v1/deals/{id}/holds", tag = "holds", security((), ("app" = [])),
    params(Id, IdempotencyKey, PassHeader), request_body = PostDealHold,
    responses((status = 201, description = "Put aside.", body = HoldBody), HoldDenied, WriteProblems),
)]
async fn post_deal_hold(
    _: App,
    State(state): State<AppState>,
    Id(of): Id,
    key: IdempotencyKey,
    pass: PassHeader,
    Json(PostDealHold { user, quantity, ttl_ms }): Json<PostDealHold>,
) -> Result<(StatusCode, JsonBody<HoldBody>), Problem> {
    let wish = Wish { user, quantity: quantity.unwrap_or(1), ttl_ms };
    let ttl = wish.check()?;
    let hold = hold_of(What::Deal, of, &key);
    let (mut deal, shown) = (state.gate.deal(&hold.of)?, pass.read(&state.passes));
    if let ShownPass::Signed(pass) = &shown {
        deal = deal.with_pass(pass);
    }
    let answer = deal.hold_as(hold.id, &wish.user, wish.quantity, ttl).await?;
    placed(&state, &hold, wish, &shown, &answer)
}

/// The same hold whenever the same is asked for under the same key.
fn hold_of(what: What, of: String, key: &IdempotencyKey) -> HoldRef {
    let id = HoldId::from_bits(key.token(&["hold", what.word(), &of]).bits());
    HoldRef { what, of, id }
}

fn placed(
    state: &Reach,
    hold: &HoldRef,
    Wish { user, quantity, .. }: Wish,
    shown: &ShownPass,
    answer: &Reservation,
) -> Result<(StatusCode, JsonBody<HoldBody>), Problem> {
    match *answer {
        Reservation::Held { expires_at, remaining, .. } => {
            let (hold, expires_at) = (hold.to_string(), Rfc3339(expires_at));
            let remaining = Some(remaining);
            let body = HoldBody { hold, user, quantity, state: "held", expires_at, seq: None, remaining };
            Ok((StatusCode::CREATED, JsonBody(body)))
        }
        Reservation::Denied(denied) => {
            Err(state.refuses(hold.what, &hold.of, not_held(hold.what, denied, shown.is_forged())))
        }
    }
}

/// Tells how a hold stands.
#[utoipa::path(
    get, path = "/v1/holds/{hold}", tag = "holds", security((), ("app" = [])), params(("hold" = String, Path)),
    responses((status = 200, description = "How it stands.", body = HoldBody), UnknownHold, ReadProblems),
)]
async fn get_hold(
    _: App,
    State(state): State<AppState>,
    TextOf(hold): TextOf,
) -> Result<JsonBody<HoldBody>, Problem> {
    let hold = HoldRef::find(&hold)?;
    // How it stands does not depend on who asks.
    let status = hold.held_by(&state.gate, "anybody")?.status().await?.ok_or_else(unknown)?;
    let (state, seq) = match status.state {
        HoldState::Held => ("held", None),
        HoldState::Confirmed { seq } => ("confirmed", Some(seq)),
        HoldState::Cancelled => ("cancelled", None),
        HoldState::Expired => ("expired", None),
    };
    Ok(JsonBody(HoldBody {
        hold: hold.to_string(),
        user: status.user.to_string(),
        quantity: status.quantity,
        state,
        expires_at: Rfc3339(status.expires_at),
        seq,
        remaining: None,
    }))
}

/// Whose hold it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holder {
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    user: String,
}

/// What became of a hold.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettledBody {
    hold: String,
    /// `confirmed`, `cancelled` or `expired`.
    state: &'static str,
    /// The number of the grant, when it is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// Makes a hold a grant.
#[utoipa::path(
    post, path = "/v1/holds/{hold}/confirm", tag = "holds", security((), ("app" = [])),
    params(("hold" = String, Path)), request_body = Holder,
    responses(
        (status = 200, description = "It is the user's now, or was before.", body = SettledBody),
        UnknownHold, NotConfirmed, WriteProblems,
    ),
)]
async fn confirm_hold(
    _: App,
    State(state): State<AppState>,
    TextOf(hold): TextOf,
    Json(Holder { user }): Json<Holder>,
) -> Result<JsonBody<SettledBody>, Problem> {
    check_id("user", &user)?;
    let hold = HoldRef::find(&hold)?;
    match hold.held_by(&state.gate, &user)?.confirm().await? {
        HoldSettle::Confirmed { seq } => Ok(settled(&hold, "confirmed", Some(seq))),
        HoldSettle::Expired => {
            let detail = "Its time was over, so it is back on the shelf; place another hold, or buy.";
            Err(Problem::new(StatusCode::GONE, "hold-expired", "The hold is over", detail))
        }
        denied => Err(unsettled(denied)),
    }
}

/// Puts what was held back on the shelf.
#[utoipa::path(
    post, path = "/v1/holds/{hold}/cancel", tag = "holds", security((), ("app" = [])),
    params(("hold" = String, Path)), request_body = Holder,
    responses(
        (status = 200, description = "It is back on the shelf, or was before.", body = SettledBody),
        UnknownHold, NotCancelled, WriteProblems,
    ),
)]
async fn cancel_hold(
    _: App,
    State(state): State<AppState>,
    TextOf(hold): TextOf,
    Json(Holder { user }): Json<Holder>,
) -> Result<JsonBody<SettledBody>, Problem> {
    check_id("user", &user)?;
    let hold = HoldRef::find(&hold)?;
    match hold.held_by(&state.gate, &user)?.cancel().await? {
        HoldSettle::Cancelled => Ok(settled(&hold, "cancelled", None)),
        HoldSettle::Expired => Ok(settled(&hold, "expired", None)),
        denied => Err(unsettled(denied)),
    }
}

fn settled(hold: &HoldRef, state: &'static str, seq: Option<u64>) -> JsonBody<SettledBody> {
    JsonBody(SettledBody { hold: hold.to_string(), state, seq })
}

fn unsettled(denied: HoldSettle) -> Problem {
    let resolved = |detail: &'static str| {
        Problem::new(StatusCode::CONFLICT, "hold-resolved", "The hold was settled otherwise", detail)
    };
    match denied {
        HoldSettle::AlreadyConfirmed { seq } => {
            resolved("It was confirmed before, so it cannot be cancelled.").with("seq", json!(seq))
        }
        HoldSettle::AlreadyCancelled => resolved("It was cancelled before, so it cannot be confirmed."),
        HoldSettle::Recovering => Problem::recovering(),
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_called_what_it_reads_as() {
        for of in ["a", "tour:2026", "x:", "a:b:c", "."] {
            let hold = HoldRef { what: What::Deal, of: of.to_owned(), id: HoldId::random() };
            assert_eq!(HoldRef::parse(&hold.to_string()), Some(hold));
        }
        let id = HoldId::random();
        for wrong in [
            "",
            "deal",
            "deal:",
            "deal:a",
            "deal:a:",
            &format!("deal::{id}"),
            &format!("line:a:{id}"),
            &format!("deal:a b:{id}"),
            &format!("deal:a:{id}0"),
        ] {
            assert_eq!(HoldRef::parse(wrong), None, "{wrong}");
        }
    }
}
