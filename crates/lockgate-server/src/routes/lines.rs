//! Lines: so many every so often, in the order in which they came.
//!
//! What an operator does with a line; what the people in it do is in [`tickets`](super::tickets).

use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use lockgate::clock::Timestamp;
use lockgate::error::InvalidInput;
use lockgate::key::Name;
use lockgate::line::draw::{Hash256, commitment};
use lockgate::line::{Audit, Line, LineAdmit, LineOpen, LineState, LineStatus, LineTerms};
use lockgate::stock::MAX_QUANTITY;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

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

/// How a line admits. PUT replaces all of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutLine {
    /// How many are admitted together.
    batch: u32,
    /// How often: 10 ms to a day.
    every_ms: u64,
    /// How many may be admitted at once; left out: however many.
    max_active: Option<u32>,
    /// For how long somebody is admitted, from the moment of showing the ticket; left out: five minutes.
    pass_ttl_ms: Option<u64>,
    /// Who is not seen for so long is passed over; left out: a minute; `null`: nobody is passed over.
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<u64>)]
    grace_ms: Option<Option<u64>>,
    /// When it opens; left out: now.
    opens_at: Option<Rfc3339>,
    /// Whether people may come before it opens. Their order is drawn then, in a way that anybody can verify.
    #[serde(default)]
    prequeue: bool,
}

/// Tells a `null` from what was left out.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl PutLine {
    fn terms(&self) -> Result<LineTerms, Problem> {
        let mut terms = self.periods().map_err(in_milliseconds)?;
        match (self.opens_at, self.prequeue) {
            (Some(Rfc3339(opens_at)), prequeue) => {
                check_time(opens_at)?;
                terms = if prequeue { terms.prequeue_until(opens_at) } else { terms.opens_at(opens_at) };
            }
            (None, true) => {
                return Err(Problem::invalid(
                    "opens_at",
                    "is needed with prequeue: until then people are early",
                ));
            }
            (None, false) => {}
        }
        Ok(terms)
    }

    fn periods(&self) -> Result<LineTerms, InvalidInput> {
        let mut terms = LineTerms::new(self.batch, Duration::from_millis(self.every_ms))?;
        if let Some(max_active) = self.max_active {
            terms = terms.max_active(max_active)?;
        }
        if let Some(pass_ttl_ms) = self.pass_ttl_ms {
            terms = terms.pass_ttl(Duration::from_millis(pass_ttl_ms))?;
        }
        match self.grace_ms {
            Some(grace_ms) => terms.grace(grace_ms.map(Duration::from_millis)),
            None => Ok(terms),
        }
    }
}

/// Periods are called otherwise here, because JSON has no units.
fn in_milliseconds(why: InvalidInput) -> Problem {
    let field = match why.field {
        "every" => "every_ms",
        "pass_ttl" => "pass_ttl_ms",
        "grace" => "grace_ms",
        field => field,
    };
    Problem::invalid(field, why.problem)
}

/// Redis counts microseconds exactly up to this.
fn check_time(opens_at: Timestamp) -> Result<(), Problem> {
    if opens_at.as_micros() <= MAX_QUANTITY {
        return Ok(());
    }
    Err(Problem::invalid("opens_at", "must be before the year 2255"))
}

/// How a line stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineBody {
    id: String,
    /// `scheduled`, `early` (people may come, and are put in order at the opening), `drawing` (that is being done), `open`, `paused`
    /// or `closed`.
    state: &'static str,
    waiting: u64,
    /// How many are admitted now.
    active: u64,
    batch: u32,
    every_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_active: Option<u32>,
    pass_ttl_ms: u64,
    /// `null`: nobody is passed over.
    grace_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Rfc3339>,
    prequeue: bool,
    /// How many have ever entered.
    arrived: u64,
    /// How many were ever admitted.
    admitted: u64,
    /// How many left while they waited.
    left: u64,
    /// How many were passed over, because they were not seen.
    abandoned: u64,
    /// How many were admitted and did not come.
    no_shows: u64,
    /// How many came to the end of their time.
    expired: u64,
    /// How many have finished, or left after they were admitted.
    finished: u64,
    /// How fast it has moved lately, in people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pace_per_second: Option<f64>,
    /// How long those had waited who were admitted lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent_waits: Option<Waits>,
    /// With a pre-queue: to be published before anybody comes. Their order can be verified against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commitment: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Waits {
    /// Half of them waited at most this long.
    p50_ms: u64,
    /// 99 of 100 waited at most this long.
    p99_ms: u64,
}

impl Waits {
    /// Of waits, each with how many waited that long. `None` when there are none.
    fn of(mut waits: Vec<(Duration, u32)>) -> Option<Self> {
        waits.sort_unstable();
        let people: u64 = waits.iter().map(|(_, count)| u64::from(*count)).sum();
        let longest_of = |percent: u64| {
            let rank = (people * percent).div_ceil(100);
            let mut counted = 0;
            let found = waits.iter().find(|(_, count)| {
                counted += u64::from(*count);
                counted >= rank
            });
            found.filter(|_| people > 0).map(|(wait, _)| millis(*wait))
        };
        Some(Self { p50_ms: longest_of(50)?, p99_ms: longest_of(99)? })
    }
}

impl LineBody {
    pub(crate) fn new(id: String, name: &Name, status: LineStatus) -> Self {
        let terms = status.terms.parts();
        let draw = &status.secrets.draw;
        Self {
            id,
            state: word(status.crowd.state),
            waiting: status.crowd.waiting,
            active: status.crowd.active,
            batch: terms.batch,
            every_ms: millis(terms.every),
            max_active: terms.max_active,
            pass_ttl_ms: millis(terms.pass_ttl),
            grace_ms: terms.grace.map(millis),
            opens_at: terms.opens_at.map(Rfc3339),
            prequeue: terms.prequeue,
            arrived: status.arrived,
            admitted: status.admitted,
            left: status.left,
            abandoned: status.abandoned,
            no_shows: status.no_shows,
            expired: status.expired,
            finished: status.finished,
            pace_per_second: status.crowd.pace.map(|pace| pace as f64 / 1e6),
            recent_waits: Waits::of(status.recent_waits),
            commitment: terms.prequeue.then(|| commitment(name, draw).to_string()),
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The states of a line in the words of all other states.
fn word(state: LineState) -> &'static str {
    match state {
        LineState::Scheduled => "scheduled",
        LineState::Early => "early",
        LineState::Drawing => "drawing",
        LineState::Paused => "paused",
        LineState::Closed => "closed",
        _ => "open",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_people() {
        let ms = Duration::from_millis;
        assert_eq!(Waits::of(vec![]), None);
        assert_eq!(Waits::of(vec![(ms(7), 1)]), Some(Waits { p50_ms: 7, p99_ms: 7 }));
        let waits = vec![(ms(900), 1), (ms(10), 60), (ms(500), 39)];
        assert_eq!(Waits::of(waits), Some(Waits { p50_ms: 10, p99_ms: 500 }));
        let waits = vec![(ms(900), 2), (ms(10), 49), (ms(500), 49)];
        assert_eq!(Waits::of(waits), Some(Waits { p50_ms: 500, p99_ms: 900 }));
    }
}
