//! What admins did: in the log, for the dashboard, and in the [`diary`](crate::diary) if there is a ledger.
//!
//! **Promise:** every call that demands the admin token is written down with how it was answered, also when it was refused: the contract
//! says which those are, so no route can be forgotten. No query, header or body is.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use lockgate::ledger::Action;
use lockgate::store::Token;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use crate::api::ADMIN;
use crate::app::{AppState, Reach};
use crate::auth::Whose;
use crate::edge::address_of;
use crate::input::Rfc3339;
use crate::problem::Code;

/// How much of a path is kept: more than any that leads somewhere has.
const LONGEST_TARGET: usize = 500;

/// How many are told.
pub(crate) const MAX_TOLD: usize = 200;

/// Something that an admin did, or that somebody tried who is none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActionBody {
    id: String,
    at: Rfc3339,
    /// What the contract calls it, such as `pause-coupon`.
    action: String,
    /// The path as it was asked for.
    target: String,
    /// `done`, or the code of the problem that it was answered with.
    outcome: String,
    /// From where, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl ActionBody {
    fn new(Action { id, at, action, target, outcome, address }: Action) -> Self {
        Self { id: id.to_string(), at: Rfc3339(at), action, target, outcome, address }
    }
}

/// Where they are written down.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    state: AppState,
    /// What the calls for admins are called, by path and method.
    calls: Arc<HashMap<String, Vec<(Method, String)>>>,
}

/// A call for admins that is under way.
pub(crate) struct Begun {
    action: String,
    target: String,
    address: Option<String>,
    /// Whether the admin token was shown.
    is_known: bool,
}

impl Book {
    pub(crate) fn new(contract: &OpenApi, state: AppState) -> Self {
        let contract = serde_json::to_value(contract).unwrap_or_default();
        Self { state, calls: Arc::new(admin_calls(&contract)) }
    }
}

fn admin_calls(contract: &Value) -> HashMap<String, Vec<(Method, String)>> {
    let paths = contract["paths"].as_object().into_iter().flatten();
    let calls = paths.map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        let for_admins = operations.filter(|(_, operation)| operation["security"] == json!([{ ADMIN: [] }]));
        let named = for_admins.filter_map(|(method, operation)| {
            let name = operation["operationId"].as_str().unwrap_or_default().replace('_', "-");
            Some((method.to_uppercase().parse().ok()?, name))
        });
        (path.clone(), named.collect())
    });
    calls.collect()
}

impl Book {
    /// `None`: that is no call for admins.
    pub(crate) fn begin(&self, request: &Request) -> Option<Begun> {
        let route = request.extensions().get::<MatchedPath>()?;
        let named = self.calls.get(route.as_str())?;
        let (_, action) = named.iter().find(|(method, _)| method == request.method())?;
        let trusted = &self.state.edge.trusted_proxies;
        let address = address_of(request.extensions(), request.headers(), trusted);
        Some(Begun {
            action: action.clone(),
            target: request.uri().path().chars().take(LONGEST_TARGET).collect(),
            address: address.map(|address| address.to_string()),
            is_known: self.state.tokens.whose(request.headers()) == Whose::Admins,
        })
    }

    pub(crate) fn write_down(&self, begun: Begun, answer: &Response) {
        let Begun { action, target, address, is_known } = begun;
        let outcome = answer.extensions().get().map_or("done", |Code(code)| code).to_owned();
        let action =
            Action { id: Token::random(), at: self.state.clock.wall(), action, target, outcome, address };
        let Action { action: what, target, outcome, address, .. } = &action;
        tracing::info!(target: "lockgate::audit", action = what, %target, outcome, address, "an admin call");
        if let Some(ledger) = &self.state.ledger {
            ledger.diary().note(action.clone(), is_known);
        }
        self.state.sightings.note_action(action);
    }
}

/// The latest, the latest first, and whether they are those of all servers: those of the diary, and those of this server that are not
/// there yet.
pub(crate) async fn latest(state: &Reach) -> (Vec<ActionBody>, bool) {
    let mut latest = state.sightings.actions();
    let of_all = match &state.ledger {
        Some(ledger) => ledger.diary().latest(MAX_TOLD).await,
        None => None,
    };
    let are_of_all = of_all.is_some();
    let seen: HashSet<_> = latest.iter().map(|action| action.id).collect();
    latest.extend(of_all.unwrap_or_default().into_iter().filter(|action| !seen.contains(&action.id)));
    latest.sort_by_key(|action| Reverse(action.at));
    latest.truncate(MAX_TOLD);
    (latest.into_iter().map(ActionBody::new).collect(), are_of_all)
}
