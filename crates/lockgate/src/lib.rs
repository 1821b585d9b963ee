//! Lockgate is what stands between a crowd and something limited.

pub mod clock;
#[cfg(feature = "testing")]
pub mod testing;
