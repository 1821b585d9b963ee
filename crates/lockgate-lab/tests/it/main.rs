//! The one integration binary of the lab.
//!
//! `cfg(test)` is always set here; written down, it tells clippy that helpers may panic as tests may.

#[cfg(test)]
mod cost;
#[cfg(test)]
mod databases;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fencing;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod ledger;
