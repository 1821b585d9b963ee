//! Which wishes make sense.

use super::strategy::{self, Strategy};
use super::{Failure, LabOptions};

/// Beyond this, the history alone would be hundreds of megabytes.
const MOST_USERS: u64 = 1_000_000;
const MOST_PROCESSES: usize = 64;

impl LabOptions {
    /// Says what is wrong, and what to write instead.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !(1..=MOST_USERS).contains(&self.users) {
            return Err(format!("--users {}: write a number between 1 and {MOST_USERS}", self.users).into());
        }
        if self.stock == 0 {
            return Err(
                "--stock 0: with nothing to sell there is nothing to get wrong; write at least 1".into()
            );
        }
        if self.stock > MOST_USERS {
            return Err(format!("--stock {}: write at most {MOST_USERS}", self.stock).into());
        }
        if !(1..=MOST_PROCESSES).contains(&self.processes) {
            let asked = self.processes;
            return Err(format!("--processes {asked}: write a number between 1 and {MOST_PROCESSES}").into());
        }
        if self.users < u64::try_from(self.processes)? {
            return Err("--processes: more processes than users; write fewer, or more --users".into());
        }
        let is_sqlite = self.database.as_deref().is_some_and(|database| database.starts_with("sqlite"));
        if self.processes > 1 && is_sqlite {
            return Err(
                "--processes with SQLite: it is a database for one process; write --db postgres or --db mysql, or \
                 leave --processes out"
                    .into(),
            );
        }
        if let Some(users) = self.growth.iter().find(|users| !(1..=MOST_USERS).contains(*users)) {
            return Err(format!("--growth {users}: write numbers between 1 and {MOST_USERS}").into());
        }
        self.wanted().map(|_| ())
    }

    /// The strategies that were asked for, in the order of the registry.
    pub(super) fn wanted(&self) -> Result<Vec<&'static Strategy>, Failure> {
        let all = strategy::all();
        if let Some(unknown) =
            self.strategies.iter().find(|name| all.iter().all(|known| known.name != **name))
        {
            let names: Vec<_> = all.iter().map(|strategy| strategy.name).collect();
            return Err(format!("no strategy is called {unknown:?}; there are: {}", names.join(", ")).into());
        }
        let is_wanted = |strategy: &&Strategy| {
            self.strategies.is_empty() || self.strategies.iter().any(|name| name == strategy.name)
        };
        Ok(all.iter().filter(is_wanted).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::super::claim::Promise;
    use super::*;

    fn options() -> LabOptions {
        LabOptions {
            users: 300,
            stock: 300,
            processes: 1,
            strategies: Vec::new(),
            redis: None,
            database: None,
            rounds: 1,
            growth: Vec::new(),
            limit: Duration::from_secs(10),
            in_flight: 256,
            program: "lockgate".into(),
        }
    }

    fn complaint(options: &LabOptions) -> String {
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn nonsense_is_told_what_to_write_instead() {
        assert!(options().check().is_ok());
        assert!(complaint(&LabOptions { stock: 0, ..options() }).contains("at least 1"));
        assert!(complaint(&LabOptions { users: 0, ..options() }).contains("between 1 and"));
        assert!(complaint(&LabOptions { processes: 0, ..options() }).contains("between 1 and 64"));
        assert!(
            complaint(&LabOptions { processes: 3, users: 2, ..options() })
                .contains("more processes than users")
        );
        let sqlite = LabOptions { processes: 3, database: Some("sqlite".into()), ..options() };
        assert!(complaint(&sqlite).contains("--db postgres"));
        assert!(complaint(&LabOptions { growth: vec![5, 0], ..options() }).contains("--growth 0"));
    }

    #[test]
    fn a_strategy_that_does_not_exist_is_told_those_that_do() {
        let told = complaint(&LabOptions { strategies: vec!["redlok".into()], ..options() });
        assert!(told.contains("\"redlok\"") && told.contains("redlock") && told.contains("none"), "{told}");
        let some = LabOptions { strategies: vec!["cas".into(), "none".into()], ..options() };
        let names: Vec<_> = some.wanted().unwrap().iter().map(|strategy| strategy.name).collect();
        assert_eq!(names, ["none", "cas"], "in the order of the registry");
    }

    #[test]
    fn every_strategy_has_a_name_of_its_own_and_says_what_it_is() {
        let all = strategy::all();
        let names: HashSet<_> = all.iter().map(|strategy| strategy.name).collect();
        assert_eq!(names.len(), all.len());
        for strategy in all {
            assert!(!strategy.name.is_empty() && !strategy.title.is_empty(), "{}", strategy.name);
            let claim = (strategy.claim)();
            // What fails in one process does not get better with several.
            let fails_alone = matches!(claim.in_one_process, Promise::Fails { .. });
            let fails_across = matches!(claim.across_processes, Promise::Fails { .. });
            assert!(!fails_alone || fails_across, "{}", strategy.name);
        }
    }
}
