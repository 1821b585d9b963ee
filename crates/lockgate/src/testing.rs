//! Tools for the truth (feature `testing`).

pub mod breakable;
pub mod conformance;
