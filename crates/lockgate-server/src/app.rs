//! The whole service as one router.

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::line::pass::PassKeys;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

use crate::actions;
use crate::api;
use crate::auth::Tokens;
use crate::edge::{self, Edge};
use crate::ledger::LedgerView;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::routes::campaigns::What;
use crate::routes::overview::Watchtower;
use crate::routes::{
    coupons, dashboard, dead_letters, deals, docs, health, holds, jwks, lines, locks, metrics, orders,
    overview, skus, tickets,
};
use crate::sightings::Sightings;

pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// What a service stands on.
#[derive(Clone, Debug)]
pub struct Service {
    /// What decides.
    pub gate: Gate,
    /// Who may ask.
    pub tokens: Tokens,
    /// The ledger, if there is one: see [`LedgerDesk`](crate::LedgerDesk).
    pub ledger: Option<LedgerView>,
    /// What signs the passes of lines, and tells them from forged ones.
    pub passes: Arc<PassKeys>,
    /// What time it is: the store's clock if it is in this process, otherwise one that agrees with it.
    pub clock: Clock,
    /// Cancelled when the server stops: streams that would go on for ever end then.
    pub closing: CancellationToken,
    /// How much is allowed to whom.
    pub edge: Edge,
    /// What `/metrics` tells, if there is anything to tell.
    pub metrics: Option<Metrics>,
}

impl Service {
    /// On `gate`, for whoever holds `tokens`; without a ledger, with a new key for passes.
    #[must_use]
    pub fn new(gate: Gate, tokens: Tokens) -> Self {
        let (passes, closing) = (Arc::new(PassKeys::generate()), CancellationToken::new());
        Self {
            gate,
            tokens,
            ledger: None,
            passes,
            clock: Clock::system(),
            closing,
            edge: Edge::default(),
            metrics: None,
        }
    }
}

/// What every route can reach. Cheap to clone.
pub(crate) type AppState = Arc<Reach>;

/// The service, and what it has seen.
#[derive(Debug)]
pub(crate) struct Reach {
    service: Service,
    pub(crate) sightings: Sightings,
    pub(crate) watchtower: Watchtower,
}

impl Deref for Reach {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl Reach {
    /// Somebody does not get something: that is counted, if there is such a thing.
    pub(crate) fn note_refusal(&self, what: What, id: &str, problem: &Problem) {
        if problem.status() != StatusCode::NOT_FOUND {
            self.sightings.note_refusal(what.word(), id, problem.code());
        }
    }

    /// The same, of one thing.
    pub(crate) fn refuses(&self, what: What, id: &str, problem: Problem) -> Problem {
        self.note_refusal(what, id, &problem);
        problem
    }
}

/// All calls, with what the contract says of them.
fn calls() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(api::about())
        .merge(coupons::routes())
        .merge(deals::routes())
        .merge(holds::routes())
        .merge(skus::routes())
        .merge(orders::routes())
        .merge(locks::routes())
        .merge(lines::routes())
        .merge(tickets::routes())
        .merge(jwks::routes())
        .merge(dead_letters::routes())
        .merge(overview::routes())
        .merge(health::routes())
        .merge(metrics::routes())
}

/// The contract, in OpenAPI 3.1.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    calls().into_openapi()
}

/// The service as a router.
pub fn app(service: Service) -> Router {
    let (router, contract) = calls().split_for_parts();
    let (edge, tokens) = (service.edge.clone(), service.tokens.clone());
    let (sightings, watchtower) = (Sightings::default(), Watchtower::default());
    let state = Arc::new(Reach { service, sightings, watchtower });
    let book = actions::Book::new(&contract, Arc::clone(&state));
    let router = router
        .merge(docs::routes(contract))
        .merge(dashboard::routes())
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
        .with_state(state);
    edge::around(router, &edge, &tokens, Some(book))
}
