//! What the lock protects: a register that checks the fence by itself, and refuses those that were overtaken.

use redis::aio::MultiplexedConnection;

use super::Failure;

/// Takes a fence that is not below the highest that it has seen.
const CHECK_AND_RAISE: &str = "
local seen = redis.call('GET', KEYS[1])
if seen and tonumber(ARGV[1]) < tonumber(seen) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
return 1";

#[derive(Clone)]
pub(super) struct Register {
    connection: MultiplexedConnection,
}

impl Register {
    pub(super) async fn at(url: &str) -> Result<Self, Failure> {
        Ok(Self { connection: redis::Client::open(url)?.get_multiplexed_async_connection().await? })
    }

    /// Whether the write was accepted.
    pub(super) async fn write(&self, resource: &str, fence: u64) -> Result<bool, Failure> {
        let mut connection = self.connection.clone();
        let mut call = redis::cmd("EVAL");
        call.arg(CHECK_AND_RAISE).arg(1).arg(resource).arg(fence);
        Ok(call.query_async::<u64>(&mut connection).await? == 1)
    }
}
