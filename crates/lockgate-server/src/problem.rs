//! Every error that leaves the server, as RFC 9457 problem details.
//!
//! `code` is stable and meant for programs, `detail` is meant for people and names the remedy. What only the log should know (the
//! [`Cause`]) goes with the answer as far as the edge, which writes it down with the request's id.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lockgate::error::{InvalidInput, StoreError};
use serde_json::{Map, Value, json};

/// An answer that is not the one that was hoped for. Boxed, so that a `Result` with it stays small.
#[derive(Debug)]
pub(crate) struct Problem(Box<Details>);

#[derive(Debug)]
struct Details {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    /// Members beyond those of the RFC, such as `opens_at`.
    more: Map<String, Value>,
    header: Option<(HeaderName, HeaderValue)>,
    cause: Option<Cause>,
}

/// What an answer that is a problem carries with it, for those who write it down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code(pub(crate) &'static str);

/// Why an operator should look at it; nothing that a client is told.
#[derive(Clone, Debug)]
pub(crate) struct Cause(pub(crate) String);

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let (detail, more) = (detail.into(), Map::new());
        Self(Box::new(Details { status, code, title, detail, more, header: None, cause: None }))
    }

    /// 400: the request cannot be understood; `field` is what to correct.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(StatusCode::BAD_REQUEST, "invalid", "The request is invalid", format!("{field}: {message}"))
            .with("errors", json!([{ "field": field, "message": message }]))
    }

    /// 401: the token is missing or wrong.
    pub(crate) fn unauthorized(detail: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A valid token is needed", detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 503: the server behind the store has changed, and it is not known yet whether something is missing.
    pub(crate) fn recovering() -> Self {
        let detail = "The store is another one than before, and it is being looked at whether it has forgotten something; \
                      nothing has changed. Try again in a moment; if it stays so, an operator runs `lockgate recover`.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "recovering", "The store is recovering", detail)
            .with_header(RETRY_AFTER, HeaderValue::from_static("3"))
    }

    /// 503: it cannot be done at this moment, and nothing has changed.
    pub(crate) fn unavailable(detail: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not at this moment", detail)
            .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// What it is, for programs.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// 413: more than is ever read.
    pub(crate) fn too_large() -> Self {
        let detail = format!("The body may have at most {} bytes.", crate::app::MAX_BODY_BYTES);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
    }

    /// 429: more often than is allowed.
    pub(crate) fn rate_limited(wait: Duration) -> Self {
        let detail = "You ask more often than is allowed, nothing has changed. Try again after the time in Retry-After.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", "Too many requests", detail).after(wait)
    }

    /// 503: another server ought to be asked.
    pub(crate) fn stopping() -> Self {
        let detail = "This server is stopping; ask another one.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "The server is stopping", detail)
            .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Says when to try again. The header knows whole seconds only.
    fn after(self, wait: Duration) -> Self {
        let (seconds, ms) =
            (wait.as_secs_f64().ceil().max(1.0), u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_secs();
        self.with("retry_after_ms", ms.into()).with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Adds a member.
    pub(crate) fn with(mut self, member: &str, value: Value) -> Self {
        self.0.more.insert(member.to_owned(), value);
        self
    }

    /// Says to the log, and to nobody else, why it came to this.
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(Cause(cause.into()));
        self
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }
}

impl Details {
    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("type".into(), format!("urn:lockgate:{}", self.code).into());
        body.insert("title".into(), self.title.into());
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("code".into(), self.code.into());
        body.insert("detail".into(), self.detail.as_str().into());
        body.extend(self.more.clone());
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self(details) = self;
        let body = Value::Object(details.body()).to_string();
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response = (details.status, [(CONTENT_TYPE, content_type)], body).into_response();
        response.extensions_mut().insert(Code(details.code));
        if let Some(cause) = details.cause {
            response.extensions_mut().insert(cause);
        }
        if let Some((name, value)) = details.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<InvalidInput> for Problem {
    fn from(why: InvalidInput) -> Self {
        Problem::invalid(why.field, why.problem)
    }
}

impl From<StoreError> for Problem {
    fn from(why: StoreError) -> Self {
        let cause = why.to_string();
        match why {
            StoreError::InvalidInput(why) => why.into(),
            StoreError::Busy { retry_after } => busy(retry_after),
            StoreError::Recovering => Problem::recovering(),
            StoreError::UnknownOutcome(_) => no_answer(
                "unknown-outcome",
                "The store did not answer: the call may or may not have happened. Ask again to find out.",
            )
            .because(cause),
            StoreError::Unavailable(_) => {
                no_answer("unavailable", "The store cannot be reached, nothing has changed. Try again.")
                    .because(cause)
            }
            _ => refused().because(cause),
        }
    }
}

fn no_answer(code: &'static str, detail: &'static str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, "The store did not answer", detail)
        .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
}

fn refused() -> Problem {
    let detail = "The store refused the call, nothing has changed; the server's log says why.";
    let (status, title) = (StatusCode::INTERNAL_SERVER_ERROR, "The store refused the call");
    Problem::new(status, "store-refused", title, detail)
}

/// Too many callers wait already.
fn busy(retry_after: Duration) -> Problem {
    let detail =
        "Too many callers wait already, nothing has changed. Try again after the time in Retry-After.";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", "Too many callers wait", detail).after(retry_after)
}
