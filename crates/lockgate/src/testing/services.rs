//! Real servers for tests: Redis (alone, with Sentinel, as a Cluster), PostgreSQL and MariaDB.
//!
//! Each is a child process on a free port of 127.0.0.1 with a folder of its own, ready when its `start` returns, and
//! can be stopped, killed, paused, resumed and restarted at any moment ([`Server`]). Nothing is left behind: a
//! service goes with its value, also in a panic, and with the test process, also when that is killed with `-9`.
//! Its folder goes with it, or at the next start of any service. No container, no root, no installed service is
//! touched.
//!
//! ```no_run
//! use lockgate::testing::services::{Persistence, Redis};
//!
//! let redis = Redis::start(Persistence::Off)?;
//! redis.pause()?; // as a server that swaps, or a network that is gone
//! redis.resume()?;
//! println!("{}", redis.url());
//! # Ok::<(), lockgate::testing::services::ServiceError>(())
//! ```
//!
//! What is needed is in [`program`]; `cargo xtask setup` installs it. [`Cluster`] needs Redis 7 or later, for
//! `cluster-port`.
//!
//! Starting blocks the thread, for a second or two at the most. In an async test that is harmless as long as nothing
//! else has to go on meanwhile.

mod certificate;
mod cluster;
mod error;
mod folder;
mod launch;
mod mariadb;
mod port;
mod postgres;
mod process;
pub mod program;
mod redis;
mod resp;
mod sentinel;
pub mod server;
mod user;

pub use cluster::Cluster;
pub use error::ServiceError;
pub use mariadb::{MariaDb, MariaDbBuilder};
pub use postgres::{Postgres, PostgresBuilder};
pub use redis::{Persistence, Redis, RedisBuilder};
pub use resp::Reply;
pub use sentinel::Sentinel;
pub use server::Server;
