//! How long a call may take.
//!
//! The time runs until the answer begins, so it covers a body that comes drop by drop, and not a stream of events that goes on
//! after its answer has begun. A call that waits on purpose says for how long, and gets that much more.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Extension;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::alarm::Alarms;
use crate::problem::Problem;

/// What a call that waits on purpose takes: `patience.also(wait)` before it begins to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience(Arc<AtomicU64>);

impl Patience {
    /// The call may take so much longer than others.
    pub(crate) fn also(&self, wait: Duration) {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.0.store(wait, Ordering::Relaxed);
    }

    fn more(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// What that request's call will take.
    pub(super) fn of(request: &mut Request) -> Self {
        let patience = Self::default();
        request.extensions_mut().insert(patience.clone());
        patience
    }

    /// The answer, if it begins within so much time and what the call has taken besides.
    pub(super) async fn within(
        self,
        alarms: Alarms,
        limit: Duration,
        answering: impl Future<Output = Result<Response, Infallible>>,
    ) -> Response {
        let mut answering = std::pin::pin!(answering);
        let mut waited = Duration::ZERO;
        loop {
            let allowed = limit.saturating_add(self.more());
            if allowed <= waited {
                return timed_out();
            }
            tokio::select! {
                biased;
                Ok(answer) = &mut answering => return answer,
                () = alarms.after(allowed - waited) => {}
            }
            waited = allowed;
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Patience {
    type Rejection = Infallible;

    /// Without the layer there is no limit either, so any will do.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let patience = Extension::<Self>::from_request_parts(parts, state).await;
        Ok(patience.map(|Extension(patience)| patience).unwrap_or_default())
    }
}

/// Whether the call has happened is not known here: its future was dropped, and what it had sent may still arrive.
fn timed_out() -> Response {
    let detail = "The request was not there, or not answered, in time. If it was whole, it may or may not have happened: \
                  ask again to find out.";
    let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "It took too long", detail);
    // The rest of a body may still be on its way, where the next request ought to be.
    let headers =
        [(CONNECTION, HeaderValue::from_static("close")), (RETRY_AFTER, HeaderValue::from_static("1"))];
    (headers, problem).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::{Next, from_fn};
    use axum::routing::get;
    use futures_util::FutureExt as _;
    use tower::ServiceExt as _;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    async fn slow(patience: Patience) -> &'static str {
        tokio::time::sleep(Duration::from_secs(1)).await;
        patience.also(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_secs(80)).await;
        "at last"
    }

    async fn too_slow(_: Patience) {
        std::future::pending::<()>().await;
    }

    async fn status(path: &str) -> StatusCode {
        let router = Router::new().route("/slow", get(slow)).route("/never", get(too_slow));
        let router = router.layer(from_fn(async |mut request: Request, next: Next| {
            Patience::of(&mut request).within(Alarms::default(), LIMIT, next.run(request).map(Ok)).await
        }));
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_in_its_time_and_one_that_waits_on_purpose_gets_more() {
        assert_eq!(status("/never").await, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(status("/slow").await, StatusCode::OK);
    }
}
