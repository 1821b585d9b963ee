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

use crate::problem::Cause;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ones would fill the log for whoever sends them.
const LONGEST_REQUEST_ID: usize = 64;

/// Watches over requests.
#[derive(Debug)]
pub(super) struct Watchman {
    clock: Clock,
    /// What tells this process's requests from those of others.
    process: u64,
    requests: AtomicU64,
    counts: Counts,
}

impl Watchman {
    pub(super) fn new(clock: Clock) -> Self {
        let mut process = [0_u8; 8];
        // Without randomness the ids of several processes are alike, which is no reason not to answer.
        let _ = getrandom::fill(&mut process);
        let process = u64::from_be_bytes(process);
        Self { clock, process, requests: AtomicU64::default(), counts: Counts::default() }
    }

    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>, request: &Request) -> Entry {
        Entry {
            began: self.clock.monotonic(),
            method: bounded_method(request.method()),
            route: request.extensions().get::<MatchedPath>().cloned(),
            request_id: self.request_id(request.headers()),
            status: None,
            cause: None,
            watchman: Arc::clone(self),
        }
    }

    /// The client's, if it can do no harm in a log; otherwise a new one.
    fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get(REQUEST_ID).filter(|given| is_sane(given.as_bytes()));
        given.cloned().unwrap_or_else(|| {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let id = hexadecimal(u128::from(self.process) << 64 | u128::from(number));
            HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("none"))
        })
    }
}

/// All digits of it, without the machinery of `format!`: every request has an id.
fn hexadecimal(number: u128) -> [u8; 32] {
    std::array::from_fn(|place| b"0123456789abcdef"[(number >> (124 - 4 * place)) as usize & 15])
}

fn is_sane(id: &[u8]) -> bool {
    let is_harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=LONGEST_REQUEST_ID).contains(&id.len()) && id.iter().all(is_harmless)
}

/// What will be written down when the request is over, however it ends: an entry that is dropped without a status is that of a
/// client that has gone away.
pub(super) struct Entry {
    watchman: Arc<Watchman>,
    began: Moment,
    method: &'static str,
    route: Option<MatchedPath>,
    request_id: HeaderValue,
    status: Option<StatusCode>,
    cause: Option<Cause>,
}

impl Entry {
    pub(super) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or("none")
    }

    /// It was answered.
    pub(super) fn end(mut self, answer: &mut Response) {
        self.status = Some(answer.status());
        self.cause = answer.extensions_mut().remove();
        answer.headers_mut().insert(REQUEST_ID, self.request_id.clone());
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("other", MatchedPath::as_str)
    }

    fn log(&self, took: Duration) {
        let (method, route, request_id) = (self.method, self.route(), self.request_id());
        // To the microsecond: more digits would only be noise.
        let ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        let Some(status) = self.status else {
            tracing::info!(method, route, ms, request_id, "the client has gone away");
            return;
        };
        let is_bug = status == StatusCode::INTERNAL_SERVER_ERROR;
        let status = status.as_u16();
        match &self.cause {
            Some(Cause(why)) if is_bug => {
                tracing::error!(method, route, status, ms, request_id, why, "a request failed");
            }
            Some(Cause(why)) => {
                tracing::warn!(method, route, status, ms, request_id, why, "a request failed");
            }
            // Probes come every few seconds from everywhere.
            None if matches!(route, "/healthz" | "/readyz" | "/metrics") => {
                tracing::debug!(method, route, status, ms, request_id, "answered");
            }
            None => tracing::info!(method, route, status, ms, request_id, "answered"),
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
    fn all_digits_are_there() {
        for number in [0, 1, 0x0123_4567_89ab_cdef << 64 | 0xfedc_ba98_7654_3210, u128::MAX] {
            assert_eq!(hexadecimal(number), *format!("{number:032x}").as_bytes());
        }
    }

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
