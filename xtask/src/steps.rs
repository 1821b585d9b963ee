//! Runs steps one after the other, counts what the tests report, and says at the end what ran and how long it took.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Steps {
    began: Instant,
    done: Vec<(&'static str, Duration)>,
    passed: u64,
    failed: u64,
}

impl Steps {
    pub(crate) fn start() -> Self {
        Self { began: now(), done: Vec::new(), passed: 0, failed: 0 }
    }

    /// Runs one step that is a function.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        println!("\n── {name}");
        let began = now();
        step().map_err(|why| format!("{name} failed: {why}"))?;
        self.done.push((name, now() - began));
        Ok(())
    }

    /// Runs one step that is a cargo command.
    pub(crate) fn cargo(&mut self, name: &'static str, arguments: &[&str]) -> Result<(), String> {
        self.cargo_with(name, arguments, &[])
    }

    /// The same with additional environment variables.
    pub(crate) fn cargo_with(
        &mut self,
        name: &'static str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(), String> {
        let (mut passed, mut failed) = (0, 0);
        let outcome = self.run(name, || {
            let mut cargo = cargo();
            cargo.args(arguments).envs(environment.iter().copied()).stdout(Stdio::piped());
            let mut child = cargo.spawn().map_err(|why| format!("cargo could not be run: {why}"))?;
            for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
                let line = line.map_err(|why| why.to_string())?;
                println!("{line}");
                if let Some((more_passed, more_failed)) = counts(&line) {
                    passed += more_passed;
                    failed += more_failed;
                }
            }
            match child.wait() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("`cargo {}` ended with {status}", arguments.join(" "))),
                Err(why) => Err(why.to_string()),
            }
        });
        self.passed += passed;
        self.failed += failed;
        if outcome.is_err() {
            println!("\n{} passed, {} failed", self.passed, self.failed);
        }
        outcome
    }

    /// The last lines: what ran.
    pub(crate) fn finish(self) {
        println!("\n── what ran");
        for (name, time) in &self.done {
            println!("{:>7.1} s  {name}", time.as_secs_f64());
        }
        println!("{:>7.1} s  in all", (now() - self.began).as_secs_f64());
        println!("\n{} passed, {} failed", self.passed, self.failed);
    }
}

/// The cargo that runs this program.
///
/// It gets an environment without what the outer cargo told *us* about ourselves: build scripts watch some of it, and would
/// build anew whenever somebody changes between `cargo xtask` and plain `cargo`.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for (name, _) in env::vars_os() {
        let about_us = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(about_us) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Reads `test result: ok. 12 passed; 0 failed; …`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (_, result) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers =
        result.split("; ").map(|part| part.split(' ').next().and_then(|number| number.parse().ok()));
    Some((numbers.next()??, numbers.next()??))
}

#[expect(clippy::disallowed_methods, reason = "xtask depends on nothing, so it has no `lockgate::clock`")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_test_run_are_read() {
        let line =
            "test result: ok. 22 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.73s";
        assert_eq!(counts(line), Some((22, 1)));
        assert_eq!(counts("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(counts("running 22 tests"), None);
    }
}
