//! What coupons, deals and articles have in common: windows, switches, and why somebody does not get one.

use axum::http::StatusCode;
use lockgate::clock::Timestamp;
use lockgate::error::InvalidInput;
use lockgate::key::Name;
use lockgate::stock::{CampaignChanged, CampaignOpen, CampaignStatus, HoldPlace, Issue, Purchase, Terms};
use serde_json::json;

use super::holds::HoldRef;
use crate::api::problems;
use crate::idempotency::IdempotencyKey;
use crate::input::{Rfc3339, check_id};
use crate::problem::Problem;

problems! {
    pub(crate) BelowIssued { 409: "`below-issued`: more are granted or held than that; nothing has changed." }
    pub(crate) ClosedForGood { 409: "`closed-for-good`: it was closed, and does not come back." }
}

/// What kind of thing a call is about, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Coupon,
    Deal,
    Sku,
}

impl What {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            What::Coupon => "coupon",
            What::Deal => "deal",
            What::Sku => "article",
        }
    }

    pub(crate) fn unknown(self) -> Problem {
        let code = match self {
            What::Coupon => "unknown-coupon",
            What::Deal => "unknown-deal",
            What::Sku => "unknown-sku",
        };
        let detail = format!("There is no {} of that id; an admin creates it with PUT.", self.word());
        Problem::new(StatusCode::NOT_FOUND, code, "It is unknown", detail)
    }

    pub(crate) fn not_open(self, opens_at: Timestamp) -> Problem {
        let opens_at = Rfc3339(opens_at).to_text();
        let detail = format!("The {} opens at {opens_at}; ask again then.", self.word());
        Problem::new(StatusCode::FORBIDDEN, "not-open", "It is not open yet", detail)
            .with("opens_at", json!(opens_at))
    }

    pub(crate) fn paused(self) -> Problem {
        let detail =
            format!("The {} is paused: nobody gets one until it is resumed; ask again later.", self.word());
        Problem::new(StatusCode::FORBIDDEN, "paused", "It is paused", detail)
    }

    pub(crate) fn closed(self) -> Problem {
        let detail = format!("The time of the {} is over; nobody gets one any more.", self.word());
        Problem::new(StatusCode::FORBIDDEN, "closed", "It is closed", detail)
    }

    fn sold_out(self, remaining: u64) -> Problem {
        let detail = match remaining {
            0 => "None is left.".to_owned(),
            left => format!("Only {left} are left, fewer than were asked for; nothing was taken."),
        };
        Problem::new(StatusCode::CONFLICT, "sold-out", "It is sold out", detail)
            .with("remaining", json!(remaining))
    }
}

fn limit_exceeded(taken: u64, per_user: u64) -> Problem {
    let detail =
        format!("One user may have {per_user}, and this one has or holds {taken}; nothing was taken.");
    Problem::new(StatusCode::CONFLICT, "limit-exceeded", "That is more than one user may have", detail)
        .with("taken", json!(taken))
        .with("per_user", json!(per_user))
}

/// Why a pass does not do.
#[derive(Clone, Copy, Debug)]
enum PassDenied {
    Required,
    Invalid,
    Expired,
    Used,
}

impl From<PassDenied> for Problem {
    fn from(denied: PassDenied) -> Self {
        let (code, title, detail) = match denied {
            PassDenied::Required => (
                "pass-required",
                "A pass is demanded",
                "Enter the line, and show the pass in the header Lockgate-Pass when it is your turn.",
            ),
            PassDenied::Invalid => (
                "pass-invalid",
                "The pass is not valid here",
                "It is of another line, another user's, or none of ours; show the one that this user was given by the line that is \
                 demanded.",
            ),
            PassDenied::Expired => (
                "pass-expired",
                "The pass is over",
                "Renew it while the turn lasts, or enter the line again.",
            ),
            PassDenied::Used => (
                "pass-used",
                "The pass was used before",
                "Each turn in the line is good for one; enter the line again.",
            ),
        };
        Problem::new(StatusCode::FORBIDDEN, code, title, detail)
    }
}

/// Why a coupon was not issued. `was_forged`: a pass was shown that nobody has signed, which is as good as none to the store.
pub(crate) fn not_issued(coupon: &str, denied: Issue, was_forged: bool) -> Problem {
    let what = What::Coupon;
    match denied {
        Issue::NotOpen { opens_at } => what.not_open(opens_at),
        Issue::Paused => what.paused(),
        Issue::Closed => what.closed(),
        Issue::Unknown => what.unknown(),
        Issue::Recovering => Problem::recovering(),
        Issue::Held { hold: id } => {
            let hold = HoldRef { what, of: coupon.to_owned(), id };
            let detail = "Confirm or cancel the hold.";
            Problem::new(StatusCode::CONFLICT, "held", "One is held for the user already", detail)
                .with("hold", json!(hold.to_string()))
        }
        Issue::PassRequired if was_forged => PassDenied::Invalid.into(),
        Issue::PassRequired => PassDenied::Required.into(),
        Issue::PassInvalid => PassDenied::Invalid.into(),
        Issue::PassExpired => PassDenied::Expired.into(),
        Issue::PassUsed => PassDenied::Used.into(),
        _ => what.sold_out(0),
    }
}

