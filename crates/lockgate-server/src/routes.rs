//! One file per kind of thing.

pub(crate) mod coupons;
pub(crate) mod health;
