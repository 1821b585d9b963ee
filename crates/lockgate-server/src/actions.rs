//! What admins did: in the log, for the dashboard, and in the [`diary`](crate::diary) if there is a ledger.
//!
//! **Promise:** every call that demands the admin token is written down with how it was answered, also when it was refused, and also
//! when its caller went away before: the contract says which those are, so no route can be forgotten. No query, header or body is.
//! **Not promised:** more than [`STRANGERS`] calls a minute of those who did not show the token, on the page and in the diary: otherwise
//! anybody could fill both with nonsense. The log has them all.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use lockgate::clock::Moment;
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

/// How many calls without the right token are written down in a minute.
const STRANGERS: usize = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// How a call ended whose caller did not wait for the answer: it may have happened.
const GONE: &str = "gone";

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
#[derive(Debug)]
pub(crate) struct Book {
    state: AppState,
    /// What the calls for admins are called, by path and method.
    calls: HashMap<String, Vec<(Method, String)>>,
    strangers: Mutex<Strangers>,
}

/// A call for admins that is under way. It is written down when it is over, however that comes about.
#[derive(Debug)]
pub(crate) struct Begun {
    book: Arc<Book>,
    action: String,
    target: String,
    address: Option<String>,
    /// Whether the admin token was shown.
    is_known: bool,
    outcome: &'static str,
}

impl Begun {
    /// It was answered.
    pub(crate) fn end(mut self, answer: &Response) {
        self.outcome = answer.extensions().get().map_or("done", |Code(code)| code);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.book.write_down(self);
    }
}

/// When those came lately who did not show the token.
#[derive(Debug, Default)]
struct Strangers(VecDeque<Moment>);

impl Strangers {
    fn is_one_too_many(&mut self, now: Moment) -> bool {
        while self.0.front().is_some_and(|first| now.since(*first) >= MINUTE) {
            self.0.pop_front();
        }
        let is_too_many = self.0.len() >= STRANGERS;
        if !is_too_many {
            self.0.push_back(now);
        }
        is_too_many
    }
}

impl Book {
    pub(crate) fn new(contract: &OpenApi, state: AppState) -> Self {
        let contract = serde_json::to_value(contract).unwrap_or_default();
        Self { state, calls: admin_calls(&contract), strangers: Mutex::default() }
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
    pub(crate) fn begin(self: &Arc<Self>, request: &Request) -> Option<Begun> {
        let route = request.extensions().get::<MatchedPath>()?;
        let named = self.calls.get(route.as_str())?;
        let (_, action) = named.iter().find(|(method, _)| method == request.method())?;
        let trusted = &self.state.edge.trusted_proxies;
        let address = address_of(request.extensions(), request.headers(), trusted);
        Some(Begun {
            book: Arc::clone(self),
            action: action.clone(),
            target: request.uri().path().chars().take(LONGEST_TARGET).collect(),
            address: address.map(|address| address.to_string()),
            is_known: self.state.tokens.whose(request.headers()) == Whose::Admins,
            outcome: GONE,
        })
    }

    fn write_down(&self, begun: &Begun) {
        let Begun { action: what, target, outcome, address, .. } = begun;
        tracing::info!(target: "lockgate::audit", action = what, %target, outcome, address, "an admin call");
        let is_too_much = || {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            strangers.is_one_too_many(self.state.clock.monotonic())
        };
        if !begun.is_known && is_too_much() {
            return;
        }
        let action = Action {
            id: Token::random(),
            at: self.state.clock.wall(),
            action: what.clone(),
            target: target.clone(),
            outcome: (*outcome).to_owned(),
            address: address.clone(),
        };
        if let Some(ledger) = &self.state.ledger {
            ledger.diary().note(action.clone());
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

#[cfg(test)]
mod tests {
    use lockgate::clock::Clock;

    use super::*;

    #[test]
    fn so_many_strangers_a_minute_and_no_more() {
        let (clock, mut strangers) = (Clock::fake(), Strangers::default());
        let mut taken = |n: usize, at: Moment| (0..n).filter(|_| !strangers.is_one_too_many(at)).count();
        assert_eq!(taken(100, clock.monotonic()), 60);
        clock.advance(MINUTE - Duration::from_nanos(1));
        assert_eq!(taken(100, clock.monotonic()), 0);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(taken(100, clock.monotonic()), 60);
    }
}
