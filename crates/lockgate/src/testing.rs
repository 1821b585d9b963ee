//! Tools for the truth (feature `testing`).

pub mod conformance;
