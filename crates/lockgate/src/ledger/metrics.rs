//! What is counted. Names begin with `lockgate_ledger_`; a recorder must be installed before a writer is started.

use metrics::{Counter, Gauge};

pub(super) struct Metrics {
    /// Rows committed.
    pub(super) rows: Counter,
    /// Rows that were there already: an entry was given twice.
    pub(super) known: Counter,
    /// Dead letters because the ledger has the same change with other content.
    pub(super) conflicts: Counter,
    /// Dead letters because the database or the sink refused, or nobody understood the entry.
    pub(super) refused: Counter,
    /// Entries that somebody has removed from the journal before they were written.
    pub(super) gone: Counter,
    /// Writes that failed and were tried again.
    pub(super) failures: Counter,
    /// How long the oldest entry that is not yet written has been waiting, in seconds.
    pub(super) lag: Gauge,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self {
            rows: metrics::counter!("lockgate_ledger_rows_total"),
            known: metrics::counter!("lockgate_ledger_known_rows_total"),
            conflicts: metrics::counter!("lockgate_ledger_dead_letters_total", "reason" => "conflict"),
            refused: metrics::counter!("lockgate_ledger_dead_letters_total", "reason" => "refused"),
            gone: metrics::counter!("lockgate_ledger_gone_entries_total"),
            failures: metrics::counter!("lockgate_ledger_failures_total"),
            lag: metrics::gauge!("lockgate_ledger_lag_seconds"),
        }
    }
}
