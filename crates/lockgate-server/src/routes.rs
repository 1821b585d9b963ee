//! One file per kind of thing.

pub(crate) mod campaigns;
pub(crate) mod coupons;
pub(crate) mod dashboard;
pub(crate) mod dead_letters;
pub(crate) mod deals;
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod holds;
pub(crate) mod jwks;
pub(crate) mod lines;
pub(crate) mod locks;
pub(crate) mod metrics;
pub(crate) mod orders;
pub(crate) mod overview;
pub(crate) mod skus;
pub(crate) mod tickets;
