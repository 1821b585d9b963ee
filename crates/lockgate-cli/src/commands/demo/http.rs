//! The shoppers' way to the server: real calls over few connections.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use ureq::http::{Method, Request};

use crate::commands::Failure;

/// How many calls are under way at once, and so how many connections there are for them.
const CONNECTIONS: usize = 64;

/// How many shoppers may watch their ticket at once, each over a connection of its own; the others look in now and then.
const WATCHERS: usize = 64;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often a call is made that got no answer: each of them may be made again.
const TRIES: u32 = 5;

#[derive(Debug)]
pub(super) struct Http {
    client: Client<HttpConnector, String>,
    url: String,
    token: Option<String>,
    calls: Semaphore,
    watchers: Semaphore,
}

/// What the server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Answer {
    pub(super) fn text(&self, member: &str) -> &str {
        self.body[member].as_str().unwrap_or_default()
    }
}

impl Http {
    /// With the admin token, or (`None`) as shoppers ask.
    pub(super) fn new(url: &str, token: Option<&str>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            // The server closes those that are idle for longer.
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_timer(TokioTimer::new())
            .build(connector);
        let (url, token) = (url.to_owned(), token.map(|token| format!("Bearer {token}")));
        Self { client, url, token, calls: Semaphore::new(CONNECTIONS), watchers: Semaphore::new(WATCHERS) }
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.call(Method::GET, path, None, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value, pass: Option<&str>) -> Result<Answer, Failure> {
        self.call(Method::POST, path, Some(body), pass).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.call(Method::PUT, path, Some(body), None).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.call(Method::DELETE, path, None, None).await
    }

    /// Makes a call, and makes it again when there is no answer or none at this moment.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        pass: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut last = Failure::from("was never asked");
        for attempt in 0..TRIES {
            tokio::time::sleep(Duration::from_millis(200) * attempt).await;
            let _turn = self.calls.acquire().await?;
            match tokio::time::timeout(PATIENCE, self.once(&method, path, body, pass)).await {
                Ok(Ok(answer)) if !matches!(answer.status, 429 | 503) => return Ok(answer),
                Ok(Ok(answer)) => last = answer.text("detail").into(),
                Ok(Err(why)) => last = why,
                Err(_) => last = "took too long".into(),
            }
        }
        Err(format!("{method} {}: {last}", template(path)).into())
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        pass: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        if let Some(pass) = pass {
            request = request.header("lockgate-pass", pass);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(body.map(Value::to_string).unwrap_or_default())?;
        let (parts, body) = self.client.request(request).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? };
        Ok(Answer { status: parts.status.as_u16(), body })
    }

    /// A place among those who watch, if there is one.
    pub(super) fn may_watch(&self) -> Option<SemaphorePermit<'_>> {
        self.watchers.try_acquire().ok()
    }

    /// The last that is told of a ticket, by its events; `None` when the stream ended before.
    pub(super) async fn watch(&self, path: &str) -> Result<Option<Value>, Failure> {
        let request = Request::get(format!("{}{path}/events", self.url)).body(String::new())?;
        let mut stream = self.client.request(request).await?.into_body();
        let mut text = String::new();
        while let Some(frame) = stream.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            text.push_str(&String::from_utf8_lossy(&data));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                let told: Option<Value> = data.and_then(|data| serde_json::from_str(data.trim()).ok());
                if let Some(told) = told.filter(|told| told["state"] != "waiting") {
                    return Ok(Some(told));
                }
                text = rest.to_owned();
            }
        }
        Ok(None)
    }
}

/// Paths have tickets in them, which are nobody's business.
fn template(path: &str) -> String {
    path.split('/').map(|part| if part.len() > 32 { "…" } else { part }).collect::<Vec<_>>().join("/")
}
