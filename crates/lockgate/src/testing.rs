//! Tools for the truth.
