//! The comparison for people who read it in a terminal.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::{CostReport, PolicyCost};

impl CostReport {
    /// Prediction beside measurement, a row for each way to wait, and why where they differ.
    #[must_use]
    pub fn table(&self) -> String {
        let Self { waiters, hold_ms, backoff_ms, rounds, .. } = self;
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN);
        table.set_header([
            "how",
            "by",
            "calls predicted",
            "measured",
            "deviation",
            "delay predicted",
            "measured",
        ]);
        for column in 2..7 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for cost in &self.policies {
            table.add_row(cost.row());
        }
        let mut text = format!(
            "W = {waiters} wait while one holds the lock for L = {hold_ms} ms; who asks again does so after b = {backoff_ms} ms. \
             Medians of {rounds} rounds.\n\n{table}\n\nCalls are what clients sent to Redis for one hold; the delay is from the \
             release until the next one has the lock.\n"
        );
        for cost in &self.policies {
            if let Some(calls) = cost.measured.arrival_calls_per_waiter {
                text.push_str(&format!(
                    "{}: once, to begin to wait, {calls:.1} calls for each waiter.\n",
                    cost.title
                ));
            }
        }
        for cost in &self.policies {
            if let Some(why) = &cost.explanation {
                text.push_str(&format!("\n{}: {why}.\n", cost.title));
            }
        }
        text
    }
}

impl PolicyCost {
    fn row(&self) -> Vec<String> {
        let delay =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2} ms"));
        vec![
            self.title.to_owned(),
            self.predicted.formula.to_owned(),
            format!("{:.0}", self.predicted.calls),
            format!("{:.0}", self.measured.calls),
            format!("{:+.1} %", self.deviation_percent),
            delay(self.predicted.delay_ms),
            delay(Some(self.measured.delay_ms)),
        ]
    }
}
