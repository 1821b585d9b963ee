//! What clients sent, from `INFO commandstats`.
//!
//! The statistics count a command that a script calls like one that a client sends. So each contender names the
//! commands that its clients send, none of which its scripts call; only those are counted.

use std::collections::HashMap;

use lockgate::error::without_secrets;
use redis::aio::MultiplexedConnection;

use super::Failure;

/// Reads the statistics over a connection of its own.
pub(super) struct CommandCounter {
    connection: MultiplexedConnection,
}

/// Calls per command since the server started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandCounts(HashMap<String, u64>);

impl CommandCounter {
    pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await;
        let connection = connection.map_err(|why| {
            let url = without_secrets(url);
            format!(
                "cannot connect to {url}: {why}; correct --redis, or leave it out to start a redis-server"
            )
        })?;
        Ok(Self { connection })
    }

    pub(super) async fn read(&self) -> Result<CommandCounts, Failure> {
        let mut connection = self.connection.clone();
        let text: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await?;
        Ok(CommandCounts::parse(&text))
    }
}

impl CommandCounts {
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        let calls = lines
            .filter_map(|(command, rest)| Some((command.to_owned(), rest.split(',').next()?.parse().ok()?)));
        Self(calls.collect())
    }

    /// How often the `commands` were called between `before` and this reading.
    pub(super) fn since(&self, before: &Self, commands: &[&str]) -> u64 {
        let count = |counts: &Self, command: &str| counts.0.get(command).copied().unwrap_or(0);
        commands.iter().map(|command| count(self, command).saturating_sub(count(before, command))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_commands_count_and_only_since_the_last_reading() {
        let before = CommandCounts::parse("# Commandstats\r\ncmdstat_evalsha:calls=10,usec=5\r\n");
        let after = CommandCounts::parse(
            "# Commandstats\r\ncmdstat_evalsha:calls=15,usec=9\r\ncmdstat_get:calls=99,usec=1\r\ncmdstat_set:calls=2,usec=1\r\n",
        );
        assert_eq!(after.since(&before, &["evalsha", "set"]), 7);
        assert_eq!(after.since(&before, &["eval"]), 0);
    }
}
