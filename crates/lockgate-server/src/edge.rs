//! What stands around every route: who asked, how often, how long, how large, and what is written down about it.
//!
//! | from the outside in | promise |
//! | --- | --- |
//! | [`watch`] | every answer has an `X-Request-Id`, one line in the log and one count in the metrics, none of which tells a secret |
//! | [`headers`] | no answer is sniffed, framed, cached or sent on as a referrer, unless its route says otherwise |
//! | CORS | browsers of other origins may ask only if they are named |
//! | the [book](crate::actions) | what an admin does is written down, also if it was refused |
//! | [`limit`] | nobody asks more often than allowed, and tokens cannot be guessed quickly |
//! | size | a body that is announced as too large is refused before it is read |
//! | panics | a bug in one call is a 500 for that call, and nothing else |
//! | [`patience`] | a call ends within its time, and so does a client that sends its body drop by drop |
//!
//! All of it is one layer of the router (two with CORS between them), not one for each line: a router's layer costs every
//! request several allocations, and one for every layer inside it.

mod address;
mod bounded;
mod headers;
mod limit;
mod patience;
mod watch;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use lockgate::clock::Clock;

pub use self::address::Network;
pub(crate) use self::address::address_of;
pub use self::headers::Origin;
pub use self::limit::Rate;
pub(crate) use self::patience::Patience;

use self::limit::Limiter;
use self::watch::Watchman;
use crate::actions::Book;
use crate::app::MAX_BODY_BYTES;
use crate::auth::Tokens;
use crate::problem::Problem;

/// How much is allowed to whom.
#[derive(Clone, Debug)]
pub struct Edge {
    /// How long a call may take; those that wait on purpose may take so much longer as they were asked to wait.
    pub request_timeout: Duration,
    /// How often one client address may ask; twice as often for a moment.
    pub rate_per_address: Option<Rate>,
    /// How often all who hold the same token may ask; twice as often for a moment.
    pub rate_per_token: Option<Rate>,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// Origins whose pages may ask.
    pub cors_origins: Vec<Origin>,
    /// What the rates and the durations are measured with.
    pub clock: Clock,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            rate_per_address: None,
            rate_per_token: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            clock: Clock::system(),
        }
    }
}

/// Puts all of it around the routes; to be called when they have been added.
pub(crate) fn around(router: Router, edge: &Edge, tokens: &Tokens, book: Option<Book>) -> Router {
    let door = Arc::new(Door {
        watchman: Watchman::new(edge.clock.clone()),
        limiter: Limiter::new(edge, tokens.clone()),
        request_timeout: edge.request_timeout,
        book,
    });
    let Some(cors) = headers::cors(&edge.cors_origins) else {
        return router.layer(from_fn_with_state(door, watched_and_bounded));
    };
    // The last layer is the outermost.
    let router = router.layer(from_fn_with_state(Arc::clone(&door), bounded)).layer(cors);
    router.layer(from_fn_with_state(door, watched))
}

/// What every call goes through.
#[derive(Debug)]
struct Door {
    watchman: Watchman,
    limiter: Limiter,
    request_timeout: Duration,
    book: Option<Book>,
}

async fn watched_and_bounded(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    door.watch(request, |request| door.bound(request, next)).await
}

async fn watched(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    door.watch(request, |request| next.run(request)).await
}

async fn bounded(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    door.bound(request, next).await
}

impl Door {
    /// What holds for every answer, also a refusal.
    async fn watch<F: Future<Output = Response>>(
        &self,
        request: Request,
        answering: impl FnOnce(Request) -> F,
    ) -> Response {
        let mut answer = self.watchman.watch(request, answering).await;
        headers::add_unless_said(answer.headers_mut());
        answer
    }

    /// Written down if an admin's, and bounded.
    async fn bound(&self, request: Request, next: Next) -> Response {
        let begun = self.book.as_ref().and_then(|book| book.begin(&request));
        let answer = self.answer_within_bounds(request, next).await;
        if let Some(begun) = begun {
            begun.end(&answer);
        }
        answer
    }

    /// Not too often, not too large, not too long.
    async fn answer_within_bounds(&self, mut request: Request, next: Next) -> Response {
        if let Err(refused) = self.limiter.admit(&request) {
            return refused.into_response();
        }
        if announces_too_much(request.headers()) {
            return Problem::too_large().into_response();
        }
        // What is not announced is cut off while it is read.
        DefaultBodyLimit::max(MAX_BODY_BYTES).apply(&mut request);
        let patience = Patience::of(&mut request);
        let answering = patience.within(self.request_timeout, next.run(request));
        AssertUnwindSafe(answering).catch_unwind().await.unwrap_or_else(|_| internal_error())
    }
}

/// Whoever announces too much is told so before it is sent.
fn announces_too_much(headers: &HeaderMap) -> bool {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    announced.and_then(|bytes| bytes.parse::<u64>().ok()).is_some_and(|bytes| bytes > MAX_BODY_BYTES as u64)
}

/// What it panicked about is on standard error already, and is nobody else's business.
fn internal_error() -> Response {
    tracing::error!("a call has panicked, which is a bug in Lockgate; please report it");
    let detail =
        "A bug; it is in the server's log. The call may or may not have happened: ask again to find out.";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server failed", detail).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_call_that_panics_is_a_500_with_everything_that_answers_have() {
        let router = Router::new().route("/", get(async || -> () { panic!("hunter2") }));
        let tokens = Tokens { admin: "a".parse().unwrap(), app: None };
        let router = around(router, &Edge::default(), &tokens, None);
        let answer = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 500);
        assert!(answer.headers().contains_key("x-request-id"));
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
}
