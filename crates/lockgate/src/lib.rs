//! Lockgate is what stands between a crowd and something limited.

pub mod clock;
pub mod config;
pub mod error;
mod gate;
pub mod key;
pub mod stock;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::gate::Gate;
