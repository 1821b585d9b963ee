//! Tools for the truth (feature `testing`).

pub mod breakable;
pub mod conformance;
mod eventually;
pub mod history;
pub mod proxy;
pub mod services;

pub use self::eventually::{eventually, eventually_async};
