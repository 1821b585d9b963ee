//! A client that needs no port.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;
use lockgate_server::{Tokens, app};
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const ADMIN: &str = "Bearer the-admin";
pub(crate) const APP: &str = "Bearer the-app";

/// A service, and whom the client pretends to be.
pub(crate) struct Client {
    router: Router,
    pub(crate) clock: Clock,
    authorization: Option<&'static str>,
}

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
        Self { router: app(Gate::on(store), tokens, None), clock, authorization: Some(ADMIN) }
    }

    /// The same service, asked with this header.
    pub(crate) fn as_(&self, authorization: Option<&'static str>) -> Self {
        Self { router: self.router.clone(), clock: self.clock.clone(), authorization }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, Vec::new()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some("application/json"), body.to_string().into()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some("application/json"), body.to_string().into()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(authorization) = self.authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }
}

impl Answer {
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
