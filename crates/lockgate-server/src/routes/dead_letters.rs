//! Dead letters: what could not be written into the ledger, for somebody to decide.
//!
//! **Promise:** replaying writes what a letter holds and removes the letter in one step, so whatever is interrupted can be asked for
//! again; nothing is written twice. A letter that is refused again stays, and the answer says why.

use axum::Json as JsonBody;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use lockgate::ledger::{DeadLetter, DeadLetterId, LedgerError};
use lockgate::store::Campaign;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{ReadProblems, problems};
use crate::app::AppState;
use crate::auth::Admin;
use crate::input::{Rfc3339, TextOf};
use crate::ledger::LedgerView;
use crate::problem::Problem;

/// How many letters are listed.
const MAX_LISTED: usize = 100;

/// How many letters one call goes through. A call must end before its client gives up; the next one goes on.
const MAX_REPLAYED: usize = 200;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get_dead_letters))
        .routes(routes!(replay_dead_letters))
        .routes(routes!(replay_dead_letter))
        .routes(routes!(discard_dead_letter))
}

problems! {
    NoLedger { 404: "`no-ledger`: this server keeps none." }
    UnknownLetter { 404: "`unknown-dead-letter`: there is none of that id, or not any more; `no-ledger`." }
    StillRefused { 409: "`still-refused`: it stays; `detail` says why." }
}

/// Of which campaign.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfCampaign {
    /// As dead letters call it, such as `coupon::summer`; those of all if it is left out.
    campaign: Option<String>,
}

/// Which are to be replayed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// As dead letters call it, such as `coupon::summer`; those of all if it is left out.
    campaign: Option<String>,
    /// Where the call before has stopped: its `next`.
    after: Option<String>,
}

/// What could not be written, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterBody {
    id: String,
    /// Such as `coupon::summer`; missing if the entry could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign: Option<String>,
    /// The number of the change; 0 if the entry could not be read.
    rev: u64,
    /// Whether the ledger has the same change with other content.
    is_conflict: bool,
    reason: String,
    /// What the entry says.
    content: String,
    /// When it was put here.
    at: Rfc3339,
}

impl DeadLetterBody {
    fn new(letter: DeadLetter) -> Self {
        Self {
            id: letter.id().to_string(),
            campaign: letter.campaign.as_ref().map(Campaign::called),
            rev: letter.rev,
            is_conflict: letter.is_conflict,
            reason: letter.reason,
            content: letter.content,
            at: Rfc3339(letter.at),
        }
    }
}

/// The oldest dead letters.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLettersBody {
    /// The oldest first, at most 100.
    dead_letters: Vec<DeadLetterBody>,
    /// How many more there are.
    more: u64,
}

/// What became of some dead letters.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ReplayedBody {
    /// How many are in the ledger now.
    written: u64,
    /// Those that stay.
    refused: Vec<RefusedLetter>,
    /// Set when there may be more: ask again with this as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A dead letter that stays.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedLetter {
    id: String,
    why: String,
}

/// Lists what could not be written, the oldest first.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "operations", security(("admin" = [])), params(OfCampaign),
    responses((status = 200, description = "The oldest of them.", body = DeadLettersBody), NoLedger, ReadProblems),
)]
async fn get_dead_letters(
    _: Admin,
    State(state): State<AppState>,
    which: Result<Query<OfCampaign>, QueryRejection>,
) -> Result<JsonBody<DeadLettersBody>, Problem> {
    let Query(OfCampaign { campaign }) = which.map_err(|_| only("campaign"))?;
    let of = campaign.as_deref().map(campaign_called).transpose()?;
    let ledger = view(&state)?.ledger();
    let letters = ledger.oldest_dead_letters(of.as_ref(), MAX_LISTED).await.map_err(|why| away(&why))?;
    let all = ledger.count_dead_letters(of.as_ref()).await.map_err(|why| away(&why))?;
    let more = all.saturating_sub(letters.len() as u64);
    let dead_letters = letters.into_iter().map(DeadLetterBody::new).collect();
    Ok(JsonBody(DeadLettersBody { dead_letters, more }))
}

