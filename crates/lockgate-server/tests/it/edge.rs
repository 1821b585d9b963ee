//! What stands around every route, without a port: headers, request ids, rates, sizes, metrics, secrets.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::memory::MemoryStore;
use lockgate_server::{Edge, Metrics, Service, Tokens, app};
use serde_json::Value;
use tower::ServiceExt;
use tracing::field::{Field, Visit};

const ADMIN: &str = "admin-hunter2";
const APP: &str = "app-hunter2";

/// A service with both tokens, and the clock that its rates are measured with.
fn service(edge: Edge) -> Service {
    let clock = edge.clock.clone();
    let tokens = Tokens { admin: ADMIN.parse().unwrap(), app: Some(APP.parse().unwrap()) };
    let mut service = Service::new(Gate::on(Arc::new(MemoryStore::new(clock))), tokens);
    service.edge = edge;
    service
}

fn edge() -> Edge {
    Edge { clock: Clock::fake(), ..Edge::default() }
}

/// Asks from that address with these headers.
async fn ask(router: &Router, from: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let from: IpAddr = from.parse().unwrap();
    let mut request = Request::get(path).extension(ConnectInfo(SocketAddr::from((from, 4711))));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn status(router: &Router, from: &str, token: &str) -> u16 {
    let authorization = format!("Bearer {token}");
    ask(router, from, "/v1/coupons/w", &[("authorization", &authorization)]).await.status().as_u16()
}

/// How many of so many requests get through.
async fn let_through(router: &Router, from: &str, token: &str, requests: usize) -> usize {
    let mut through = 0;
    for _ in 0..requests {
        through += usize::from(status(router, from, token).await != 429);
    }
    through
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn every_answer_tells_browsers_to_keep_their_hands_off() {
    let router = app(service(edge()));
    for path in ["/healthz", "/readyz", "/v1/coupons/w", "/nothing/here", "/metrics"] {
        let answer = ask(&router, "192.0.2.1", path, &[]).await;
        let headers = answer.headers();
        assert_eq!(header(headers, "x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header(headers, "referrer-policy"), "no-referrer", "{path}");
        assert_eq!(
            header(headers, "content-security-policy"),
            "default-src 'none'; frame-ancestors 'none'",
            "{path}"
        );
        assert_eq!(header(headers, "cache-control"), "no-store", "{path}");
        assert_eq!(header(headers, "access-control-allow-origin"), "", "{path}");
    }
}

#[tokio::test]
async fn a_request_keeps_its_id_and_gets_one_if_it_has_none() {
    let router = app(service(edge()));
    let answer = ask(&router, "192.0.2.1", "/healthz", &[("x-request-id", "order-4711")]).await;
    assert_eq!(header(answer.headers(), "x-request-id"), "order-4711");
    let answer = ask(&router, "192.0.2.1", "/nothing", &[("x-request-id", "a b \" c")]).await;
    assert_eq!(header(answer.headers(), "x-request-id").len(), 32);
}

#[tokio::test]
async fn only_the_origins_that_are_named_may_ask_from_a_browser() {
    let named = Edge { cors_origins: vec!["https://shop.example".parse().unwrap()], ..edge() };
    let (closed, open) = (app(service(edge())), app(service(named)));
    for (router, origin, allowed) in [
        (&closed, "https://shop.example", ""),
        (&open, "https://shop.example", "https://shop.example"),
        (&open, "https://shop.example.evil", ""),
        (&open, "null", ""),
    ] {
        let answer = ask(router, "192.0.2.1", "/healthz", &[("origin", origin)]).await;
        assert_eq!(header(answer.headers(), "access-control-allow-origin"), allowed, "{origin}");
        assert_eq!(header(answer.headers(), "access-control-allow-credentials"), "");
    }
    let preflight = Request::options("/v1/coupons/w/issues")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,lockgate-pass,idempotency-key");
    let answer = open.oneshot(preflight.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    for name in ["authorization", "content-type", "lockgate-pass", "idempotency-key"] {
        assert!(header(answer.headers(), "access-control-allow-headers").contains(name), "{name}");
    }
}

#[tokio::test]
async fn one_address_gets_its_rate_and_others_are_not_touched() {
    let limited = Edge { rate_per_address: Some("5/s".parse().unwrap()), ..edge() };
    let clock = limited.clock.clone();
    let router = app(service(limited));
    assert_eq!(let_through(&router, "192.0.2.1", APP, 30).await, 10, "twice the rate at once");
    assert_eq!(let_through(&router, "192.0.2.2", APP, 1).await, 1);
    let refused = ask(&router, "192.0.2.1", "/v1/coupons/w", &[]).await;
    assert_eq!((refused.status().as_u16(), header(refused.headers(), "retry-after")), (429, "1"));
    let body: Value =
        serde_json::from_slice(&refused.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&body["code"], &body["type"]), (&"rate-limited".into(), &"urn:lockgate:rate-limited".into()));
    assert!(body["retry_after_ms"].as_u64().is_some_and(|ms| (1..=200).contains(&ms)), "{body}");
    assert_eq!(ask(&router, "192.0.2.1", "/healthz", &[]).await.status(), 200, "alive, for whoever asks");
    clock.advance(Duration::from_secs(1));
    assert_eq!(let_through(&router, "192.0.2.1", APP, 30).await, 5, "then its rate");
}

#[tokio::test]
async fn all_who_hold_a_token_share_its_rate() {
    let limited = Edge { rate_per_token: Some("5/s".parse().unwrap()), ..edge() };
    let router = app(service(limited));
    assert_eq!(let_through(&router, "192.0.2.1", APP, 6).await, 6);
    assert_eq!(let_through(&router, "192.0.2.2", APP, 6).await, 4);
    assert_eq!(let_through(&router, "192.0.2.2", ADMIN, 6).await, 6, "another token, another rate");
}

#[tokio::test]
async fn guessing_tokens_does_not_pay_even_if_the_guess_is_right() {
    let edge = edge();
    let clock = edge.clock.clone();
    let router = app(service(edge));
    let mut refused = 0;
    for guess in 0..100 {
        refused += usize::from(status(&router, "192.0.2.1", &format!("guess-{guess}")).await == 429);
    }
    assert_eq!(refused, 80, "each guess has another token, and all count for their address");
    assert_eq!(
        status(&router, "192.0.2.1", ADMIN).await,
        429,
        "whoever has guessed too often does not learn that it was right"
    );
    assert_eq!(status(&router, "192.0.2.2", ADMIN).await, 404, "others are not touched");
    clock.advance(Duration::from_secs(1));
    assert_eq!(status(&router, "192.0.2.1", ADMIN).await, 404, "and it is forgiven");
}

#[tokio::test]
async fn a_forwarded_address_counts_only_from_a_trusted_proxy() {
    let rate = Some("1/s".parse().unwrap());
    let trusting =
        Edge { rate_per_address: rate, trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()], ..edge() };
    let router = app(service(trusting));
    for (peer, expected) in [("192.0.2.1", 2), ("10.0.0.1", 20)] {
        let mut through = 0;
        for client in 0..20 {
            let forwarded = format!("6.6.6.6, 198.51.100.{client}");
            let answer = ask(&router, peer, "/v1/coupons/w", &[("x-forwarded-for", &forwarded)]).await;
            through += usize::from(answer.status() != 429);
        }
        assert_eq!(through, expected, "by way of {peer}");
    }
}

#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_unread() {
    let router = app(service(edge()));
    let unread = Body::from_stream(futures_util::stream::poll_fn(
        |_| -> std::task::Poll<Option<Result<Vec<u8>, std::io::Error>>> { panic!("it was read") },
    ));
    let request = Request::post("/v1/coupons/w/issues")
        .header("authorization", format!("Bearer {APP}"))
        .header("content-type", "application/json")
        .header("content-length", "1073741824");
    let answer = router.oneshot(request.body(unread).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 413);
    assert_eq!(header(answer.headers(), "content-type"), "application/problem+json");
}

#[tokio::test]
async fn a_server_that_stops_is_not_ready() {
    let service = service(edge());
    let closing = service.closing.clone();
    let router = app(service);
    assert_eq!(ask(&router, "192.0.2.1", "/readyz", &[]).await.status(), 200);
    closing.cancel();
    let answer = ask(&router, "192.0.2.1", "/readyz", &[]).await;
    assert_eq!((answer.status().as_u16(), header(answer.headers(), "retry-after")), (503, "1"));
    let body: Value =
        serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&body["code"], &body["reasons"][0]), (&"stopping".into(), &"the server is stopping".into()));
    assert_eq!(ask(&router, "192.0.2.1", "/healthz", &[]).await.status(), 200);
}

