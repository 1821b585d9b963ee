//! The one integration binary of the library.

mod conformance;
mod five_places;
