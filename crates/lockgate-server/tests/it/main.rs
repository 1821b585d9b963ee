//! The HTTP contract, without a port: every test asks the router itself.
#![expect(clippy::unwrap_used, reason = "tests say what they expect by panicking")]

mod auth;
mod client;
mod coupons;
mod health;
mod input;
