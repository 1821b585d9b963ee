//! What browsers are told about every answer. A route that has said something about it has the last word.

use std::str::FromStr;
use std::time::Duration;

use axum::Router;
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use super::watch::REQUEST_ID;

/// How long a browser may remember what it may ask.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3_600);

pub(super) fn around(router: Router) -> Router {
    let unless_said = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
    };
    router
        .layer(unless_said(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(unless_said(REFERRER_POLICY, "no-referrer"))
        .layer(unless_said(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"))
        .layer(unless_said(CACHE_CONTROL, "no-store"))
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
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_route_has_the_last_word() {
        const OWN: &str = "default-src 'self'";
        let page = async || ([(CONTENT_SECURITY_POLICY, OWN), (CACHE_CONTROL, "max-age=60")], "page");
        let router = around(Router::new().route("/", get(page)));
        let answer = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        let values = |name: HeaderName| answer.headers().get_all(name).iter().collect::<Vec<_>>();
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
