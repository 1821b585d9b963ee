//! Is it alive, and is it of use?

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::ReadProblems;
use crate::app::AppState;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// The process runs. Says nothing about the store: a server that waits for its Redis must not be restarted for it.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "It runs.")))]
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// The store answers, and the server is not about to stop. How the ledger is doing is told, and is no reason not to be asked: decisions do not wait for it.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "The store answers."), ReadProblems),
)]
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Json<Value>, Problem> {
    if state.closing.is_cancelled() {
        return Err(Problem::stopping().with("reasons", json!(["the server is stopping"])));
    }
    match state.gate.store().about().await {
        Ok(about) => {
            let mut body = json!({
                "status": "ready",
                "store": { "description": about.description, "persistence": about.persistence.to_string() },
            });
            if let Some(ledger) = &state.ledger {
                body["ledger"] = ledger.to_json();
                if ledger.is_failing() {
                    body["warnings"] =
                        json!(["the ledger cannot be written; decisions go on and wait in the journal"]);
                }
            }
            Ok(Json(body))
        }
        // Anybody may ask this, so what the store said stays in the log.
        Err(why) => Err(Problem::from(why).with("reasons", json!(["the store does not answer"]))),
    }
}
