//! One line in the log and one count in the metrics per request, and a name by which to find it again.
//!
//! What is written down is the method, the *template* of the route (`/v1/coupons/{id}`), the status, the duration and the
//! request's id. Never the path or the query, which name users and may carry tokens, and never a header.

use std::fmt;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use lockgate::clock::{Clock, Moment};
use tracing::Instrument as _;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ones would fill the log for whoever sends them.
const LONGEST_REQUEST_ID: usize = 64;

pub(super) async fn watch(State(clock): State<Clock>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let mut entry = Entry::new(clock, &request, id.clone());
    // At the level of errors, so that every warning from below carries the id, whatever else is logged.
    let span = tracing::error_span!("request", request_id = %entry.request_id);
    let mut answer = next.run(request).instrument(span).await;
    entry.status = Some(answer.status());
    answer.headers_mut().insert(REQUEST_ID, id);
    answer
}

/// The client's, if it can do no harm in a log; otherwise a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|given| is_sane(given.as_bytes()));
    given.cloned().unwrap_or_else(|| {
        let mut bytes = [0_u8; 16];
        // Without randomness ids repeat, which is no reason not to answer.
        let _ = getrandom::fill(&mut bytes);
        let id = format!("{:032x}", u128::from_be_bytes(bytes));
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
    })
}

fn is_sane(id: &[u8]) -> bool {
    let is_harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=LONGEST_REQUEST_ID).contains(&id.len()) && id.iter().all(is_harmless)
}

/// What will be written down when the request is over, however it ends: an entry that is dropped without a status is that of a
/// client that has gone away.
struct Entry {
    clock: Clock,
    began: Moment,
    method: &'static str,
    route: String,
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
    fn new(clock: Clock, request: &Request, request_id: HeaderValue) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        let route = route.map_or("other", MatchedPath::as_str).to_owned();
        let method = bounded_method(request.method());
        Self { began: clock.monotonic(), clock, method, route, request_id: Shown(request_id), status: None }
    }

    fn count(&self, took: Duration) {
        let status = self.status.map_or_else(|| "gone".to_owned(), |status| status.as_str().to_owned());
        let (method, route) = (self.method, self.route.clone());
        metrics::counter!("lockgate_http_requests_total", "method" => method, "route" => route.clone(), "status" => status)
            .increment(1);
        metrics::histogram!("lockgate_http_request_seconds", "method" => method, "route" => route)
            .record(took);
    }

    fn log(&self, took: Duration) {
        let Self { method, route, request_id, .. } = self;
        let status = self.status.map_or(0, |status| status.as_u16());
        let ms = took.as_secs_f64() * 1_000.0;
        // Probes come every few seconds from everywhere.
        if matches!(route.as_str(), "/healthz" | "/readyz" | "/metrics") {
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
        let took = self.clock.monotonic().since(self.began);
        self.count(took);
        self.log(took);
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
        let id_of = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(given).unwrap());
            request_id(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(id_of("order-4711_a.b"), "order-4711_a.b");
        for bad in ["", "a b", "a\"b", "{a}", &"x".repeat(65)] {
            assert_eq!(id_of(bad).len(), 32, "{bad:?}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
