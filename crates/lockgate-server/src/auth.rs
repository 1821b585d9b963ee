//! Who may do what: an admin sets up, an app asks.
//!
//! | token set | presented | admin calls | app calls |
//! | --- | --- | --- | --- |
//! | admin only | none | 401 | yes (loopback only: see `serve`) |
//! | admin only | admin | yes | yes |
//! | both | none | 401 | 401 |
//! | both | app | 401 | yes |
//! | both | admin | yes | yes |
//! | any | a wrong one | 401 | 401 |

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::app::AppState;
use crate::problem::Problem;
use crate::secret::Secret;

/// The tokens that the server accepts.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// For admin calls.
    pub admin: Secret,
    /// For app calls, once it is set.
    pub app: Option<Secret>,
}

/// Whose token a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It shows none.
    Nobodys,
    Admins,
    Apps,
    Wrong,
}

impl Tokens {
    pub(crate) fn whose(&self, headers: &HeaderMap) -> Whose {
        let Some(token) = presented(headers) else { return Whose::Nobodys };
        // Both are compared, so that the time taken does not tell which one was nearly right.
        let is_app = self.app.as_ref().is_some_and(|app| app.is(token));
        match (self.admin.is(token), is_app) {
            (true, _) => Whose::Admins,
            (false, true) => Whose::Apps,
            (false, false) => Whose::Wrong,
        }
    }
}

/// Proof that the request carries the admin token.
pub(crate) struct Admin;

/// Proof that the request may make app calls.
pub(crate) struct App;

impl FromRequestParts<AppState> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        match state.tokens.whose(&parts.headers) {
            Whose::Admins => Ok(Admin),
            _ => Err(Problem::unauthorized("Send the admin token: `Authorization: Bearer <admin token>`.")),
        }
    }
}

impl FromRequestParts<AppState> for App {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let may = match state.tokens.whose(&parts.headers) {
            Whose::Nobodys => state.tokens.app.is_none(),
            Whose::Admins | Whose::Apps => true,
            Whose::Wrong => false,
        };
        may.then_some(App)
            .ok_or_else(|| Problem::unauthorized("Send the app token: `Authorization: Bearer <app token>`."))
    }
}

/// What the request presents: an unreadable or foreign `Authorization` header is a wrong token, not a missing one.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?;
    let (scheme, token) = header.to_str().ok().and_then(|value| value.split_once(' ')).unwrap_or_default();
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" })
}
