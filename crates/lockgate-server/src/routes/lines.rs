//! Lines: so many every so often, in the order in which they came.
//!
//! What an operator does with a line; what the people in it do is in [`tickets`](super::tickets).

mod standing;
mod terms;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::clock::Timestamp;
use lockgate::line::draw::Hash256;
use lockgate::line::{Audit, Line, LineAdmit, LineOpen, LineState};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::standing::{LineBody, millis};

use self::terms::PutLine;
use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::AppState;
use crate::auth::{Admin, App};
use crate::idempotency::IdempotencyKey;
use crate::input::{Id, Json, Rfc3339};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(put_line, get_line, delete_line))
        .routes(routes!(pause_line))
        .routes(routes!(resume_line))
        .routes(routes!(close_line))
        .routes(routes!(admit_people))
        .routes(routes!(get_line_audit))
}

problems! {
    UnknownLine { 404: "`unknown-line`: an admin creates it with PUT." }
    TooLate {
        409: "`too-late`: it is open already, so that its opening cannot be moved, or somebody is early already, so that the \
              pre-queue cannot be taken away or added; nothing has changed.",
    }
    NotClosed { 409: "`not-closed`: only a closed line can be forgotten." }
    NotDrawn { 409: "`not-drawn`: there is nothing to verify, yet or any more." }
    AdmitDenied {
        403: "`not-open` (with `opens_at`), `closed`.",
        422: "`idempotency-key-reused`: this key came with another count before.",
    }
}

async fn body_of(id: String, line: &Line) -> Result<JsonBody<LineBody>, Problem> {
    let status = line.status().await?.ok_or_else(unknown_line)?;
    Ok(JsonBody(LineBody::new(id, line.name(), status)))
}

/// Creates a line or replaces its terms; a new rate holds from the next batch on.
#[utoipa::path(
    put, path = "/v1/lines/{id}", tag = "lines", security(("admin" = [])),
    params(Id), request_body = PutLine,
    responses(
        (status = 201, description = "Created.", body = LineBody),
        (status = 200, description = "Replaced. Whether it is paused or closed stays.", body = LineBody),
        TooLate, WriteProblems,
    ),
)]
pub(crate) async fn put_line(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    Json(body): Json<PutLine>,
) -> Result<(StatusCode, JsonBody<LineBody>), Problem> {
    let (terms, line) = (body.terms()?, state.gate.line(&id)?);
    let status = match line.open(&terms).await? {
        LineOpen::Created => StatusCode::CREATED,
        LineOpen::TooLate => return Err(too_late()),
        _ => StatusCode::OK,
    };
    Ok((status, body_of(id, &line).await?))
}

/// Tells how a line stands.
#[utoipa::path(
    get, path = "/v1/lines/{id}", tag = "lines", security((), ("app" = [])),
    params(Id),
    responses((status = 200, description = "How it stands.", body = LineBody), UnknownLine, ReadProblems),
)]
pub(crate) async fn get_line(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<LineBody>, Problem> {
    let line = state.gate.line(&id)?;
    body_of(id, &line).await
}

/// Forgets a closed line, with everybody in it. Asking again is harmless.
#[utoipa::path(
    delete, path = "/v1/lines/{id}", tag = "lines", security(("admin" = [])),
    params(Id),
    responses((status = 204, description = "There is no such line any more."), NotClosed, ReadProblems),
)]
pub(crate) async fn delete_line(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    match state.gate.line(&id)?.forget().await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_closed()),
    }
}

/// Admits nobody until the line is resumed. People may enter.
#[utoipa::path(
    post, path = "/v1/lines/{id}/pause", tag = "lines", security(("admin" = [])),
    params(Id),
    responses(
        (status = 200, description = "How it stands now; a closed line stays closed.", body = LineBody),
        UnknownLine, ReadProblems,
    ),
)]
pub(crate) async fn pause_line(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<LineBody>, Problem> {
    let line = state.gate.line(&id)?;
    line.pause().await?.ok_or_else(unknown_line)?;
    body_of(id, &line).await
}

/// Goes on after a pause.
#[utoipa::path(
    post, path = "/v1/lines/{id}/resume", tag = "lines", security(("admin" = [])),
    params(Id),
    responses(
        (status = 200, description = "How it stands now; a closed line stays closed.", body = LineBody),
        UnknownLine, ReadProblems,
    ),
)]
pub(crate) async fn resume_line(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<LineBody>, Problem> {
    let line = state.gate.line(&id)?;
    line.resume().await?.ok_or_else(unknown_line)?;
    body_of(id, &line).await
}

/// Closes a line for ever: nobody enters and nobody is admitted any more. Those who are admitted stay until their time is over.
#[utoipa::path(
    post, path = "/v1/lines/{id}/close", tag = "lines", security(("admin" = [])),
    params(Id),
    responses((status = 200, description = "How it stands now.", body = LineBody), UnknownLine, ReadProblems),
)]
pub(crate) async fn close_line(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<LineBody>, Problem> {
    let line = state.gate.line(&id)?;
    line.close().await?.ok_or_else(unknown_line)?;
    body_of(id, &line).await
}

/// How many to admit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostAdmit {
    count: u32,
}

