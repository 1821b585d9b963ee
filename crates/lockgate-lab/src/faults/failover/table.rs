//! What failovers came to, as it stands in `docs/guarantees.md`.

use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};

use super::{Fault, SeriesOutcome};

/// Two tables: by topology and mode, and what overlapped by how the master failed.
#[derive(Clone, Debug, Default)]
pub struct SeriesTable(Vec<SeriesOutcome>);

impl SeriesTable {
    /// Adds a line.
    pub fn add(&mut self, outcome: SeriesOutcome) {
        self.0.push(outcome);
    }

    /// Whether all promises were kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.0.iter().all(|outcome| outcome.violations.is_empty())
    }
}

impl fmt::Display for SeriesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "topology",
            "mode",
            "failovers",
            "overlaps",
            "in failovers",
            "fences that went back",
            "stale writes accepted",
            "back after: median",
            "longest",
            "operations judged",
        ]);
        table.add_rows(self.0.iter().map(row));
        let mut by_fault = Table::new();
        by_fault.load_style(presets::ASCII_MARKDOWN);
        by_fault.set_header(["topology", "mode"].into_iter().chain(Fault::ALL.map(Fault::name)));
        by_fault.add_rows(self.0.iter().map(row_by_fault));
        write!(f, "{table}\n\nFailovers with an overlap, of so many:\n\n{by_fault}")
    }
}

fn row(outcome: &SeriesOutcome) -> [String; 10] {
    let mut back: Vec<Duration> = outcome.failovers.iter().map(|failover| failover.back_after).collect();
    back.sort();
    let seconds =
        |time: Option<&Duration>| time.map_or("–".into(), |time| format!("{:.2} s", time.as_secs_f64()));
    let overlapped = outcome.failovers.iter().filter(|failover| failover.overlaps > 0).count();
    [
        outcome.series.topology.name().to_owned(),
        outcome.series.mode.name().to_owned(),
        outcome.failovers.len().to_string(),
        outcome.overlaps().to_string(),
        overlapped.to_string(),
        outcome.regressed.to_string(),
        outcome.stale_writes.to_string(),
        seconds(back.get(back.len() / 2)),
        seconds(back.last()),
        outcome.operations.to_string(),
    ]
}

fn row_by_fault(outcome: &SeriesOutcome) -> Vec<String> {
    let mut row = vec![outcome.series.topology.name().to_owned(), outcome.series.mode.name().to_owned()];
    for fault in Fault::ALL {
        let of_it = outcome.failovers.iter().filter(|failover| failover.fault == fault);
        let overlapped = of_it.clone().filter(|failover| failover.overlaps > 0).count();
        row.push(match of_it.count() {
            0 => "–".to_owned(),
            all => format!("{overlapped} of {all}"),
        });
    }
    row
}
