//! The HTTP contract, without a port: every test asks the router itself.
//!
//! `cfg(test)` is always set here; written down, it tells clippy that helpers may panic as tests may.

#[cfg(test)]
mod auth;
#[cfg(test)]
mod client;
#[cfg(test)]
mod coupons;
#[cfg(test)]
mod health;
#[cfg(test)]
mod input;
