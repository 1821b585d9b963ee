//! The whole service as one router.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use lockgate::Gate;

use crate::auth::Tokens;
use crate::ledger::LedgerView;
use crate::problem::Problem;
use crate::routes::{coupons, health};

pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// What every route can reach.
#[derive(Clone, Debug)]
pub(crate) struct AppState {
    pub(crate) gate: Gate,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) ledger: Option<LedgerView>,
}

/// The service on `gate`, for whoever holds `tokens`, with what can be seen of the ledger if there is one.
pub fn app(gate: Gate, tokens: Tokens, ledger: Option<LedgerView>) -> Router {
    Router::new()
        .route("/v1/coupons/{id}", put(coupons::put_coupon).get(coupons::get_coupon))
        .route("/v1/coupons/{id}/issues", post(coupons::post_issue))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .fallback(async || {
            Problem::new(
                StatusCode::NOT_FOUND,
                "not-found",
                "No such resource",
                "There is nothing at this path.",
            )
        })
        .method_not_allowed_fallback(async || {
            let detail = "This path does not take this method; the Allow header lists those that it takes.";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Not this method", detail)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(AppState { gate, tokens: Arc::new(tokens), ledger })
}
