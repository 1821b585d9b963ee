//! One line in the log and one count in the metrics per request, and a name by which to find it again.
//!
//! What is written down is the method, the *template* of the route (`/v1/coupons/{id}`), the status, the duration and the
//! request's id. Never the path or the query, which name users and may carry tokens, and never a header.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use lockgate::clock::{Clock, Moment};
use metrics::{Counter, Histogram};
use tracing::Instrument as _;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ones would fill the log for whoever sends them.
const LONGEST_REQUEST_ID: usize = 64;

/// Watches over requests. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Watchman {
    clock: Clock,
    /// What tells this process's requests from those of others.
    process: u64,
    requests: Arc<AtomicU64>,
    counts: Arc<Counts>,
}

impl Watchman {
    pub(super) fn new(clock: Clock) -> Self {
        let mut process = [0_u8; 8];
        // Without randomness the ids of several processes are alike, which is no reason not to answer.
        let _ = getrandom::fill(&mut process);
        let process = u64::from_be_bytes(process);
        Self { clock, process, requests: Arc::default(), counts: Arc::default() }
    }

    pub(super) async fn watch<F: Future<Output = Response>>(
        &self,
        request: Request,
        answering: impl FnOnce(Request) -> F,
    ) -> Response {
        let id = self.request_id(request.headers());
        let mut entry = Entry::new(self.clone(), &request, id.clone());
        // At the level of errors, so that every warning from below carries the id, whatever else is logged.
        let span = tracing::error_span!("request", request_id = %entry.request_id);
        let mut answer = answering(request).instrument(span).await;
        entry.status = Some(answer.status());
        answer.headers_mut().insert(REQUEST_ID, id);
        answer
    }

    /// The client's, if it can do no harm in a log; otherwise a new one.
    fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get(REQUEST_ID).filter(|given| is_sane(given.as_bytes()));
        given.cloned().unwrap_or_else(|| {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let id = format!("{:016x}{number:016x}", self.process);
            HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
        })
    }
}

fn is_sane(id: &[u8]) -> bool {
    let is_harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=LONGEST_REQUEST_ID).contains(&id.len()) && id.iter().all(is_harmless)
}

/// What will be written down when the request is over, however it ends: an entry that is dropped without a status is that of a
/// client that has gone away.
struct Entry {
    watchman: Watchman,
    began: Moment,
    method: &'static str,
    route: Option<MatchedPath>,
    request_id: Shown,
    status: Option<StatusCode>,
}

struct Shown(HeaderValue);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or("none"))
    }
}

impl Entry {
    fn new(watchman: Watchman, request: &Request, request_id: HeaderValue) -> Self {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let method = bounded_method(request.method());
        let (began, request_id) = (watchman.clock.monotonic(), Shown(request_id));
        Self { watchman, began, method, route, request_id, status: None }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("other", MatchedPath::as_str)
    }

    fn log(&self, took: Duration) {
        let (Self { method, request_id, .. }, route) = (self, self.route());
        let status = self.status.map_or(0, |status| status.as_u16());
        let ms = took.as_secs_f64() * 1_000.0;
        // Probes come every few seconds from everywhere.
        if matches!(route, "/healthz" | "/readyz" | "/metrics") {
            tracing::debug!(method, route, status, ms, %request_id, "answered");
        } else if self.status.is_none() {
            tracing::info!(method, route, ms, %request_id, "the client has gone away");
        } else {
            tracing::info!(method, route, status, ms, %request_id, "answered");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let took = self.watchman.clock.monotonic().since(self.began);
        let kind = Kind { method: self.method, status: self.status };
        self.watchman.counts.count(self.route(), kind, took);
        self.log(took);
    }
}

/// What is counted together, of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    method: &'static str,
    /// `None`: the client has gone away.
    status: Option<StatusCode>,
}

/// The metrics of requests, each looked up once: to name one by its labels takes several allocations.
#[derive(Debug, Default)]
struct Counts {
    by_route: RwLock<HashMap<String, Vec<Count>>>,
}

struct Count {
    kind: Kind,
    requests: Counter,
    seconds: Histogram,
}

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Count").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Counts {
    fn count(&self, route: &str, kind: Kind, took: Duration) {
        if self.count_if_known(route, kind, took) {
            return;
        }
        self.add(route, kind);
        self.count_if_known(route, kind, took);
    }

    fn count_if_known(&self, route: &str, kind: Kind, took: Duration) -> bool {
        let by_route = self.by_route.read().unwrap_or_else(PoisonError::into_inner);
        let counts = by_route.get(route).into_iter().flatten();
        let Some(count) = counts.into_iter().find(|count| count.kind == kind) else { return false };
        count.requests.increment(1);
        count.seconds.record(took);
        true
    }

    /// Whoever comes second adds the same metrics again, which does no harm.
    fn add(&self, route: &str, kind: Kind) {
        let Kind { method, status } = kind;
        let (route, status) =
            (route.to_owned(), status.map_or("gone".to_owned(), |status| status.as_str().to_owned()));
        let requests = metrics::counter!("lockgate_http_requests_total", "method" => method, "route" => route.clone(), "status" => status);
        let seconds = metrics::histogram!("lockgate_http_request_seconds", "method" => method, "route" => route.clone());
        let mut by_route = self.by_route.write().unwrap_or_else(PoisonError::into_inner);
        by_route.entry(route).or_default().push(Count { kind, requests, seconds });
    }
}

/// Clients may invent methods; the metrics must not grow by them.
fn bounded_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_if_it_can_do_no_harm_and_made_otherwise() {
        let watchman = Watchman::new(Clock::fake());
        let id_of = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(given).unwrap());
            watchman.request_id(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(id_of("order-4711_a.b"), "order-4711_a.b");
        for bad in ["", "a b", "a\"b", "{a}", &"x".repeat(65)] {
            assert_eq!(id_of(bad).len(), 32, "{bad:?}");
        }
        assert_ne!(watchman.request_id(&HeaderMap::new()), watchman.request_id(&HeaderMap::new()));
        let elsewhere = Watchman::new(Clock::fake());
        assert_ne!(
            Watchman::new(Clock::fake()).request_id(&HeaderMap::new()),
            elsewhere.request_id(&HeaderMap::new())
        );
    }
}
