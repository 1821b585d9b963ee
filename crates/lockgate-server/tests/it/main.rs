//! The HTTP contract, without a port: every test asks the router itself. Only what is about connections is on one (`port`).
//!
//! `cfg(test)` is always set here; written down, it tells clippy that helpers may panic as tests may.

#[cfg(test)]
mod auth;
#[cfg(test)]
mod client;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod coupons;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod dead_letters;
#[cfg(test)]
mod deals;
#[cfg(test)]
mod diary;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod events;
#[cfg(test)]
mod every_call;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod grafana;
#[cfg(test)]
mod health;
#[cfg(test)]
mod holds;
#[cfg(test)]
mod input;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod passes;
#[cfg(test)]
mod port;
#[cfg(test)]
mod tickets;
#[cfg(test)]
mod two_servers;
