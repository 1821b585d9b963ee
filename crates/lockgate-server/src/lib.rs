//! Lockgate over HTTP: one binary, every language.
//!
//! - [`app()`] is the whole service as a router on a [`Gate`](lockgate::Gate): testable without a port.
//! - [`Server::start`] brings it up: data folder, tokens, store, port, in this order, each failure with its remedy;
//!   [`Server::run`] serves until it is told to stop.
//!
//! ```text
//! routes/    one file per kind of thing: coupons, deals, holds, orders, lines, tickets, locks, …
//! edge/      around all of them: request ids, log lines, headers, rates, sizes, timeouts
//! api        what the OpenAPI description says of all of them
//! input      JSON bodies and ids in, or a 400 that names the field
//! idempotency  what is asked twice under one Idempotency-Key happens once
//! problem    every error out, as RFC 9457 problem details
//! pass       the pass of a line that a campaign demands
//! auth       who may: the admin token, the app token
//! actions    what admins did, written down
//! diary      the same in the ledger's database, for all servers
//! sightings  what the dashboard shows of the last minutes
//! secret     tokens that neither print nor leak by timing
//! data       the data folder: one server at a time, and the admin token's home
//! ledger     what was decided, into SQL, beside it all
//! metrics    what Prometheus reads
//! alarm      timers for what nearly always ends in time
//! serve/     start and stop: connections, open files, TLS, signals
//! ```

mod actions;
mod alarm;
mod api;
mod app;
mod auth;
mod data;
mod diary;
mod edge;
mod idempotency;
mod input;
mod ledger;
mod metrics;
mod pass;
mod problem;
mod routes;
mod secret;
mod serve;
mod sightings;

pub use self::app::{Service, app, openapi};
pub use self::auth::Tokens;
pub use self::edge::{Edge, Network, Origin, Rate};
pub use self::ledger::{LedgerDesk, LedgerView};
pub use self::metrics::Metrics;
pub use self::secret::Secret;
pub use self::serve::{Limits, ServeConfig, Server, StartError, Stop, TlsFiles};