/// How many will be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdmitBody {
    line: String,
    /// How many were asked for.
    count: u32,
    /// How many of those who wait now will be admitted because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    noted: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Admits so many of those who wait now, beyond the rate and also while the line is paused, but never more than may be in at once.
///
/// A line remembers its last 64 requests.
#[utoipa::path(
    post, path = "/v1/lines/{id}/admit", tag = "lines", security(("admin" = [])),
    params(Id, IdempotencyKey), request_body = PostAdmit,
    responses(
        (status = 201, description = "Noted.", body = AdmitBody),
        (status = 200, description = "Noted before, under this key: nobody is admitted for it twice.", body = AdmitBody),
        AdmitDenied, UnknownLine, WriteProblems,
    ),
)]
pub(crate) async fn admit_people(
    _: Admin,
    State(state): State<AppState>,
    Id(id): Id,
    key: IdempotencyKey,
    Json(PostAdmit { count }): Json<PostAdmit>,
) -> Result<(StatusCode, JsonBody<AdmitBody>), Problem> {
    let line = state.gate.line(&id)?;
    let (status, noted) = match line.admit_as(count, key.token(&["line-admit", &id])).await? {
        Some(LineAdmit::Noted { count }) => (StatusCode::CREATED, Some(count)),
        Some(LineAdmit::Again { asked }) if asked == count => (StatusCode::OK, None),
        Some(LineAdmit::Again { .. }) => return Err(IdempotencyKey::reused()),
        Some(_) => return Err(nobody_admitted(&line).await?),
        None => return Err(unknown_line()),
    };
    let replayed = status == StatusCode::OK;
    Ok((status, JsonBody(AdmitBody { line: id, count, noted, replayed })))
}

/// Why nobody can be admitted.
async fn nobody_admitted(line: &Line) -> Result<Problem, Problem> {
    let status = line.status().await?.ok_or_else(unknown_line)?;
    Ok(match status.crowd.state {
        LineState::Closed => closed(),
        _ => not_open(status.terms.parts().opens_at),
    })
}

/// All that is needed to compute the order of those who came early again, as `lockgate lines verify` reads it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditBody {
    line: String,
    /// What was published before.
    commitment: String,
    /// What it was the commitment of.
    secret: String,
    arrivals_hash: String,
    seed: String,
    /// Who came, in which order, as hashes.
    #[schema(value_type = Vec<String>)]
    arrivals: Vec<Leaf>,
}

/// Written digit by digit into the answer: there may be millions.
#[derive(Debug)]
pub(crate) struct Leaf(Hash256);

impl Serialize for Leaf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl AuditBody {
    fn new(audit: Audit) -> Self {
        Self {
            line: audit.line.to_string(),
            commitment: audit.commitment.to_string(),
            secret: audit.secret.to_string(),
            arrivals_hash: audit.arrivals_hash.to_string(),
            seed: audit.seed.to_string(),
            arrivals: audit.arrivals.into_iter().map(Leaf).collect(),
        }
    }
}

/// Tells what anybody needs to verify in which order those who came early were put.
#[utoipa::path(
    get, path = "/v1/lines/{id}/audit", tag = "lines", security((), ("app" = [])),
    params(Id),
    responses(
        (status = 200, description = "For `lockgate lines verify`.", body = AuditBody),
        UnknownLine, NotDrawn, ReadProblems,
    ),
)]
pub(crate) async fn get_line_audit(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
) -> Result<JsonBody<AuditBody>, Problem> {
    let line = state.gate.line(&id)?;
    match line.audit().await? {
        Some(audit) => Ok(JsonBody(AuditBody::new(audit))),
        None => {
            line.status().await?.ok_or_else(unknown_line)?;
            Err(not_drawn())
        }
    }
}

pub(super) fn unknown_line() -> Problem {
    let detail = "There is no line of that id; an admin creates it with PUT.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-line", "The line is unknown", detail)
}

pub(super) fn closed() -> Problem {
    let detail = "It is over; nobody enters and nobody is admitted any more.";
    Problem::new(StatusCode::FORBIDDEN, "closed", "The line is closed", detail)
}

pub(super) fn not_open(opens_at: Option<Timestamp>) -> Problem {
    let problem =
        |detail: String| Problem::new(StatusCode::FORBIDDEN, "not-open", "The line is not open yet", detail);
    match opens_at.map(|time| Rfc3339(time).to_text()) {
        Some(time) => problem(format!("It opens at {time}; ask again then.")).with("opens_at", json!(time)),
        None => problem("Ask again in a moment.".to_owned()),
    }
}

fn too_late() -> Problem {
    let detail = "The line is open already, so that its opening cannot be moved, or somebody is early already, so that the \
                  pre-queue cannot be taken away or added; nothing has changed. Send its own opens_at and prequeue to change the rest.";
    Problem::new(StatusCode::CONFLICT, "too-late", "It is too late for that", detail)
}

fn not_closed() -> Problem {
    let detail = "People may be in it; close it first.";
    Problem::new(StatusCode::CONFLICT, "not-closed", "The line is not closed", detail)
}

fn not_drawn() -> Problem {
    let detail = "No order was drawn yet, or those who came early are forgotten: there is nothing to verify.";
    Problem::new(StatusCode::CONFLICT, "not-drawn", "No order was drawn", detail)
}
