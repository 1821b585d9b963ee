//! What stands around every route: who asked, how often, how long, how large, and what is written down about it.
//!
//! | from the outside in | promise |
//! | --- | --- |
//! | [`watch`] | every answer has an `X-Request-Id`, one line in the log and one count in the metrics, none of which tells a secret |
//! | [`headers`] | no answer is sniffed, framed, cached or sent on as a referrer, unless its route says otherwise |
//! | CORS | browsers of other origins may ask only if they are named |
//! | [`limit`] | nobody asks more often than allowed, and tokens cannot be guessed quickly |
//! | size | a body that is announced as too large is refused before it is read |
//! | panics | a bug in one call is a 500 for that call, and nothing else |
//! | [`patience`] | a call ends within its time, and so does a client that sends its body drop by drop |

mod address;
mod bounded;
mod headers;
mod limit;
mod patience;
mod watch;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use lockgate::clock::Clock;
use tower_http::catch_panic::CatchPanicLayer;

pub use self::address::Network;
pub(crate) use self::address::address_of;
pub use self::headers::Origin;
pub use self::limit::Rate;
pub(crate) use self::patience::Patience;

use self::limit::Limiter;
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
pub(crate) fn around(router: Router, edge: &Edge, tokens: &Tokens) -> Router {
    let limiter = Arc::new(Limiter::new(edge, tokens.clone()));
    // The last layer is the outermost.
    let router = router
        .layer(from_fn_with_state(edge.request_timeout, patience::within))
        .layer(CatchPanicLayer::custom(internal_error))
        .layer(from_fn(refuse_too_large))
        .layer(from_fn_with_state(limiter, limit::count));
    let router = match headers::cors(&edge.cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    headers::around(router).layer(from_fn_with_state(edge.clock.clone(), watch::watch))
}

/// Whoever announces too much is told so before it is sent. What is not announced is cut off while it is read.
async fn refuse_too_large(request: Request, next: Next) -> Response {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match announced.map(str::parse::<u64>) {
        Some(Ok(bytes)) if bytes > MAX_BODY_BYTES as u64 => Problem::too_large().into_response(),
        _ => next.run(request).await,
    }
}

/// What it panicked about is on standard error already, and is nobody else's business.
fn internal_error(_: Box<dyn Any + Send>) -> Response {
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
        let router = around(router, &Edge::default(), &tokens);
        let answer = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 500);
        assert!(answer.headers().contains_key("x-request-id"));
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
}
