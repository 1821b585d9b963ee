//! The one integration binary of the library: one link, one place to look.
//!
//! `cfg(test)` is always set here; written down, it tells clippy that helpers may panic as tests may.

#[cfg(test)]
mod blocking;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod epoch;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod family;
#[cfg(test)]
mod five_places;
#[cfg(test)]
mod line;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod lock_lending;
#[cfg(test)]
mod lock_metrics;
#[cfg(test)]
mod lock_outages;
#[cfg(test)]
mod locked;
#[cfg(test)]
mod orders_across;
#[cfg(test)]
#[cfg(feature = "pass")]
mod pass;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod redis_faults;
#[cfg(test)]
mod redis_greeting;
#[cfg(test)]
mod redis_keys;
#[cfg(test)]
mod redis_lines;
#[cfg(test)]
mod services;
#[cfg(test)]
mod shop;
#[cfg(test)]
mod stock_crowd;
#[cfg(test)]
mod stock_metrics;
#[cfg(test)]
mod stock_model;
#[cfg(test)]
mod truth;
