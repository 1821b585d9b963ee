//! The public keys of passes: whoever has them tells a pass from a forged one, without asking anybody.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::AppState;

/// A new key is published this long before it signs, at the least: see `--accept-pass-key`.
const KEPT_FOR: &str = "public, max-age=300";

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_jwks))
}

/// The keys by which passes are verified, as a JSON Web Key Set (RFC 7517).
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "lines",
    responses((status = 200, description = "The key set; EdDSA over Ed25519.", content_type = "application/json", body = Object)),
)]
pub(crate) async fn get_jwks(State(state): State<AppState>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, KEPT_FOR)], state.passes.jwks())
}
