//! Lockgate over HTTP: one binary, every language.
//!
//! - [`app()`] is the whole service as a router on a [`Gate`](lockgate::Gate): testable without a port.
//! - [`Server::start`] brings it up: data folder, tokens, store, port, in this order, each failure with its remedy;
//!   [`Server::run`] serves until it is told to stop.
//!
//! ```text
//! routes/    one file per kind of thing: coupons, health
//! input      JSON bodies and ids in, or a 400 that names the field
//! problem    every error out, as RFC 9457 problem details
//! auth       who may: the admin token, the app token
//! secret     tokens that neither print nor leak by timing
//! data       the data folder: one server at a time, and the admin token's home
//! ledger     what was decided, into SQL, beside it all
//! serve      start and stop
//! ```

mod app;
mod auth;
mod data;
mod input;
mod ledger;
mod problem;
mod routes;
mod secret;
mod serve;

pub use self::app::app;
pub use self::auth::Tokens;
pub use self::ledger::LedgerView;
pub use self::secret::Secret;
pub use self::serve::{ServeConfig, Server, StartError};
