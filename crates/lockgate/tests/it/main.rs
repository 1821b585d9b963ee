//! The one integration binary of the library.
#![expect(clippy::unwrap_used, reason = "tests say what they expect by panicking")]

mod conformance;
mod five_places;
