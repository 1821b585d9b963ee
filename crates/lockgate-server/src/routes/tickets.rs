//! Tickets: a place in a line, and what its holder does with it.
//!
//! **Promise:** whoever has the ticket stands at that place, and nobody else can: a ticket is 128 bits that cannot be guessed, so
//! that a page may ask with it alone, without a token. To enter, the app asks, because it knows who its users are.
//!
//! **So it must not leak:** no answer here may be kept by anybody on the way (`Cache-Control: no-store`), problems included, and
//! an unknown ticket is all that a stranger is told, whether there is such a line or not.

mod events;

use axum::Json as JsonBody;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use lockgate::line::pass::PassError;
use lockgate::line::{Admission, Ending, Entry, Ticket, TicketId, Whereabouts};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Required};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lines::{closed, millis, not_open, unknown_line};
use crate::api::{PublicProblems, WriteProblems, problems};
use crate::app::{AppState, Service};
use crate::auth::App;
use crate::input::{Id, Json, Rfc3339, check_id};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(post_ticket))
        .routes(routes!(get_ticket, delete_ticket))
        .routes(routes!(finish_turn))
        .routes(routes!(renew_turn))
        .routes(routes!(events::watch_ticket))
        .layer(map_response(kept_by_nobody))
}

async fn kept_by_nobody(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

problems! {
    EntryDenied {
        403: "`not-open` (with `opens_at`), `closed`.",
        404: "`unknown-line`: an admin creates it with PUT.",
        409: "`full`: as many have come early as may.",
    }
    UnknownTicket { 404: "`unknown-ticket`: it is forged, of another line, or was over long ago." }
    NotAdmitted { 409: "`not-admitted`, with `state` and all else that the ticket would be told." }
}

/// A ticket of the line in the path. Whether it is one, asking about it tells.
pub(crate) struct InLine(Ticket);

impl FromRequestParts<AppState> for InLine {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((id, ticket)) = path.map_err(|why| unreadable(&why))?;
        check_id("id", &id)?;
        let ticket = TicketId::parse(&ticket).ok_or_else(unknown_ticket)?;
        Ok(Self(state.gate.line(&id)?.ticket(ticket)))
    }
}

/// What is not UTF-8 is no id, and no ticket.
fn unreadable(why: &PathRejection) -> Problem {
    match why {
        PathRejection::FailedToDeserializePathParams(why) if matches!(why.kind(), ErrorKind::InvalidUtf8InPathParam { key } if key == "ticket") => {
            unknown_ticket()
        }
        _ => Problem::invalid("id", "is not UTF-8"),
    }
}

impl IntoParams for InLine {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let ticket = ParameterBuilder::new().name("ticket").parameter_in(ParameterIn::Path);
        let text =
            ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9]+-[0-9]+-[0-9a-f]{32}$"));
        let mut params = Id::into_params(place);
        params.push(ticket.required(Required::True).schema(Some(text)).build());
        params
    }
}

/// Where the holder of a ticket stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TicketBody {
    /// To be kept by whoever it is for: in a cookie, in an address.
    ticket: String,
    /// `early` (the line is not open, the place will be drawn), `waiting`, `admitted`, or how it ended: `left`, `abandoned` (passed
    /// over), `no-show`, `expired`, `finished`, `closed`.
    state: &'static str,
    /// The next one to be admitted is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// How many are in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<u64>,
    /// How long it will take, by how fast the line has moved lately; left out when it does not move.
    #[serde(skip_serializing_if = "Option::is_none")]
    eta_ms: Option<u64>,
    /// When the turn is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Rfc3339>,
    /// The proof that it is the user's turn (JWT, EdDSA; keys at `/.well-known/jwks.json`), for the header `Lockgate-Pass`. It
    /// lasts to the last whole second of the turn; left out when that is past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<String>,
}

impl TicketBody {
    fn new(ticket: &TicketId, whereabouts: &Whereabouts, service: &Service) -> Result<Self, Problem> {
        let state = word(whereabouts).ok_or_else(unknown_ticket)?;
        let (ticket, nothing) = (ticket.to_string(), None);
        let told =
            Self { ticket, state, position: None, waiting: None, eta_ms: None, until: None, pass: nothing };
        Ok(match whereabouts {
            Whereabouts::Early { waiting } => Self { waiting: Some(*waiting), ..told },
            Whereabouts::Waiting { position, waiting, wait } => {
                Self { position: Some(*position), waiting: Some(*waiting), eta_ms: wait.map(millis), ..told }
            }
            Whereabouts::Admitted(admission) => {
                Self { until: Some(Rfc3339(admission.until)), pass: signed(admission, service), ..told }
            }
            _ => told,
        })
    }
}

/// The pass for this admission; `None` when there is nothing left to sign for.
fn signed(admission: &Admission, service: &Service) -> Option<String> {
    match service.passes.sign(&admission.claims(service.clock.wall())) {
        Ok(pass) => Some(pass),
        Err(PassError::Expired) => None,
        Err(why) => {
            tracing::error!(line = %admission.line, %why, "somebody was admitted, and no pass could be signed");
            None
        }
    }
}

/// `None`: nothing is known of such a ticket.
fn word(whereabouts: &Whereabouts) -> Option<&'static str> {
    Some(match whereabouts {
        Whereabouts::Early { .. } => "early",
        Whereabouts::Waiting { .. } => "waiting",
        Whereabouts::Admitted(_) => "admitted",
        Whereabouts::Over(Ending::Left) => "left",
        Whereabouts::Over(Ending::Abandoned) => "abandoned",
        Whereabouts::Over(Ending::NoShow) => "no-show",
        Whereabouts::Over(Ending::Expired) => "expired",
        Whereabouts::Over(Ending::Finished) => "finished",
        Whereabouts::Over(Ending::Closed) => "closed",
        _ => return None,
    })
}

