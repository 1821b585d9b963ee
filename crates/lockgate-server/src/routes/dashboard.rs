//! The dashboard at `/`: plain files, carried in the binary.
//!
//! **Promise:** the page asks nobody but this server, and runs nothing that is not in these files: the policy that it comes with says so
//! to the browser.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;

use crate::app::AppState;

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// A new server brings new files: they are asked for again, and there are few of them.
const CACHING: HeaderValue = HeaderValue::from_static("no-cache");

struct File {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal = $file:literal $content_type:literal;)+) => {
        &[$(File {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../dashboard/", $file)),
        }),+]
    };
}

const FILES: &[File] = files! {
    "/actions.js" = "actions.js" "text/javascript; charset=utf-8";
    "/api.js" = "api.js" "text/javascript; charset=utf-8";
    "/charts.js" = "charts.js" "text/javascript; charset=utf-8";
    "/dialogs.js" = "dialogs.js" "text/javascript; charset=utf-8";
    "/dom.js" = "dom.js" "text/javascript; charset=utf-8";
    "/favicon.svg" = "favicon.svg" "image/svg+xml";
    "/format.js" = "format.js" "text/javascript; charset=utf-8";
    "/forms.js" = "forms.js" "text/javascript; charset=utf-8";
    "/history.js" = "history.js" "text/javascript; charset=utf-8";
    "/" = "index.html" "text/html; charset=utf-8";
    "/live.js" = "live.js" "text/javascript; charset=utf-8";
    "/main.js" = "main.js" "text/javascript; charset=utf-8";
    "/parts.js" = "parts.js" "text/javascript; charset=utf-8";
    "/style.css" = "style.css" "text/css; charset=utf-8";
    "/theme.js" = "theme.js" "text/javascript; charset=utf-8";
    "/views/create.js" = "views/create.js" "text/javascript; charset=utf-8";
    "/views/dead_letters.js" = "views/dead_letters.js" "text/javascript; charset=utf-8";
    "/views/ledger.js" = "views/ledger.js" "text/javascript; charset=utf-8";
    "/views/lines.js" = "views/lines.js" "text/javascript; charset=utf-8";
    "/views/locks.js" = "views/locks.js" "text/javascript; charset=utf-8";
    "/views/log.js" = "views/log.js" "text/javascript; charset=utf-8";
    "/views/overview.js" = "views/overview.js" "text/javascript; charset=utf-8";
    "/views/stock.js" = "views/stock.js" "text/javascript; charset=utf-8";
};

pub(crate) fn routes() -> Router<AppState> {
    FILES.iter().fold(Router::new(), |router, File { path, content_type, bytes }| {
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (CONTENT_SECURITY_POLICY, POLICY),
            (CACHE_CONTROL, CACHING),
        ];
        router.route(path, get(async move || (headers, *bytes)))
    })
}
