//! What Prometheus reads.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::ReadProblems;
use crate::app::AppState;
use crate::auth::App;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_metrics))
}

/// All metrics of this process, in Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", security((), ("app" = [])),
    responses((status = 200, description = "All metrics.", content_type = "text/plain", body = String), ReadProblems),
)]
pub(crate) async fn get_metrics(_: App, State(state): State<AppState>) -> Result<Response, Problem> {
    let metrics = state.metrics.as_ref().ok_or_else(|| {
        let detail = "This program has not installed a recorder for metrics.";
        Problem::new(StatusCode::NOT_FOUND, "not-found", "No such resource", detail)
    })?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render()).into_response())
}
