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
//! All of it is one layer of the router, and what can be decided at once is decided before there is a future: every layer of a router
//! costs each request several allocations, and every byte that a future keeps is moved more than once.

mod address;
mod bounded;
mod headers;
mod limit;
mod patience;
mod watch;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::FutureExt as _;
use lockgate::clock::Clock;
use tower::layer::layer_fn;
use tower::{Layer as _, Service};
use tracing::Instrument as _;

pub use self::address::Network;
pub(crate) use self::address::address_of;
pub use self::headers::Origin;
pub use self::limit::Rate;
pub(crate) use self::patience::Patience;

use self::limit::Limiter;
use self::watch::Watchman;
use crate::actions::Book;
use crate::alarm::Alarms;
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
    let watchman = Arc::new(Watchman::new(edge.clock.clone()));
    let bounds = Arc::new(Bounds {
        limiter: Limiter::new(edge, tokens.clone()),
        request_timeout: edge.request_timeout,
        alarms: Alarms::default(),
        book: book.map(Arc::new),
    });
    let bounded = move |inner: Route| Bounded { bounds: Arc::clone(&bounds), inner };
    let Some(cors) = headers::cors(&edge.cors_origins) else {
        return router.layer(layer_fn(move |inner| Watched {
            watchman: Arc::clone(&watchman),
            inner: bounded(inner),
        }));
    };
    router.layer(layer_fn(move |inner| Watched {
        watchman: Arc::clone(&watchman),
        inner: cors.layer(bounded(inner)),
    }))
}

type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// What holds for every answer, also a refusal.
#[derive(Clone, Debug)]
struct Watched<S> {
    watchman: Arc<Watchman>,
    inner: S,
}

impl<S> Service<Request> for Watched<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Answering {
        let entry = self.watchman.begin(&request);
        // With the log at `info`, what the library warns of on the way carries the id, too.
        let span = tracing::info_span!("request", request_id = %entry.request_id());
        let answering = self.inner.call(request).instrument(span);
        Box::pin(async move {
            let mut answer = answering.await?;
            entry.end(&mut answer);
            headers::add_unless_said(answer.headers_mut());
            Ok(answer)
        })
    }
}

/// How much is allowed, and who writes down what admins do.
#[derive(Debug)]
struct Bounds {
    limiter: Limiter,
    request_timeout: Duration,
    alarms: Alarms,
    book: Option<Arc<Book>>,
}

/// Written down if an admin's; not too often, not too large, not too long.
#[derive(Clone, Debug)]
struct Bounded<S> {
    bounds: Arc<Bounds>,
    inner: S,
}

impl<S> Service<Request> for Bounded<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Answering {
        let begun = self.bounds.book.as_ref().and_then(|book| book.begin(&request));
        let end = move |answer: Response| {
            if let Some(begun) = begun {
                begun.end(&answer);
            }
            Ok(answer)
        };
        if let Err(refused) = self.bounds.admit(&request) {
            return Box::pin(std::future::ready(end(refused.into_response())));
        }
        let (patience, alarms) = (Patience::of(&mut request), self.bounds.alarms.clone());
        let answering = patience.within(alarms, self.bounds.request_timeout, self.inner.call(request));
        Box::pin(async move {
            let answered = AssertUnwindSafe(answering).catch_unwind().await;
            end(answered.unwrap_or_else(|_| internal_error()))
        })
    }
}

impl Bounds {
    fn admit(&self, request: &Request) -> Result<(), Problem> {
        self.limiter.admit(request)?;
        if announces_too_much(request.headers()) {
            return Err(Problem::too_large());
        }
        Ok(())
    }
}

/// Whoever announces too much is told so before it is sent.
fn announces_too_much(headers: &HeaderMap) -> bool {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    announced.and_then(|bytes| bytes.parse::<u64>().ok()).is_some_and(|bytes| bytes > MAX_BODY_BYTES as u64)
}

/// What it panicked about is on standard error already, and is nobody else's business.
fn internal_error() -> Response {
    let detail =
        "A bug; it is in the server's log. The call may or may not have happened: ask again to find out.";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server failed", detail)
        .because("a call has panicked, which is a bug in Lockgate; please report it")
        .into_response()
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
