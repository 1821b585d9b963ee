//! Redis as the strategies see it: one connection per process, and a count of how often somebody waited for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Pipeline, Script};

use super::Failure;
use crate::bench::patient_connection;

/// Cheap to clone; all clones share the connection, and the count.
#[derive(Clone)]
pub(super) struct RedisLink {
    url: String,
    connection: MultiplexedConnection,
    round_trips: Arc<AtomicU64>,
}

impl RedisLink {
    pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
        let connection = patient_connection(url).await?;
        Ok(Self { url: url.to_owned(), connection, round_trips: Arc::default() })
    }

    /// A connection of its own, for commands that wait in Redis and would keep all others waiting.
    pub(super) async fn beside(&self) -> Result<Self, Failure> {
        let connection = patient_connection(&self.url).await?;
        Ok(Self { url: self.url.clone(), connection, round_trips: Arc::clone(&self.round_trips) })
    }

    /// One command, one round trip.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        self.count();
        Ok(command.query_async(&mut self.connection.clone()).await?)
    }

    /// Several commands, one round trip.
    pub(super) async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, Failure> {
        self.count();
        Ok(commands.query_async(&mut self.connection.clone()).await?)
    }

    /// A script, one round trip; the first time it is sent, it is three.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[u64],
    ) -> Result<T, Failure> {
        self.count();
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(*key);
        }
        for argument in arguments {
            call.arg(*argument);
        }
        Ok(call.invoke_async(&mut self.connection.clone()).await?)
    }

    /// How many round trips there were since it was last asked.
    pub(super) fn take_round_trips(&self) -> u64 {
        self.round_trips.swap(0, Ordering::Relaxed)
    }

    fn count(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }
}
