//! Locks: who may act now.
//!
//! The lock is lent to whoever asks: any server renews and releases it, by its token. For whom it was taken is seen by a mark in the
//! token, which only those know how to compute who know the admin token: so the same owner is told the same by every server.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use lockgate::lock::{Loan, LockError, Mutex};
use lockgate::store::{Fence, Lease, LoanMark, MutexStatus, Token};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{ReadProblems, WriteProblems, problems};
use crate::app::{AppState, Reach};
use crate::auth::{Admin, App};
use crate::edge::Patience;
use crate::input::{Id, Json, check_id};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(post_lock, get_lock, delete_lock))
        .routes(routes!(renew_lock))
        .routes(routes!(break_lock))
}

problems! {
    Locked { 423: "`locked`: somebody else has it; `retry_after_ms` is what is left of that lease." }
    NotHeld { 409: "`not-held`: the token does not hold it, or no longer." }
}

/// The longest wait that a call may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);

const TOKEN_HEADER: &str = "Lockgate-Token";

/// For whom, for how long, and how long to wait for it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostLock {
    /// Whoever asks again under the same name while it holds the lock is told the same.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:@-]+$")]
    owner: String,
    /// 0: not at all.
    #[schema(maximum = 60_000)]
    wait_ms: u64,
    #[schema(minimum = 1, maximum = 86_400_000)]
    lease_ms: u64,
}

/// A lock that is held.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockBody {
    /// Whoever knows it can renew and release the lock.
    token: String,
    /// Above that of every holder before: store it beside what the lock protects, and refuse smaller ones there.
    fence: u64,
    lease_ms: u64,
    /// The owner had it already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// How a lock stands. Tokens are not told.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockStatusBody {
    key: String,
    held: bool,
    /// For whom it was taken, if it was taken through this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// The highest that was given out.
    fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_left_ms: Option<u64>,
    waiting: u64,
}

/// Takes a lock, and waits for it if others have it.
#[utoipa::path(
    post, path = "/v1/locks/{id}", tag = "locks", security((), ("app" = [])), params(Id), request_body = PostLock,
    responses((status = 200, description = "It is held now.", body = LockBody), Locked, WriteProblems),
)]
async fn post_lock(
    _: App,
    State(state): State<AppState>,
    Id(key): Id,
    patience: Patience,
    Json(PostLock { owner, wait_ms, lease_ms }): Json<PostLock>,
) -> Result<JsonBody<LockBody>, Problem> {
    check_id("owner", &owner)?;
    let (wait, lease) = (Duration::from_millis(wait_ms), Duration::from_millis(lease_ms));
    if wait > MAX_WAIT {
        return Err(Problem::invalid("wait_ms", "must be at most 60000; ask again after that"));
    }
    check_lease(lease)?;
    patience.also(wait);
    state.sightings.note_lock(&key);
    let (mutex, mark) = (state.gate.mutex(&key)?.lease(lease)?, mark_of(&state, &key, &owner));
    let lent = lend(&mutex, mark, wait, lease).await?;
    state.sightings.note_owner(&key, owner);
    Ok(lent)
}

/// Has it lent to whoever has that mark.
async fn lend(
    mutex: &Mutex,
    mark: LoanMark,
    wait: Duration,
    lease: Duration,
) -> Result<JsonBody<LockBody>, Problem> {
    // Most locks are free.
    let (mut taken, mut has_waited) = (mutex.clone().wait(Duration::ZERO).lend(mark).await, false);
    if is_taken(&taken) {
        if let Some(held) = held_by(mutex, mark, lease).await? {
            return Ok(held);
        }
        if !wait.is_zero() {
            (taken, has_waited) = (mutex.clone().wait(wait).lend(mark).await, true);
            // Another call of this owner, ahead of this one in the queue, may have got it.
            if is_taken(&taken)
                && let Some(held) = held_by(mutex, mark, lease).await?
            {
                return Ok(held);
            }
        }
    }
    match taken {
        Ok(loan) => {
            let fence = if has_waited { fence_of(mutex, &loan).await } else { loan.fence };
            Ok(LockBody::of(loan.token, fence.get(), loan.lease, false))
        }
        Err(LockError::Store(why)) => Err(why.into()),
        Err(LockError::TimedOut { .. }) => Err(locked(mutex).await?),
        Err(why) => Err(not_now(&why)),
    }
}