/// Writes down everything that is logged, at every level, with every field of every event and span.
#[derive(Clone, Default)]
struct EveryWord(Arc<Mutex<String>>);

impl Visit for EveryWord {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for EveryWord {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
        self.0.lock().unwrap().push('\n');
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn neither_logs_nor_metrics_nor_debug_output_tell_secrets_or_names() {
    // For the whole process: a call site that another thread meets first would be taken for one that nobody listens to.
    let words = EveryWord::default();
    tracing::subscriber::set_global_default(words.clone()).unwrap();
    let (metrics, recorder) = Metrics::with_recorder().unwrap();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let mut service = service(edge());
    service.metrics = Some(metrics);
    let mut told = format!("{service:?}");
    let router = app(service);
    let right = [("authorization", format!("Bearer {APP}")), ("authorization", format!("Bearer {ADMIN}"))];
    let wrong =
        [("authorization", "Bearer wrong-hunter2".to_owned()), ("lockgate-token", "lock-hunter2".to_owned())];
    for (name, value) in right.iter().chain(&wrong) {
        for path in [
            "/v1/coupons/alice-the-user",
            "/v1/coupons/w/issues?token=query-hunter2",
            "/secret-hunter2",
            "/metrics",
        ] {
            let _ = ask(&router, "198.51.100.77", path, &[(name, value)]).await;
        }
    }
    for guess in 0..40 {
        let _ = status(&router, "198.51.100.77", &format!("guess-{guess}-hunter2")).await;
    }
    // The last word is the scrape itself, with everything before it.
    let authorization = format!("Bearer {APP}");
    let scrape = ask(&router, "192.0.2.9", "/metrics", &[("authorization", &authorization)]).await;
    assert_eq!(scrape.status(), 200);
    let scrape = String::from_utf8(scrape.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(scrape.contains("lockgate_http_rate_limited_total{by=\"wrong-token\"}"), "{scrape}");
    assert!(scrape.contains("route=\"/v1/coupons/{id}\"") && scrape.contains("route=\"other\""), "{scrape}");
    assert!(
        scrape.contains("lockgate_http_request_seconds_bucket{") && scrape.contains("le=\"0.001\""),
        "{scrape}"
    );
    told.push_str(&words.0.lock().unwrap());
    assert!(told.contains("route=\"/v1/coupons/{id}\"") && told.contains("request_id="), "{told}");
    told.push_str(&scrape);
    for secret in ["hunter2", "alice", "198.51.100.77"] {
        assert!(!told.contains(secret), "{secret} is in {told}");
    }
}

#[tokio::test]
async fn invented_methods_and_paths_do_not_make_new_metrics() {
    let (metrics, recorder) = Metrics::with_recorder().unwrap();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let router = app(service(edge()));
    for number in 0..200 {
        let request = Request::builder().method(format!("M{number}").as_str()).uri(format!("/p/{number}"));
        let _ = router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
    }
    let counted: Vec<_> = metrics
        .render()
        .lines()
        .filter(|line| line.starts_with("lockgate_http_requests_total{"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        counted,
        ["lockgate_http_requests_total{method=\"other\",route=\"other\",status=\"404\"} 200"]
    );
}

#[tokio::test]
async fn metrics_need_the_app_token_once_there_is_one() {
    let (metrics, _recorder) = Metrics::with_recorder().unwrap();
    let mut service = service(edge());
    service.metrics = Some(metrics);
    let router = app(service);
    assert_eq!(ask(&router, "192.0.2.1", "/metrics", &[]).await.status(), 401);
    for token in [APP, ADMIN] {
        let authorization = format!("Bearer {token}");
        assert_eq!(
            ask(&router, "192.0.2.1", "/metrics", &[("authorization", &authorization)]).await.status(),
            200
        );
    }
}
