//! A client that needs no port.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::config::Config;
use lockgate::key::Name;
use lockgate::line::pass::{PassClaims, PassKeys};
use lockgate::store::memory::MemoryStore;
use lockgate::store::{Store, Token};
use lockgate_server::{Service, Tokens, app};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) const ADMIN: &str = "Bearer the-admin";
pub(crate) const APP: &str = "Bearer the-app";

/// A service, and whom the client pretends to be.
#[derive(Clone)]
pub(crate) struct Client {
    router: Router,
    pub(crate) clock: Clock,
    pub(crate) passes: Arc<PassKeys>,
    pub(crate) closing: CancellationToken,
    authorization: Option<&'static str>,
    headers: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Client {
    /// A fresh embedded service, asked by the admin; no app token is set.
    pub(crate) fn admin() -> Self {
        let clock = Clock::fake();
        Self::on(Arc::new(MemoryStore::new(clock.clone())), clock, None)
    }

    /// The same with an app token set.
    pub(crate) fn admin_with_app_token() -> Self {
        let clock = Clock::fake();
        Self::on(Arc::new(MemoryStore::new(clock.clone())), clock, Some("the-app"))
    }

    pub(crate) fn on(store: Arc<dyn Store>, clock: Clock, app_token: Option<&str>) -> Self {
        let tokens = Tokens {
            admin: "the-admin".parse().unwrap(),
            app: app_token.map(|token| token.parse().unwrap()),
        };
        let mut config = Config::default();
        config.clock = clock.clone();
        Self::of(Service::new(Gate::on_with(store, &config), tokens), clock)
    }

    /// A server on the Redis at `url`, by the machine's clock.
    pub(crate) async fn on_redis(url: &str, config: &Config) -> Self {
        let tokens = Tokens { admin: "the-admin".parse().unwrap(), app: None };
        Self::of(Service::new(Gate::open_with(url, config).await.unwrap(), tokens), config.clock.clone())
    }

    pub(crate) fn of(mut service: Service, clock: Clock) -> Self {
        (service.clock, service.edge.clock) = (clock.clone(), clock.clone());
        let (passes, closing) = (Arc::clone(&service.passes), service.closing.clone());
        let (authorization, headers) = (Some(ADMIN), Vec::new());
        Self { router: app(service), clock, passes, closing, authorization, headers }
    }

    /// The same service, asked with this header.
    pub(crate) fn as_(&self, authorization: Option<&'static str>) -> Self {
        Self { authorization, ..self.clone() }
    }

    /// The service itself, to be put behind a port.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// The same, with one header more.
    pub(crate) fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut with = self.clone();
        with.headers.push((name, value.into()));
        with
    }

    /// What it sends in this header.
    pub(crate) fn header(&self, name: &str) -> String {
        self.headers.iter().find(|(sent, _)| *sent == name).unwrap().1.clone()
    }

    /// The same, under this key.
    pub(crate) fn keyed(&self, key: impl Into<String>) -> Self {
        self.with("Idempotency-Key", key)
    }

    /// The same, showing the pass of that admission of `user` by `line`, which lasts for a minute.
    pub(crate) fn showing(&self, user: &str, line: &str, admission: u128) -> Self {
        let (user, line) = (Name::new("user", user).unwrap(), Name::new("line", line).unwrap());
        let (now, jti) = (self.clock.wall(), Token::from_bits(admission));
        let claims = PassClaims { user: &user, line: &line, jti, until: now + Duration::from_secs(60), now };
        self.with("Lockgate-Pass", self.passes.sign(&claims).unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, Vec::new()).await
    }

    /// Something that is not JSON: status, headers, text.
    pub(crate) async fn text(&self, path: &str) -> (u16, HeaderMap, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some("application/json"), body.to_string().into()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some("application/json"), body.to_string().into()).await
    }

    /// The same with one more header.
    pub(crate) async fn post_with(&self, path: &str, (name, value): (&str, &str), body: Value) -> Answer {
        let headers = [(name, value), ("content-type", "application/json")];
        Answer::read(self.request("POST", path, &headers, body.to_string().into()).await).await
    }

    /// A POST with nothing in it.
    pub(crate) async fn act(&self, path: &str) -> Answer {
        self.send("POST", path, None, Vec::new()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, Vec::new()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Answer {
        let headers: Vec<_> =
            content_type.map(|content_type| ("content-type", content_type)).into_iter().collect();
        Answer::read(self.request(method, path, &headers, body).await).await
    }

    /// The response, with a body that is not read yet.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(authorization) = self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
    }
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Self { status: parts.status, headers: parts.headers, body }
    }

    /// Asserts that this is problem details with that status and code, and gives it back.
    #[track_caller]
    pub(crate) fn expect_problem(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status.as_u16(), self.body["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["type"], format!("urn:lockgate:{code}"));
        assert_eq!(self.body["status"], status);
        assert!(self.body["title"].is_string() && self.body["detail"].is_string(), "{}", self.body);
        self
    }

    /// Asserts that this is a 400 that names exactly that field.
    #[track_caller]
    pub(crate) fn expect_invalid(self, field: &str) -> Self {
        let answer = self.expect_problem(400, "invalid");
        assert_eq!(answer.body["errors"][0]["field"], field, "{}", answer.body);
        assert!(answer.body["errors"][0]["message"].is_string(), "{}", answer.body);
        answer
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16, body: &Value) -> Self {
        assert_eq!((self.status.as_u16(), &self.body), (status, body));
        self
    }
}