impl LockBody {
    fn of(token: Token, fence: u64, lease: Duration, replayed: bool) -> JsonBody<Self> {
        JsonBody(Self { token: token.to_string(), fence, lease_ms: millis(lease), replayed })
    }
}

fn is_taken(answer: &Result<Loan, LockError>) -> bool {
    matches!(answer, Err(LockError::TimedOut { .. }))
}

fn check_lease(lease: Duration) -> Result<(), Problem> {
    Lease::new(lease).map(|_| ()).map_err(|_| Problem::invalid("lease_ms", "must be 1 to 86400000"))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// By what every server knows this owner's loans of this lock, and nobody else can.
fn mark_of(state: &Reach, key: &str, owner: &str) -> LoanMark {
    let mut hash = Sha256::new();
    for part in ["lockgate lock owner v1", state.tokens.admin.reveal(), key, owner] {
        // With its length, so that no two lists of parts read the same.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    LoanMark::new(digest[..8].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

/// What is handed over by another holder comes with a block of fences. The last one is told, as it is to whoever asks again.
async fn fence_of(mutex: &Mutex, loan: &Loan) -> Fence {
    match mutex.status().await {
        Ok(status) if status.holder.is_some_and(|holder| holder.token == loan.token) => status.fence,
        _ => loan.fence,
    }
}

/// What this owner has already, with its lease begun anew.
async fn held_by(
    mutex: &Mutex,
    mark: LoanMark,
    lease: Duration,
) -> Result<Option<JsonBody<LockBody>>, Problem> {
    let status = mutex.status().await?;
    let Some(holder) = status.holder.filter(|holder| holder.token.mark() == mark) else { return Ok(None) };
    let is_held = mutex.renew_loan(holder.token, lease).await?;
    Ok(is_held.then(|| LockBody::of(holder.token, status.fence.get(), lease, true)))
}

async fn locked(mutex: &Mutex) -> Result<Problem, Problem> {
    let left = mutex.status().await?.holder.map_or(Duration::ZERO, |holder| holder.lease_left);
    let detail = "Somebody else has the lock; ask again, or wait longer.";
    Ok(Problem::new(StatusCode::LOCKED, "locked", "The lock is taken", detail)
        .with("retry_after_ms", json!(millis(left).max(1))))
}

/// The server is about to stop, or the lock was lost in the moment in which it was given.
fn not_now(why: &LockError) -> Problem {
    tracing::info!(%why, "a lock could not be lent out");
    Problem::unavailable("The lock could not be had at this moment; ask again.")
}

/// Tells how a lock stands.
#[utoipa::path(
    get, path = "/v1/locks/{id}", tag = "locks", security((), ("app" = [])), params(Id),
    responses((status = 200, description = "How it stands; one that nobody has ever asked for is free.", body = LockStatusBody), ReadProblems),
)]
async fn get_lock(
    _: App,
    State(state): State<AppState>,
    Id(key): Id,
) -> Result<JsonBody<LockStatusBody>, Problem> {
    let status = state.gate.mutex(&key)?.status().await?;
    let owner = state.sightings.owner_of(&key);
    Ok(JsonBody(LockStatusBody::new(&state, key, owner, &status)))
}

impl LockStatusBody {
    /// `owner`: who had it last, as far as this server has seen.
    pub(crate) fn new(state: &Reach, key: String, owner: Option<String>, status: &MutexStatus) -> Self {
        let is_of = |owner: &String| {
            status.holder.is_some_and(|holder| holder.token.mark() == mark_of(state, &key, owner))
        };
        Self {
            owner: owner.filter(is_of),
            key,
            held: status.holder.is_some(),
            fence: status.fence.get(),
            lease_left_ms: status.holder.map(|holder| millis(holder.lease_left)),
            waiting: status.waiting,
        }
    }
}

/// Which lock is to be renewed, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewLock {
    token: String,
    #[schema(minimum = 1, maximum = 86_400_000)]
    lease_ms: u64,
}

