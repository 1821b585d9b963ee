//! Is it alive, and is it of use?

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::app::AppState;
use crate::problem::Problem;

/// The process runs. Says nothing about the store: a server that waits for its Redis must not be restarted for it.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// The store answers. How the ledger is doing is told, and is no reason not to be asked: decisions do not wait for it.
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Json<Value>, Problem> {
    match state.gate.store().about().await {
        Ok(about) => {
            let mut body = json!({
                "status": "ready",
                "store": { "description": about.description, "persistence": about.persistence.to_string() },
            });
            if let Some(ledger) = &state.ledger {
                body["ledger"] = ledger.to_json();
            }
            Ok(Json(body))
        }
        // Anybody may ask this, so what the store said stays in the log.
        Err(why) => Err(Problem::from(why).with("reasons", json!(["the store does not answer"]))),
    }
}
