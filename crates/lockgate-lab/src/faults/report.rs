//! One line per run as it comes, and a table at the end.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use serde::Serialize;

use super::{Outcome, Scenario};

/// Gathers outcomes.
pub(super) struct Report {
    as_json: bool,
    totals: BTreeMap<usize, Total>,
}

#[derive(Clone, Default)]
struct Total {
    runs: u64,
    faults: u64,
    operations: u64,
    violations: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    scenario: &'a str,
    seed: u64,
    policy: super::Policy,
    faults: u64,
    operations: u64,
    violations: &'a [String],
}

impl Report {
    pub(super) fn new(as_json: bool) -> Self {
        Self { as_json, totals: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, outcome: &Outcome) -> Result<(), serde_json::Error> {
        let Outcome { scenario, seed, policy, faults, operations, violations } = outcome;
        if self.as_json {
            let (scenario, policy) = (scenario.name(), *policy);
            let (seed, faults, operations) = (*seed, *faults, *operations);
            let line = Line { scenario, seed, policy, faults, operations, violations };
            println!("{}", serde_json::to_string(&line)?);
        } else {
            println!(
                "{} --seed {seed} ({policy:?}): {faults} faults, {operations} operations, {} violations",
                scenario.name(),
                violations.len()
            );
            for violation in violations {
                println!("  - {violation}");
            }
        }
        let place = Scenario::ALL.iter().position(|known| known == scenario).unwrap_or(0);
        let total = self.totals.entry(place).or_default();
        total.runs += 1;
        total.faults += faults;
        total.operations += operations;
        total.violations += u64::try_from(violations.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Prints the table. Says whether all promises were kept.
    pub(super) fn finish(self) -> bool {
        let mut all = Total::default();
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["scenario", "runs", "faults injected", "operations judged", "violations"]);
        for (place, total) in &self.totals {
            all.runs += total.runs;
            all.faults += total.faults;
            all.operations += total.operations;
            all.violations += total.violations;
            table.add_row(row(Scenario::ALL[*place].name(), total));
        }
        table.add_row(row("in all", &all));
        if !self.as_json {
            println!("\n{table}");
        }
        all.violations == 0
    }
}

fn row(name: &str, total: &Total) -> [String; 5] {
    [
        name.to_owned(),
        total.runs.to_string(),
        total.faults.to_string(),
        total.operations.to_string(),
        total.violations.to_string(),
    ]
}