/// What is left of a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RenewedBody {
    lease_ms: u64,
}

/// Lets the lease of a lock begin anew.
#[utoipa::path(
    post, path = "/v1/locks/{id}/renew", tag = "locks", security((), ("app" = [])), params(Id), request_body = RenewLock,
    responses((status = 200, description = "It is held for so long from now.", body = RenewedBody), NotHeld, WriteProblems),
)]
async fn renew_lock(
    _: App,
    State(state): State<AppState>,
    Id(key): Id,
    Json(RenewLock { token, lease_ms }): Json<RenewLock>,
) -> Result<JsonBody<RenewedBody>, Problem> {
    let lease = Duration::from_millis(lease_ms);
    check_lease(lease)?;
    let token = parse(&token).ok_or_else(not_held)?;
    if state.gate.mutex(&key)?.renew_loan(token, lease).await? {
        return Ok(JsonBody(RenewedBody { lease_ms }));
    }
    Err(not_held())
}

/// The token, where it cannot be sent in a header.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenQuery {
    token: Option<String>,
}

/// Gives a lock back.
#[utoipa::path(
    delete, path = "/v1/locks/{id}", tag = "locks", security((), ("app" = [])),
    params(Id, TokenQuery, ("Lockgate-Token" = Option<String>, Header, description = "The token; or `?token=`.")),
    responses((status = 204, description = "It is free, or the next one's."), NotHeld, ReadProblems),
)]
async fn delete_lock(
    _: App,
    State(state): State<AppState>,
    Id(key): Id,
    headers: HeaderMap,
    query: Result<Query<TokenQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<StatusCode, Problem> {
    let Query(TokenQuery { token: in_query }) =
        query.map_err(|_| Problem::invalid("token", "is the only parameter that can be sent, once"))?;
    let in_header = headers.get(TOKEN_HEADER).map(|value| value.to_str().unwrap_or_default().to_owned());
    let Some(token) = in_header.or(in_query) else {
        return Err(Problem::invalid(TOKEN_HEADER, "is required: the token that the lock was given with"));
    };
    let token = parse(&token).ok_or_else(not_held)?;
    let released = state.gate.mutex(&key)?.release_loan(token).await?;
    released.then_some(StatusCode::NO_CONTENT).ok_or_else(not_held)
}

/// What a lock was taken away with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BrokenBody {
    key: String,
    /// Above that of the old holder: write it where fences are checked, and the old holder is shut out.
    fence: u64,
}

/// Takes a lock from whoever holds it, and gives it to the next who waits.
#[utoipa::path(
    post, path = "/v1/locks/{id}/break", tag = "locks", security(("admin" = [])), params(Id),
    responses((status = 200, description = "The old holder has it no longer.", body = BrokenBody), ReadProblems),
)]
async fn break_lock(
    _: Admin,
    State(state): State<AppState>,
    Id(key): Id,
) -> Result<JsonBody<BrokenBody>, Problem> {
    let fence = state.gate.mutex(&key)?.force_release().await?.get();
    Ok(JsonBody(BrokenBody { key, fence }))
}

fn parse(token: &str) -> Option<Token> {
    (token.len() == 32).then(|| Token::parse(token))?
}

fn not_held() -> Problem {
    let detail = "The token does not hold the lock, or no longer: its lease has run out, or it was given back or taken away.";
    Problem::new(StatusCode::CONFLICT, "not-held", "The lock is not held", detail)
}