/// Who wants to enter.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostTicket {
    user: String,
}

/// Lets a user in, behind all who are in the line. Who is in it already keeps the place.
#[utoipa::path(
    post, path = "/v1/lines/{id}/tickets", tag = "lines", security((), ("app" = [])),
    params(Id), request_body = PostTicket,
    responses(
        (status = 201, description = "Entered.", body = TicketBody),
        (status = 200, description = "The user is in the line already: the same ticket.", body = TicketBody),
        EntryDenied, WriteProblems,
    ),
)]
pub(crate) async fn post_ticket(
    _: App,
    State(state): State<AppState>,
    Id(id): Id,
    Json(PostTicket { user }): Json<PostTicket>,
) -> Result<(StatusCode, JsonBody<TicketBody>), Problem> {
    check_id("user", &user)?;
    match state.gate.line(&id)?.enter(&user).await? {
        Entry::In { ticket, is_new, whereabouts } => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            Ok((status, JsonBody(TicketBody::new(ticket.id(), &whereabouts, &state)?)))
        }
        Entry::NotOpen { opens_at } => Err(not_open(Some(opens_at))),
        Entry::Closed => Err(closed()),
        Entry::Full => Err(full()),
        _ => Err(unknown_line()),
    }
}

type Told = Result<JsonBody<TicketBody>, Problem>;

fn tell(ticket: &Ticket, whereabouts: &Whereabouts, service: &Service) -> Told {
    TicketBody::new(ticket.id(), whereabouts, service).map(JsonBody)
}

/// Tells where the holder of a ticket stands. Who asks at least twice within the grace period is there, and is not passed over; if
/// it is their turn, their time begins.
#[utoipa::path(
    get, path = "/v1/lines/{id}/tickets/{ticket}", tag = "lines",
    params(InLine),
    responses(
        (status = 200, description = "Where they stand; with `pass` when it is their turn.", body = TicketBody),
        UnknownTicket, PublicProblems,
    ),
)]
pub(crate) async fn get_ticket(State(state): State<AppState>, InLine(ticket): InLine) -> Told {
    tell(&ticket, &ticket.glance().await?, &state)
}

/// Leaves the line, or ends the turn: the next may come. Asking again is harmless.
#[utoipa::path(
    delete, path = "/v1/lines/{id}/tickets/{ticket}", tag = "lines",
    params(InLine),
    responses(
        (status = 200, description = "`left`, or how it had ended before.", body = TicketBody),
        UnknownTicket, PublicProblems,
    ),
)]
pub(crate) async fn delete_ticket(State(state): State<AppState>, InLine(ticket): InLine) -> Told {
    tell(&ticket, &ticket.leave().await?, &state)
}

/// Ends the turn early: the next may come. Asking again is harmless.
#[utoipa::path(
    post, path = "/v1/lines/{id}/tickets/{ticket}/finish", tag = "lines",
    params(InLine),
    responses(
        (status = 200, description = "`finished`.", body = TicketBody),
        UnknownTicket, NotAdmitted, PublicProblems,
    ),
)]
pub(crate) async fn finish_turn(State(state): State<AppState>, InLine(ticket): InLine) -> Told {
    let mut whereabouts = ticket.finish().await?;
    if matches!(whereabouts, Whereabouts::Admitted(_)) {
        // The turn came between the question and the answer.
        whereabouts = ticket.finish().await?;
    }
    match whereabouts {
        Whereabouts::Over(Ending::Finished) => tell(&ticket, &whereabouts, &state),
        elsewhere => Err(not_admitted(&ticket, &elsewhere, &state)),
    }
}

/// Lets the time of the turn begin anew, up to a day in all: a new pass for the same turn.
#[utoipa::path(
    post, path = "/v1/lines/{id}/tickets/{ticket}/renew", tag = "lines",
    params(InLine),
    responses(
        (status = 200, description = "`admitted`, with the new `pass`.", body = TicketBody),
        UnknownTicket, NotAdmitted, PublicProblems,
    ),
)]
pub(crate) async fn renew_turn(State(state): State<AppState>, InLine(ticket): InLine) -> Told {
    match ticket.renew().await? {
        admitted @ Whereabouts::Admitted(_) => tell(&ticket, &admitted, &state),
        elsewhere => Err(not_admitted(&ticket, &elsewhere, &state)),
    }
}

fn unknown_ticket() -> Problem {
    let detail =
        "There is no such ticket: it is of another line, or was over long ago. Enter the line to get one.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-ticket", "The ticket is unknown", detail)
}

fn full() -> Problem {
    let detail = "As many have come early as may; come back when the line is open.";
    Problem::new(StatusCode::CONFLICT, "full", "The line is full", detail)
}

/// Says where they stand instead.
fn not_admitted(ticket: &Ticket, whereabouts: &Whereabouts, service: &Service) -> Problem {
    let body = match TicketBody::new(ticket.id(), whereabouts, service) {
        Ok(body) => body,
        Err(unknown) => return unknown,
    };
    let detail = match whereabouts.is_final() {
        true => "Their turn is over, or never came; enter the line again.",
        false => "Their turn has not come yet; `state` and `position` say where they stand.",
    };
    let problem = Problem::new(StatusCode::CONFLICT, "not-admitted", "It is not their turn", detail);
    match serde_json::to_value(body) {
        Ok(Value::Object(members)) => {
            members.into_iter().fold(problem, |problem, (member, value)| problem.with(&member, value))
        }
        _ => problem,
    }
}