/// Writes what dead letters hold, all or those of a campaign, some at a time.
#[utoipa::path(
    post, path = "/v1/dead-letters/replay", tag = "operations", security(("admin" = [])), params(Which),
    responses((status = 200, description = "What became of them.", body = ReplayedBody), NoLedger, ReadProblems),
)]
async fn replay_dead_letters(
    _: Admin,
    State(state): State<AppState>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<JsonBody<ReplayedBody>, Problem> {
    let Query(Which { campaign, after }) = which.map_err(|_| only("campaign` and `after"))?;
    let of = campaign.as_deref().map(campaign_called).transpose()?;
    let after = after.map(|after| {
        DeadLetterId::parse(&after)
            .ok_or_else(|| Problem::invalid("after", "must be the `next` of an answer"))
    });
    let view = view(&state)?;
    let letters =
        view.ledger().dead_letters_after(after.transpose()?, MAX_REPLAYED).await.map_err(|why| away(&why))?;
    let mut body = ReplayedBody::default();
    if letters.len() == MAX_REPLAYED {
        body.next = letters.last().map(|letter| letter.id().to_string());
    }
    let mut before = None;
    for letter in letters.iter().filter(|letter| of.is_none() || of == letter.campaign) {
        match view.ledger().replay(letter).await {
            Ok(true) => body.written += 1,
            // Somebody else was faster.
            Ok(false) => {}
            Err(why) if stays(&why) => {
                body.refused.push(RefusedLetter { id: letter.id().to_string(), why: why.to_string() });
            }
            // What was done is told, and where to go on.
            Err(why) if before.is_some() => {
                tracing::warn!(%why, "the ledger did not answer any more");
                body.next = before.map(|letter: DeadLetterId| letter.to_string());
                break;
            }
            Err(why) => return Err(away(&why)),
        }
        before = Some(letter.id());
    }
    view.look_again();
    Ok(JsonBody(body))
}

/// Writes what a dead letter holds.
#[utoipa::path(
    post, path = "/v1/dead-letters/{letter}/replay", tag = "operations", security(("admin" = [])),
    params(("letter" = String, Path)),
    responses((status = 204, description = "It is in the ledger."), UnknownLetter, StillRefused, ReadProblems),
)]
async fn replay_dead_letter(
    _: Admin,
    State(state): State<AppState>,
    TextOf(letter): TextOf,
) -> Result<StatusCode, Problem> {
    let (view, letter) = find(&state, &letter).await?;
    let is_written = view.ledger().replay(&letter).await.map_err(|why| {
        if !stays(&why) {
            return away(&why);
        }
        let detail = format!("{why}. The letter stays; nothing has changed.");
        Problem::new(StatusCode::CONFLICT, "still-refused", "It is refused again", detail)
    })?;
    gone(view, is_written)
}

/// Removes a dead letter for good: what it holds is missing in every audit.
#[utoipa::path(
    delete, path = "/v1/dead-letters/{letter}", tag = "operations", security(("admin" = [])),
    params(("letter" = String, Path)),
    responses((status = 204, description = "It is gone."), UnknownLetter, ReadProblems),
)]
async fn discard_dead_letter(
    _: Admin,
    State(state): State<AppState>,
    TextOf(letter): TextOf,
) -> Result<StatusCode, Problem> {
    let (view, letter) = find(&state, &letter).await?;
    let is_removed = view.ledger().discard(&letter).await.map_err(|why| away(&why))?;
    gone(view, is_removed)
}

/// It was there until now, or somebody else was faster.
fn gone(view: &LedgerView, was_there: bool) -> Result<StatusCode, Problem> {
    view.look_again();
    if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(unknown()) }
}

fn view(state: &AppState) -> Result<&LedgerView, Problem> {
    state.ledger.as_ref().ok_or_else(|| {
        let detail = "This server keeps no ledger, so nothing can be missing in it. Start it with --ledger to keep one.";
        Problem::new(StatusCode::NOT_FOUND, "no-ledger", "There is no ledger", detail)
    })
}

async fn find<'a>(state: &'a AppState, letter: &str) -> Result<(&'a LedgerView, DeadLetter), Problem> {
    let view = view(state)?;
    let id = DeadLetterId::parse(letter).ok_or_else(unknown)?;
    let letter = view.ledger().dead_letter(id).await.map_err(|why| away(&why))?;
    Ok((view, letter.ok_or_else(unknown)?))
}

fn unknown() -> Problem {
    let detail = "There is no dead letter of that id: it was replayed or discarded, or never was one. \
                  GET /v1/dead-letters lists those that there are.";
    Problem::new(StatusCode::NOT_FOUND, "unknown-dead-letter", "The dead letter is unknown", detail)
}

fn campaign_called(text: &str) -> Result<Campaign, Problem> {
    Campaign::from_called(text).ok_or_else(|| {
        Problem::invalid("campaign", "must be what dead letters call it, as in coupon::summer")
    })
}

fn only(parameters: &str) -> Problem {
    Problem::invalid("query", format!("may have `{parameters}`, each once, and nothing else"))
}

/// Whether trying again at once helps nobody.
fn stays(why: &LedgerError) -> bool {
    matches!(why, LedgerError::Refused(_)) || why.is_fault_of_the_records()
}

/// The database does not answer.
fn away(why: &LedgerError) -> Problem {
    Problem::unavailable("The ledger's database does not answer; the server's log says why. Try again.")
        .because(why.to_string())
}