/// Why nothing was bought.
pub(crate) fn not_bought(denied: Purchase, was_forged: bool) -> Problem {
    let what = What::Deal;
    match denied {
        Purchase::RequestReused => IdempotencyKey::reused(),
        Purchase::NotOpen { opens_at } => what.not_open(opens_at),
        Purchase::Paused => what.paused(),
        Purchase::Closed => what.closed(),
        Purchase::Unknown => what.unknown(),
        Purchase::Recovering => Problem::recovering(),
        Purchase::PassRequired if was_forged => PassDenied::Invalid.into(),
        Purchase::PassRequired => PassDenied::Required.into(),
        Purchase::PassInvalid => PassDenied::Invalid.into(),
        Purchase::PassExpired => PassDenied::Expired.into(),
        Purchase::PassUsed => PassDenied::Used.into(),
        Purchase::LimitExceeded { taken, per_user } => limit_exceeded(taken, per_user),
        Purchase::SoldOut { remaining } => what.sold_out(remaining),
        _ => what.sold_out(0),
    }
}

/// Why nothing was put aside.
pub(crate) fn not_held(what: What, denied: HoldPlace, was_forged: bool) -> Problem {
    match denied {
        HoldPlace::RequestReused => IdempotencyKey::reused(),
        HoldPlace::AlreadyIssued { seq } => {
            let detail = "The user has one already, so none is put aside.";
            Problem::new(StatusCode::CONFLICT, "already-issued", "The user has one already", detail)
                .with("seq", json!(seq))
        }
        HoldPlace::NotOpen { opens_at } => what.not_open(opens_at),
        HoldPlace::Paused => what.paused(),
        HoldPlace::Closed => what.closed(),
        HoldPlace::Unknown => what.unknown(),
        HoldPlace::Recovering => Problem::recovering(),
        HoldPlace::PassRequired if was_forged => PassDenied::Invalid.into(),
        HoldPlace::PassRequired => PassDenied::Required.into(),
        HoldPlace::PassInvalid => PassDenied::Invalid.into(),
        HoldPlace::PassExpired => PassDenied::Expired.into(),
        HoldPlace::PassUsed => PassDenied::Used.into(),
        HoldPlace::LimitExceeded { taken, per_user } => limit_exceeded(taken, per_user),
        HoldPlace::SoldOut { remaining } => what.sold_out(remaining),
        _ => what.sold_out(0),
    }
}

/// When it can be had, and whose pass it demands.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) opens_at: Option<Rfc3339>,
    pub(crate) closes_at: Option<Rfc3339>,
    pub(crate) line: Option<String>,
}

impl Window {
    pub(crate) fn limit(self, terms: Terms) -> Result<Terms, Problem> {
        let time = |time: Option<Rfc3339>| time.map(|Rfc3339(time)| time);
        let terms = terms.between(time(self.opens_at), time(self.closes_at))?;
        let Some(line) = self.line else { return Ok(terms) };
        check_id("line", &line)?;
        Ok(terms.demanding_pass_of(Name::new("line", line)?))
    }
}

/// The terms of so many; `field` is what the caller calls it.
pub(crate) fn terms_of(field: &'static str, quantity: u64) -> Result<Terms, Problem> {
    Terms::new(quantity).map_err(|why| InvalidInput { field, ..why }.into())
}

/// What came of creating or replacing one: the status to answer with, and how it stands.
pub(crate) fn opened(answer: CampaignOpen) -> Result<(StatusCode, CampaignStatus), Problem> {
    match answer {
        CampaignOpen::Created(status) => Ok((StatusCode::CREATED, status)),
        CampaignOpen::Changed(status) => Ok((StatusCode::OK, status)),
        CampaignOpen::BelowIssued { issued } => Err(below_issued(issued)),
        CampaignOpen::Recovering => Err(Problem::recovering()),
    }
}

/// What came of pausing, resuming or closing one.
pub(crate) fn switched(what: What, answer: CampaignChanged) -> Result<CampaignStatus, Problem> {
    match answer {
        CampaignChanged::Now(status) => Ok(status),
        CampaignChanged::Unknown => Err(what.unknown()),
        CampaignChanged::Recovering => Err(Problem::recovering()),
        _ => {
            let detail = format!("The {} was closed for good; nothing has changed.", what.word());
            Err(Problem::new(StatusCode::CONFLICT, "closed-for-good", "It is closed for good", detail))
        }
    }
}

fn below_issued(issued: u64) -> Problem {
    let detail = format!(
        "{issued} are granted or held already, so the total must be at least that; nothing has changed."
    );
    Problem::new(StatusCode::CONFLICT, "below-issued", "The total is below what is granted", detail)
        .with("issued", json!(issued))
}

/// The calls that switch something on and off: `pause`, `resume` and `close`, which differ in a word only.
macro_rules! switches {
    ($what:expr, $tag:literal, $handle:ident, $body:ident: $($name:ident = $method:ident $path:literal $about:literal;)+) => {
        $(
            #[doc = $about]
            #[utoipa::path(
                post, path = $path, tag = $tag, security(("admin" = [])), params(Id),
                responses(
                    (status = 200, description = "How it stands now.", body = $body),
                    (status = 404, description = "It is unknown.", body = crate::api::ProblemBody,
                     content_type = "application/problem+json"),
                    ClosedForGood, ReadProblems,
                ),
            )]
            async fn $name(
                _: Admin,
                State(state): State<AppState>,
                Id(id): Id,
            ) -> Result<JsonBody<$body>, Problem> {
                let status = switched($what, state.gate.$handle(&id)?.$method().await?)?;
                Ok(JsonBody($body::new(id, &status)))
            }
        )+
    };
}
pub(crate) use switches;
