//! What admins did: in the log, and for the dashboard.
//!
//! **Promise:** every call that demands the admin token is written down with how it was answered, also when it was refused: the contract
//! says which those are, so no route can be forgotten.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};
use utoipa::openapi::OpenApi;

use crate::api::ADMIN;
use crate::app::AppState;
use crate::edge::address_of;
use crate::input::Rfc3339;
use crate::problem::Code;
use crate::sightings::Action;

/// Where they are written down.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    state: AppState,
    /// What the calls for admins are called, by method and path.
    calls: Arc<HashMap<(String, String), String>>,
}

impl Book {
    pub(crate) fn new(contract: &OpenApi, state: AppState) -> Self {
        let contract = serde_json::to_value(contract).unwrap_or_default();
        Self { state, calls: Arc::new(admin_calls(&contract)) }
    }
}

fn admin_calls(contract: &Value) -> HashMap<(String, String), String> {
    let paths = contract["paths"].as_object().into_iter().flatten();
    let calls = paths.flat_map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        let for_admins = operations.filter(|(_, operation)| operation["security"] == json!([{ ADMIN: [] }]));
        for_admins.map(move |(method, operation)| {
            let name = operation["operationId"].as_str().unwrap_or_default().replace('_', "-");
            ((method.to_uppercase(), path.clone()), name)
        })
    });
    calls.collect()
}

pub(crate) async fn write_down(State(book): State<Book>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let call = (request.method().to_string(), route.unwrap_or_default());
    let Some(action) = book.calls.get(&call).cloned() else { return next.run(request).await };
    let target = request.uri().path().to_owned();
    let trusted = &book.state.edge.trusted_proxies;
    let address =
        address_of(request.extensions(), request.headers(), trusted).map(|address| address.to_string());
    let response = next.run(request).await;
    let at = Rfc3339(book.state.clock.wall());
    let outcome = response.extensions().get().map_or("done", |Code(code)| code).to_owned();
    tracing::info!(target: "lockgate::audit", %action, %target, outcome, address, "an admin call");
    book.state.sightings.note_action(Action { at, action, target, outcome, address });
    response
}
