//! Tools for the truth (feature `testing`).
//!
//! | tool | what it is for |
//! | --- | --- |
//! | [`conformance`] | what every store must do, one test per operation |
//! | [`Clock::fake`](crate::clock::Clock::fake) | time that passes when the test says so |
//! | [`breakable`] | a store that breaks on demand |
//! | [`history`] | writes down what processes asked and were told, and judges it without knowing how Lockgate works |
//! | [`services`] | real Redis, Sentinel, Cluster, PostgreSQL and MariaDB as child processes |
//! | [`proxy`] | a network that fails on demand |
//! | [`eventually()`] | waits for a condition, not for time |

pub mod breakable;
pub mod conformance;
mod eventually;
pub mod history;
pub mod proxy;
#[cfg(unix)]
pub mod services;

pub use self::eventually::{eventually, eventually_async};
