//! What browsers are told about every answer. A route that has said something about it has the last word.

use std::str::FromStr;
use std::time::Duration;

use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::watch::REQUEST_ID;

/// How long a browser may remember what it may ask.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3_600);

/// What is said of every answer.
const SAID: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

pub(super) fn add_unless_said(headers: &mut HeaderMap) {
    // The rest of an answer's headers are added later: its length, its date.
    headers.reserve(SAID.len() + 2);
    for (name, value) in SAID {
        headers.entry(name).or_insert(value);
    }
}

/// Where a page comes from, as in `https://shop.example`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl FromStr for Origin {
    type Err = &'static str;

    /// Anything else than an origin would never match what a browser sends, and nobody would know why.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const REMEDY: &str =
            "must be scheme, host and port of the page, as in https://shop.example or http://localhost:5173";
        let uri: Uri = text.parse().map_err(|_| REMEDY)?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_bare =
            uri.authority().is_some_and(|host| text.ends_with(host.as_str()) && !host.as_str().contains('@'));
        if !is_web || !is_bare || text != text.to_ascii_lowercase() {
            return Err(REMEDY);
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| REMEDY)
    }
}

/// Tokens travel in a header that scripts set, never in cookies: so no credentials.
pub(super) fn cors(origins: &[Origin]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let ours =
        ["idempotency-key", "last-event-id", "lockgate-pass", "lockgate-token"].map(HeaderName::from_static);
    let asked = [AUTHORIZATION, CONTENT_TYPE, REQUEST_ID].into_iter().chain(ours);
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins.iter().map(|Origin(origin)| origin.clone())))
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers(asked.collect::<Vec<_>>())
            .expose_headers([RETRY_AFTER, REQUEST_ID])
            .max_age(PREFLIGHT_AGE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_the_last_word() {
        const OWN: &str = "default-src 'self'";
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(OWN));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        add_unless_said(&mut headers);
        let values = |name: HeaderName| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(values(CONTENT_SECURITY_POLICY), [OWN]);
        assert_eq!(values(CACHE_CONTROL), ["max-age=60"]);
        assert_eq!(values(X_CONTENT_TYPE_OPTIONS), ["nosniff"]);
    }

    #[test]
    fn only_origins_are_origins() {
        for right in ["https://shop.example", "http://localhost:5173", "https://[::1]:8443"] {
            assert!(right.parse::<Origin>().is_ok(), "{right}");
        }
        for wrong in [
            "*",
            "shop.example",
            "https://shop.example/",
            "https://shop.example/a",
            "ftp://a",
            "null",
            "",
            "https://Shop",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong:?}");
        }
    }
}
