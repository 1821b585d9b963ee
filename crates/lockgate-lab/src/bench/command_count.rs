//! What clients sent and how long the server worked on it, from `INFO commandstats`.
//!
//! The statistics count a command that a script calls like one that a client sends. So each contender names the
//! commands that its clients send, none of which its scripts call; only those are counted. The time of a script holds
//! that of what it calls.

use std::collections::HashMap;
use std::ops::Add;

use lockgate::error::without_secrets;
use redis::aio::MultiplexedConnection;

use super::{Failure, patient_connection};

/// Reads the statistics over a connection of its own.
pub(crate) struct CommandCounter {
    connection: MultiplexedConnection,
}

/// Per command, since the server started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandCounts(HashMap<String, Effort>);

/// How often, and how long the server worked on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effort {
    pub(crate) calls: u64,
    pub(crate) server_us: u64,
}

impl Add for Effort {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { calls: self.calls + other.calls, server_us: self.server_us + other.server_us }
    }
}

impl CommandCounter {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let connection = patient_connection(url).await;
        let connection = connection.map_err(|why| {
            let url = without_secrets(url);
            format!(
                "cannot connect to {url}: {why}; correct --redis, or leave it out to start a redis-server"
            )
        })?;
        Ok(Self { connection })
    }

    pub(crate) async fn read(&self) -> Result<CommandCounts, Failure> {
        let mut connection = self.connection.clone();
        let text: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await?;
        Ok(CommandCounts::parse(&text))
    }
}

impl CommandCounts {
    /// Reads `cmdstat_get:calls=2,usec=3,…`, line by line.
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
        Self(lines.map(|(command, figures)| (command.to_owned(), Effort::parse(figures))).collect())
    }

    /// What the `commands` came to between `before` and this reading.
    pub(crate) fn since(&self, before: &Self, commands: &[&str]) -> Effort {
        let of = |counts: &Self, command: &str| counts.0.get(command).copied().unwrap_or_default();
        commands.iter().fold(Effort::default(), |sum, command| {
            let (now, then) = (of(self, command), of(before, command));
            let calls = now.calls.saturating_sub(then.calls);
            sum + Effort { calls, server_us: now.server_us.saturating_sub(then.server_us) }
        })
    }

    /// What all commands came to, those that scripts call included; not what it takes to read the statistics.
    pub(crate) fn all_since(&self, before: &Self) -> Effort {
        let commands: Vec<&str> =
            self.0.keys().map(String::as_str).filter(|command| *command != "info").collect();
        self.since(before, &commands)
    }
}

impl Effort {
    fn parse(figures: &str) -> Self {
        let figure = |name: &str| {
            let mut all = figures.split(',').filter_map(|figure| figure.split_once('='));
            all.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
        };
        Self { calls: figure("calls"), server_us: figure("usec") }
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
        assert_eq!(after.since(&before, &["evalsha", "set"]), Effort { calls: 7, server_us: 5 });
        assert_eq!(after.since(&before, &["eval"]), Effort::default());
        assert_eq!(after.all_since(&before).calls, 106);
    }
}
